"""Apprise through its own plugin for JSON, to a real server on the loopback."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sentinel.channels.apprise import Apprise
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, ChannelContract, Mood, Side, assert_inert, send
from tests.channels.samples import notification
from tests.channels.web import Web, answers, failure, hangs, sent, strings

# Apprise's PGP support imports it where it still exists.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


def apprise(server: Web, **changes: Any) -> Apprise:
    url = f"json://user:{SECRET}@localhost:{server.port}/{SECRET}?rto=3"
    return Apprise(**{"url": Secret(url), **changes})


class TestContract(ChannelContract):
    """User, password and path are secret; Apprise itself logs them."""

    @contextmanager
    def side(self, tmp_path: Path, mood: Mood) -> Iterator[Side]:
        handler = {
            "takes": answers(200, SECRET),
            "refuses": answers(404, SECRET),
            "later": answers(503, SECRET),
            "hangs": hangs,
        }[mood]
        timeout = Duration(0.5 if mood == "hangs" else 20)
        with Web(handler) as server:
            yield Side(apprise(server, timeout=timeout), lambda: server.bodies)

    def inert(self, message: bytes, text: str) -> None:
        """Nothing in the strings that a phone would obey."""
        assert_inert("\n".join(strings(json.loads(message))))


STATUSES = [
    (400, True, "refused"),
    (401, True, "auth"),
    (404, True, "refused"),
    (429, False, "rate"),
    (500, False, "server"),
    (503, False, "server"),
]


@pytest.mark.parametrize(("status", "permanent", "reason"), STATUSES)
def test_what_a_status_means(status: int, permanent: bool, reason: str) -> None:
    """Apprise says no more than that it failed; its log names the status."""
    with Web(answers(status)) as server:
        error = failure(apprise(server))
    assert (error.permanent, error.reason) == (permanent, reason)
    assert str(status) in str(error)


def test_nobody_there_is_a_network_error() -> None:
    """Another try may reach it."""
    error = failure(Apprise(url=Secret(f"json://localhost:1/{SECRET}")))
    assert (error.permanent, error.reason) == (False, "network")
    assert SECRET not in str(error)


def test_html_and_markdown_stay_text() -> None:
    """The body is told to Apprise as plain text."""
    with Web(answers(200)) as server:
        body = sent(apprise(server), server, notification(summary="<b>*x*</b> &amp; \\n"))
    assert "<b>*x*</b> &amp; \\n" in body["message"]
    assert body["type"] == "failure"


def test_where_a_service_takes_html_text_is_escaped() -> None:
    """Once, whatever version of Apprise: most escape nothing."""
    with Web(answers(200)) as server:
        url = Secret(f"json://localhost:{server.port}/?format=html")
        body = sent(Apprise(url=url), server, notification(summary="<b>x</b> &", details="a\nb"))
    assert "&lt;b&gt;x&lt;/b&gt; &amp;" in body["message"]
    assert "| a<br/>    | b<br/>" in body["message"]
    assert "&amp;lt;" not in body["message"]
    assert "<b>" not in body["message"]


def test_a_length_for_phones() -> None:
    """The first lines say what matters; the rest is left out."""
    with Web(answers(200)) as server:
        body = sent(apprise(server, length=200), server, notification(details="x\n" * 99))
    assert "4242 FAILED" in body["message"]
    assert len(body["title"]) + len(body["message"]) <= 210


def test_what_hangs_is_not_piled_upon() -> None:
    """While a thread waits, no second one is started; when it has ended, all is as before."""
    mood: list[Any] = [hangs]

    async def answer(request: Any) -> Any:
        return await mood[0](request)

    with Web(answer) as server:
        channel = apprise(server, timeout=Duration(0.3))
        assert "within" in str(failure(channel))
        assert "still hangs" in str(failure(channel))
        assert len(server.requests) == 1
        mood[0] = answers(200)
        assert until_taken(channel)


def until_taken(channel: Apprise) -> bool:
    end = time.monotonic() + 15
    while time.monotonic() < end:
        try:
            return bool(asyncio.run(channel.send([notification()])))
        except ChannelError:
            time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    "url", ["", "nowhere", "no-such-kind://x", f"json://{SECRET}:x:y", "json://"]
)
def test_an_unknown_address_is_refused(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """At its key, and neither the error nor the log shows it."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(Invalid) as caught:
        Apprise(url=Secret(url))
    assert caught.value.path == ("url",)
    assert SECRET not in str(caught.value) + caplog.text


@pytest.mark.parametrize("length", [149, 10_001])
def test_a_length_out_of_reason_is_refused(length: int) -> None:
    """It names the key."""
    with pytest.raises(Invalid) as caught:
        Apprise(url=Secret("json://localhost"), length=length)
    assert caught.value.path == ("length",)


def test_the_receipt_names_the_service() -> None:
    """As Apprise calls it."""
    with Web(answers(200)) as server:
        assert send(apprise(server), notification()).text == "apprise: JSON accepted it"
