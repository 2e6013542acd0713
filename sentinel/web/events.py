"""Server-sent events: an open page learns at once that the state has changed.

https://html.spec.whatwg.org/multipage/server-sent-events.html. An event says only that something
changed. The page then asks for the new content itself, so content is sent in one way only."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from sentinel.web.clients import client_of
from sentinel.web.render import PAGE_HEADERS
from sentinel.web.snapshot_cache import LiveFacts

MAX_OPEN_PAGES = 64
"""Open pages that get events; others have to be reloaded. If all are taken, a page of the client
with the most pages is closed."""

REFRESH_INTERVAL_S = 5.0
"""Seconds after which a page is told to ask again although nothing was written, because ages
grow."""


class EventStreams:
    """The open pages that get events. `name_visitor` tells people of one address apart."""

    def __init__(self, live: LiveFacts, name_visitor: Callable[[web.Request], str]) -> None:
        self._live, self._open = live, dict[asyncio.Task[None], str]()
        self._name_visitor = name_visitor
        self._over = False

    async def serve_stream(self, request: web.Request) -> web.StreamResponse:
        """Send events until the browser leaves or the server ends."""
        client = client_of(request.remote or "") + self._name_visitor(request)
        if len(self._open) >= MAX_OPEN_PAGES and not self._close_oldest_of_greediest(client):
            return web.Response(status=503, text="too many open pages\n", headers=PAGE_HEADERS)
        answer = web.StreamResponse(headers={**PAGE_HEADERS, "Content-Type": "text/event-stream"})
        await answer.prepare(request)
        if self._over:  # otherwise a new page would prevent the server from ending
            return answer
        task = asyncio.ensure_future(self._write_events(answer))
        self._open[task] = client
        task.add_done_callback(lambda ended: self._open.pop(ended, None))
        with suppress(ConnectionError, asyncio.CancelledError):
            await task
        return answer

    def _close_oldest_of_greediest(self, client: str) -> bool:
        """Close the oldest page of the client with the most pages, for a client with fewer. Returns
        False if no client has more than this one."""
        counts = Counter(self._open.values())
        greediest, most = counts.most_common(1)[0]
        if most <= counts[client] + 1:
            return False
        oldest = next(task for task, who in self._open.items() if who == greediest)
        self._open.pop(oldest)
        oldest.cancel()
        return True

    def shut_down(self) -> None:
        """Close all pages, and every page that comes back."""
        self._over = True
        self.close_streams()

    def close_streams(self) -> None:
        """Close all pages."""
        for task in tuple(self._open):
            task.cancel()

    async def _write_events(self, answer: web.StreamResponse) -> None:
        """Write an event now, for changes since the page was made or while it was cut off, and then
        one for each change."""
        await answer.write(b"retry: 2000\nevent: changed\ndata: 0\n\n")
        async for version in self._live.iterate_changes(REFRESH_INTERVAL_S):
            await answer.write(f"event: changed\ndata: {version}\n\n".encode())
