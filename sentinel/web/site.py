"""The status page, its API and `/metrics` together, for the server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiohttp import web

from sentinel.web.api import ApiRoutes
from sentinel.web.auth import Gate
from sentinel.web.events import EventStreams
from sentinel.web.other_clusters import OtherClusters
from sentinel.web.page_cache import PageCache
from sentinel.web.rate_limit import RequestRateLimiter
from sentinel.web.snapshot_cache import LiveFacts
from sentinel.web.views import PageViews

BURST, REFILL = 600, 60.0
"""Requests that one client may make at once, and each second after that."""

ANSWERS, EACH = 30, 0.5
"""The same limits for acknowledging and silencing, whether the token is right or wrong."""


class Site:
    """Further addresses for the server. Call `start_watching` when the server runs, and
    `stop_watching` before it ends."""

    def __init__(
        self,
        live: LiveFacts,
        gate: Gate,
        reading: RequestRateLimiter | None = None,
        writing: RequestRateLimiter | None = None,
        others: OtherClusters | None = None,
    ) -> None:
        self._live, self._gate = live, gate
        self._events = EventStreams(live, self.name_visitor)
        self._others = others
        self._reading = reading or RequestRateLimiter(BURST, REFILL)
        self._writing = writing or RequestRateLimiter(ANSWERS, EACH)
        shown = PageCache(live, gate)
        self.routes: Sequence[web.AbstractRouteDef] = (
            *PageViews(live, gate, self._events, shown).routes,
            *ApiRoutes(live, gate, shown).routes,
        )
        self._tasks: list[asyncio.Future[None]] = []

    def is_known_host(self, request: web.Request) -> bool:
        """Whether the host name of the request is ours, or does not matter for this path.

        A browser takes a foreign name that is made to point to this host (DNS rebinding) for the
        foreigner's site, which could read everything. Excepted are public paths, links that are
        keys themselves, and metrics, whose readers may use any name."""
        free = request.path in ("/healthz", "/metrics") or request.path.startswith("/a/")
        return free or not self._gate.is_unknown_host(request.headers)

    def name_visitor(self, request: web.Request) -> str:
        """The client for limits, if the request says who asks: by a session, or by the proxy and its
        token, each person alone. For reading, the token is enough. For answers it is not: a client
        that guesses tokens has to share the common limit. Empty otherwise."""
        visitor = self._gate.identify_visitor(request.headers, self._live.get_now_s())
        reads = request.method in ("GET", "HEAD")
        known = visitor.session or (visitor.open and (visitor.name or reads))
        return f" with the token {visitor.name}" if known else ""

    def choose_rate_limiter(self, request: web.Request) -> RequestRateLimiter | None:
        """The limiter that counts this request. None if the path is unknown."""
        if request.path.startswith("/a/"):
            return None
        return self._reading if request.method in ("GET", "HEAD") else self._writing

    def start_watching(self) -> None:
        """Begin to notice changes of the state, and to ask other sentinels."""
        watched = [
            self._live.watch_commits(),
            *([self._others.poll_forever()] if self._others else []),
        ]
        self._tasks = [asyncio.ensure_future(one) for one in watched]

    def stop_watching(self) -> None:
        """Close the open pages, and stop watching."""
        self._events.shut_down()
        for task in self._tasks:
            task.cancel()
