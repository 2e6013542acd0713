"""Prints alerts on standard output, for a person who watches and for the journal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import ClassVar, TextIO

from sentinel.channels.aside import StillOccupied, run_aside
from sentinel.channels.format.text import make_card
from sentinel.channels.settings import check_timeout
from sentinel.core.errors import ChannelError
from sentinel.core.model import Notification, Receipt
from sentinel.core.values import Duration
from sentinel.plugin import Channel

CARD_COLUMNS = 80  # if the output is not a terminal
PRINTED: set[str] = set()
"""Checks whose alerts this process has printed. `tick` does not print them again."""


class Console(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prints each alert on standard output, in colour on a terminal (NO_COLOR is honoured).

    A terminal that is held (Ctrl-S) or a pipe that nobody empties is given up in time.
    """

    groups: ClassVar[bool] = False
    reaches: ClassVar[bool] = False

    timeout: Duration = Duration(10)

    def __post_init__(self) -> None:
        check_timeout(self.timeout)

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        """Print the alerts."""
        stream = sys.stdout
        if stream is None or stream.closed or getattr(stream, "stands_in", False):
            raise ChannelError("there is no standard output", permanent=True, reason="server")
        colour = wants_colour(stream, os.environ)
        width = max(40, min(get_terminal_size().columns, 120)) if colour else CARD_COLUMNS
        text = _paint_cards(notifications, colour, width)
        try:
            await run_aside(id(stream), lambda: _write_stream(stream, text), self.timeout)
            PRINTED.update(n.check for n in notifications)
        except (TimeoutError, StillOccupied):
            why = "accepts no more text: a terminal held with Ctrl-S, or a full pipe?"
            raise ChannelError(f"standard output {why}", reason="timeout") from None
        except (OSError, ValueError) as error:
            gone = isinstance(error, BrokenPipeError)
            why = getattr(error, "strerror", "") or str(error)
            raise ChannelError(f"standard output: {why}", permanent=gone, reason="server") from None
        return Receipt("printed")

    def preview(self, notifications: Sequence[Notification]) -> list[tuple[str, str]]:
        """The text that it would print, without colour."""
        return [("text", _paint_cards(notifications, colour=False))]


def _paint_cards(
    notifications: Sequence[Notification], colour: bool, width: int = CARD_COLUMNS
) -> str:
    # importing rich takes half of the start-up time
    from sentinel.channels.console_card import paint_card

    return "".join(paint_card(make_card(n), colour, width) for n in notifications)


def wants_colour(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Whether to print in colour: on a terminal that supports it, unless NO_COLOR is set
    (https://no-color.org)."""
    plain = env.get("NO_COLOR") or env.get("TERM", "dumb") == "dumb"
    return stream.isatty() and not plain


def _write_stream(stream: TextIO, text: str) -> None:
    """Write without the stream's buffer. A thread that is left behind in the buffer would hold its
    lock at exit."""
    data = text.encode(stream.encoding or "utf-8", "backslashreplace")
    fd = _stream_descriptor(stream)
    while fd >= 0 and data:
        data = data[os.write(fd, data) :]
    if fd < 0:
        stream.write(text)


def _stream_descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return -1
