"""The status page, its API and `/metrics` together, as the server takes them."""

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
"""Requests that one address may make at once, and each second after that: all who come through a
reverse proxy have one address."""

ANSWERS, EACH = 30, 0.5
"""Likewise for acknowledging and silencing, right or wrong token."""


class Site:
    """More for the server to serve. `start_watching` when it runs, `stop_watching` before it ends."""

    def __init__(
        self,
        live: LiveFacts,
        gate: Gate,
        reading: RequestRateLimiter | None = None,
        writing: RequestRateLimiter | None = None,
        others: OtherClusters | None = None,
    ) -> None:
        self._live, self._gate, self._events = live, gate, EventStreams(live)
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
        """A stranger's name that is made to mean this host (DNS rebinding) is, to a browser, the
        stranger's site, which could read all of it. What anybody may know, keys in themselves, and
        metrics, whose readers name the host as they like, are excepted."""
        free = request.path in ("/healthz", "/metrics") or request.path.startswith("/a/")
        return free or not self._gate.is_unknown_host(request.headers)

    def choose_rate_limiter(self, request: web.Request) -> RequestRateLimiter | None:
        """The bucket that counts; None for what is not ours."""
        if request.path == "/healthz" or request.path.startswith("/a/"):
            return None
        return self._reading if request.method in ("GET", "HEAD") else self._writing

    def start_watching(self) -> None:
        """Begin to notice what is written, and to ask other sentinels."""
        watched = [
            self._live.watch_commits(),
            *([self._others.poll_forever()] if self._others else []),
        ]
        self._tasks = [asyncio.ensure_future(one) for one in watched]

    def stop_watching(self) -> None:
        """Let the open pages go."""
        self._events.shut_down()
        for task in self._tasks:
            task.cancel()
