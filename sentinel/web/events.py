"""Server-sent events: an open page hears within a moment that something was written.

https://html.spec.whatwg.org/multipage/server-sent-events.html; only that it changed is told, the
page then asks for itself, so that there is one way in which anything is shown.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import web

from sentinel.web.render import PAGE_HEADERS
from sentinel.web.snapshot_cache import LiveFacts

MAX_OPEN_PAGES = 64
"""Pages open at once that are told; the others can be reloaded."""

REFRESH_INTERVAL_S = 5.0
"""Seconds after which a page is told to look again although nothing was written: ages grow."""


class EventStreams:
    """The pages that are open."""

    def __init__(self, live: LiveFacts) -> None:
        self._live, self._open = live, set[asyncio.Task[None]]()
        self._over = False

    async def serve_stream(self, request: web.Request) -> web.StreamResponse:
        """Lasts until the browser goes away or the server ends."""
        if len(self._open) >= MAX_OPEN_PAGES:
            return web.Response(status=503, text="too many open pages\n", headers=PAGE_HEADERS)
        answer = web.StreamResponse(headers={**PAGE_HEADERS, "Content-Type": "text/event-stream"})
        await answer.prepare(request)
        if self._over:  # a page that comes while the server ends would keep it from ending
            return answer
        task = asyncio.ensure_future(self._write_events(answer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        with suppress(ConnectionError, asyncio.CancelledError):
            await task
        return answer

    def shut_down(self) -> None:
        """Let all of them go, and those that come back at once."""
        self._over = True
        self.close_streams()

    def close_streams(self) -> None:
        """Let all of them go."""
        for task in tuple(self._open):
            task.cancel()

    async def _write_events(self, answer: web.StreamResponse) -> None:
        """At once too: what was written since the page was made, or while it was cut off."""
        await answer.write(b"retry: 2000\nevent: changed\ndata: 0\n\n")
        async for version in self._live.iterate_changes(REFRESH_INTERVAL_S):
            await answer.write(f"event: changed\ndata: {version}\n\n".encode())
