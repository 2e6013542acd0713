"""The dead man's switch against a real web server."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from sentinel.channels.heartbeat import WebPulse
from sentinel.core.errors import ChannelError
from sentinel.core.settings import HeartbeatSettings, Secret


def beats(story: Callable[[str], Awaitable[None]], status: int = 200) -> list[tuple[str, str, str]]:
    """Method, path and body of the requests that the story makes."""
    seen: list[tuple[str, str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, await request.text()))
        return web.Response(status=status)

    async def main() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            await story(f"http://127.0.0.1:{runner.addresses[0][1]}/uuid-1")
        finally:
            await runner.cleanup()

    asyncio.run(main())
    return seen


def test_a_good_pass_pings_the_address() -> None:
    """GET, as every such service takes it."""

    async def story(url: str) -> None:
        await WebPulse(HeartbeatSettings(url=Secret(url))).beat(True, "")

    assert beats(story) == [("GET", "/uuid-1", "")]


def test_a_blind_pass_is_silence_or_a_failure() -> None:
    """Silence by default; at healthchecks the reason goes to /fail."""

    async def story(url: str) -> None:
        await WebPulse(HeartbeatSettings(url=Secret(url))).beat(False, "disks is blind")
        await WebPulse(HeartbeatSettings(url=Secret(url), style="healthchecks")).beat(
            False, "disks is blind"
        )

    assert beats(story) == [("POST", "/uuid-1/fail", "disks is blind")]


def test_a_refusal_is_an_error_without_the_secret_address() -> None:
    """The address is a password."""

    async def story(url: str) -> None:
        with pytest.raises(ChannelError, match="404") as caught:
            await WebPulse(HeartbeatSettings(url=Secret(url))).beat(True, "")
        assert "uuid-1" not in str(caught.value)

    beats(story, status=404)
