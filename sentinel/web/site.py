"""The status page, its API and `/metrics` together, as the server takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiohttp import web

from sentinel.web.api import Api
from sentinel.web.auth import Gate
from sentinel.web.events import Events
from sentinel.web.others import Others
from sentinel.web.page_cache import Shown
from sentinel.web.rate_limit import Rate
from sentinel.web.snapshot_cache import Live
from sentinel.web.views import Views

BURST, REFILL = 600, 60.0
"""Requests that one address may make at once, and each second after that: all who come through a
reverse proxy have one address."""

ANSWERS, EACH = 30, 0.5
"""Likewise for acknowledging and silencing, right or wrong token."""


class Site:
    """More for the server to serve. `start` when it runs, `stop` before it ends."""

    def __init__(
        self,
        live: Live,
        gate: Gate,
        reading: Rate | None = None,
        writing: Rate | None = None,
        others: Others | None = None,
    ) -> None:
        self._live, self._gate, self._events = live, gate, Events(live)
        self._others = others
        self._reading = reading or Rate(BURST, REFILL)
        self._writing = writing or Rate(ANSWERS, EACH)
        shown = Shown(live, gate)
        self.routes: Sequence[web.AbstractRouteDef] = (
            *Views(live, gate, self._events, shown).routes,
            *Api(live, gate, shown).routes,
        )
        self._tasks: list[asyncio.Future[None]] = []

    def knows(self, request: web.Request) -> bool:
        """A stranger's name that is made to mean this host (DNS rebinding) is, to a browser, the
        stranger's site, which could read all of it. What anybody may know, keys in themselves, and
        metrics, whose readers name the host as they like, are excepted."""
        free = request.path in ("/healthz", "/metrics") or request.path.startswith("/a/")
        return free or not self._gate.misdirected(request.headers)

    def rate(self, request: web.Request) -> Rate | None:
        """The bucket that counts; None for what is not ours."""
        if request.path == "/healthz" or request.path.startswith("/a/"):
            return None
        return self._reading if request.method in ("GET", "HEAD") else self._writing

    def start(self) -> None:
        """Begin to notice what is written, and to ask other sentinels."""
        watched = [self._live.watch(), *([self._others.watch()] if self._others else [])]
        self._tasks = [asyncio.ensure_future(one) for one in watched]

    def stop(self) -> None:
        """Let the open pages go."""
        self._events.end()
        for task in self._tasks:
            task.cancel()
