"""The dead man's switch against a real web server."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import pytest
from aiohttp import web

from sentinel.channels.heartbeat import WebPulse, make_pulse
from sentinel.config.settings import HeartbeatSettings
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.settings import ExpectedAnswer, FilePath, Secret
from tests.channels.web import Web, answers


def beats(story: Callable[[str], Awaitable[None]], status: int = 200) -> list[tuple[str, str, str]]:
    """Method, path and body of the requests that the story makes."""
    seen: list[tuple[str, str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, await request.text()))
        return web.Response(status=status, text="OK")

    with Web(answer) as server:
        asyncio.run(story(f"http://127.0.0.1:{server.port}/uuid-1"))
    return seen


def test_a_good_pass_pings_the_address() -> None:
    """GET, as every such service takes it."""

    async def story(url: str) -> None:
        await WebPulse(HeartbeatSettings(url=Secret(url))).send_heartbeat(True, "")

    assert beats(story) == [("GET", "/uuid-1", "")]


def test_the_address_is_taken_as_it_is() -> None:
    """Some services know it with a slash at its end only, and answer a redirect without."""

    async def story(url: str) -> None:
        await WebPulse(HeartbeatSettings(url=Secret(f"{url}/"))).send_heartbeat(True, "")
        well = HeartbeatSettings(url=Secret(f"{url}/"), style="healthchecks")
        await WebPulse(well).announce_start()

    assert [path for _, path, _ in beats(story)] == ["/uuid-1/", "/uuid-1/start"]


@pytest.mark.parametrize("url", ["https://hc.example.org:99999/x", "https://[x/", "https://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    """When the file is read, not at night."""
    with pytest.raises(Invalid) as caught:
        HeartbeatSettings(url=Secret(url))
    assert caught.value.path == ("url",)


def test_a_blind_pass_is_silence_or_a_failure() -> None:
    """Silence by default; at healthchecks the reason goes to /fail."""

    async def story(url: str) -> None:
        await WebPulse(HeartbeatSettings(url=Secret(url))).send_heartbeat(False, "disks is blind")
        await WebPulse(HeartbeatSettings(url=Secret(url), style="healthchecks")).send_heartbeat(
            False, "disks is blind"
        )

    assert beats(story) == [("POST", "/uuid-1/fail", "disks is blind")]


def test_a_refusal_is_an_error_without_the_secret_address() -> None:
    """The address is a password."""

    async def story(url: str) -> None:
        with pytest.raises(ChannelError, match="404") as caught:
            await WebPulse(HeartbeatSettings(url=Secret(url))).send_heartbeat(True, "")
        assert "uuid-1" not in str(caught.value)

    beats(story, status=404)


def test_a_pass_that_begins_is_told_to_healthchecks() -> None:
    """At /start; another service would take that for a sign of life."""

    async def story(url: str) -> None:
        await WebPulse(HeartbeatSettings(url=Secret(url))).announce_start()
        await WebPulse(HeartbeatSettings(url=Secret(url), style="healthchecks")).announce_start()

    assert beats(story) == [("GET", "/uuid-1/start", "")]


@pytest.mark.parametrize(
    ("style", "said", "sure"),
    [
        ("healthchecks", "OK", True),
        ("healthchecks", "Created", True),
        ("healthchecks", "Created a login for you", False),
        ("healthchecks", "OK (not found)", False),
        ("healthchecks", "", False),
        ("healthchecks", "<html>login</html>", False),
        ("plain", "", True),
        ("plain", '{"ok":true}', True),
        ("plain", '{"ok":false,"msg":"Monitor not found"}', False),
        ("plain", "<html>login</html>", False),
    ],
)
def test_a_sign_counts_by_its_answer(
    style: Literal["plain", "healthchecks"], said: str, sure: bool
) -> None:
    """https://healthchecks.io/docs/http_api/, and of 4.3 itself `Created` for the first ping of an address
    with `?create=1`; Uptime Kuma's push answers with `ok`."""
    with Web(answers(201 if said.startswith("Created") else 200, said)) as server:
        pulse = WebPulse(HeartbeatSettings(url=Secret(f"{server.url}/uuid-1"), style=style))
        if sure:
            asyncio.run(pulse.send_heartbeat(True, ""))
            return
        with pytest.raises(ChannelError) as caught:
            asyncio.run(pulse.send_heartbeat(True, ""))
    assert "uuid-1" not in str(caught.value)


def test_expect_sets_what_counts_as_a_sign() -> None:
    """Of another service that knows /start and /fail."""
    with Web(answers(202, "Got it")) as server:
        settings = HeartbeatSettings(
            url=Secret(server.url), style="healthchecks", expect=[ExpectedAnswer(status=202)]
        )
        asyncio.run(WebPulse(settings).send_heartbeat(True, ""))
    assert len(server.requests) == 1


def test_ways_do_not_keep_each_other_from_the_sign(tmp_path: Path) -> None:
    """The file is written although the web does not answer, and the error is told."""

    async def story(url: str) -> None:
        own = FilePath(tmp_path / "own")
        both = make_pulse(HeartbeatSettings(url=Secret(url), file=own, style="healthchecks"))
        assert both is not None
        with pytest.raises(ChannelError, match="500"):
            await both.announce_start()
        with pytest.raises(ChannelError, match="500"):
            await both.send_heartbeat(True, "")
        assert own in {str(p) for p in tmp_path.iterdir()}

    beats(story, status=500)
