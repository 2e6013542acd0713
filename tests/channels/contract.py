"""What every channel promises, whatever it speaks: one suite over all of them."""

import asyncio
import logging
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Receipt
from sentinel.core.text import visible
from sentinel.plugin import Channel
from tests.channels.samples import FORBIDDEN, HOSTILE, HUGE, hostile, notification

SECRET = "hunter2-hunter2"
Mood = Literal["takes", "refuses", "later", "hangs"]
REASONS = {"auth", "refused", "recipient", "rate", "network", "timeout", "tls", "server"}
OTHER_SIDE = ("mail.log", "mail.debug", "aiohttp.access", "aiohttp.server")
"""Loggers of the servers, which run in this process too and know what they were sent."""


class Side(NamedTuple):
    """A channel and what has arrived on its other side, as it came."""

    channel: Channel
    got: Callable[[], list[bytes]]


class ChannelContract:
    """Subclasses say how to start the other side, which answers with SECRET where it can."""

    def side(self, tmp_path: Path, mood: Mood) -> AbstractContextManager[Side]:
        """A channel with a short timeout whose other side is in that mood."""
        raise NotImplementedError

    def test_what_is_sent_arrives(self, tmp_path: Path) -> None:
        """The receipt says something, and the message holds what a person needs."""
        with self.side(tmp_path, "takes") as side:
            receipt = send(side.channel, notification())
            (message,) = side.got()
        assert receipt.text
        assert receipt.refused == ()
        assert_inert(receipt.text)
        for word in ("h100-prod", "training", "tr11-176B", "4242 FAILED"):
            assert word.encode() in message

    def test_a_note_arrives(self, tmp_path: Path) -> None:
        """Who has it, until when it is silent, why it comes this way: with every reason."""
        for reason in ("firing", "ack", "resolved", "something new"):
            with self.side(tmp_path, "takes") as side:
                send(side.channel, notification(note="acknowledged by bob", reason=reason))
                message = side.got()[-1]
            assert b"acknowledged by bob" in message

    def test_a_refusal_for_good_is_permanent(self, tmp_path: Path) -> None:
        """The error says so, in one inert line, with a reason that can be counted."""
        error = self.fails(tmp_path, "refuses")
        assert error.permanent
        assert error.reason in REASONS

    def test_a_refusal_for_now_is_not(self, tmp_path: Path) -> None:
        """Delivery will try again."""
        error = self.fails(tmp_path, "later")
        assert not error.permanent
        assert error.reason in REASONS

    def test_a_hang_ends_at_the_timeout(self, tmp_path: Path) -> None:
        """The send is given up as a timeout, and meanwhile the event loop goes on."""
        with self.side(tmp_path, "hangs") as side:
            error, ticks = asyncio.run(hung(side.channel))
        assert (error.reason, error.permanent) == ("timeout", False)
        assert_one_line(error)
        assert ticks > 3

    def test_megabytes_are_cut(self, tmp_path: Path) -> None:
        """Two megabytes in every text arrive as a message of bearable size."""
        big = "x\N{GREEK SMALL LETTER OMEGA}" * (HUGE // 2)
        with self.side(tmp_path, "takes") as side:
            send(side.channel, notification(summary=big, details=f"{big}\n" * 2, subject=big))
            (message,) = side.got()
        assert 200 < len(message) < 400_000

    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
    def test_hostile_text_is_inert(self, tmp_path: Path, text: str) -> None:
        """It arrives, and nothing in it is obeyed."""
        with self.side(tmp_path, "takes") as side:
            send(side.channel, hostile(text))
            (message,) = side.got()
        self.inert(message, text)

    def inert(self, message: bytes, text: str) -> None:
        """What that means for the format; by default: valid UTF-8 without control."""
        assert_inert(message.decode())

    @pytest.mark.parametrize("mood", ["takes", "refuses", "later", "hangs"])
    def test_secrets_are_nowhere(
        self, tmp_path: Path, mood: Mood, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Not in repr, receipt, error, traceback or logs, even if the other side echoes them."""
        caplog.set_level(logging.DEBUG)
        with self.side(tmp_path, mood) as side:
            shown = [repr(side.channel), str(side.channel)]
            try:
                shown.append(str(send(side.channel, notification())))
            except ChannelError as error:
                shown += [str(error), repr(error), *traceback.format_exception(error)]
        shown += [r.getMessage() for r in caplog.records if r.name not in OTHER_SIDE]
        assert len(shown) > 2
        assert SECRET not in "\n".join(shown)

    def test_many_at_once_are_all_told(self, tmp_path: Path) -> None:
        """A list of alerts arrives whole, in one message where the class says `groups`."""
        three = [notification(subject=f"job-{i}", key=f"k{i}") for i in range(3)]
        with self.side(tmp_path, "takes") as side:
            asyncio.run(side.channel.send(three))
            got = side.got()
        assert len(got) == (1 if type(side.channel).groups else 3)  # type: ignore[attr-defined]
        assert all(f"job-{i}".encode() in b"".join(got) for i in range(3))

    def fails(self, tmp_path: Path, mood: Mood) -> ChannelError:
        with self.side(tmp_path, mood) as side, pytest.raises(ChannelError) as caught:
            send(side.channel, notification())
        assert_one_line(caught.value)
        return caught.value


def send(channel: Channel, notification: Notification) -> Receipt:
    return asyncio.run(channel.send([notification]))


async def hung(channel: Channel) -> tuple[ChannelError, int]:
    """The error of a send that hangs, and how often another task ran meanwhile."""
    sending = asyncio.ensure_future(channel.send([notification()]))
    ticks = 0
    while not sending.done():
        await asyncio.sleep(0.01)
        ticks += 1
    with pytest.raises(ChannelError) as caught:
        await sending
    return caught.value, ticks


def assert_one_line(error: ChannelError) -> None:
    assert str(error)
    assert visible(str(error)) == str(error)
    assert len(str(error)) < 600


def assert_inert(text: str) -> None:
    assert not [c for c in FORBIDDEN if c in text]
