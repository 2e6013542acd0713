"""Pages that are made once for all viewers, as long as the facts are the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, TypeVar

from aiohttp import web
from msgspec.structs import replace

from sentinel.status import detail
from sentinel.status.privacy import Viewer
from sentinel.status.types import Facts
from sentinel.web import render
from sentinel.web.auth import Gate, RequestRefused, Visitor
from sentinel.web.snapshot_cache import LiveFacts

MAX_CACHED_PAGES = 64
"""Results that are kept: one for each address and viewer."""

Result = TypeVar("Result")


class SharedResults:
    """Results of facts. Each is made once for all who ask for it while the facts are the same, also for
    those who ask while it is being made."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Facts, asyncio.Future[Any]]] = {}

    async def get_result(
        self, key: Hashable, facts: Facts, make: Callable[[], Awaitable[Result]]
    ) -> Result:
        """The result for this key. Raises what `make` raises; then the next one makes it anew."""
        known, made = self._kept.get(key, (None, None))
        if made is None or known is not facts or _has_failed(made):
            if len(self._kept) >= MAX_CACHED_PAGES:
                self._kept.clear()
            made = asyncio.ensure_future(make())
            self._kept[key] = facts, made
        # if one waiting request is cancelled, the others still get the result
        result: Result = await asyncio.shield(made)
        return result


def _has_failed(made: asyncio.Future[Any]) -> bool:
    return made.done() and (made.cancelled() or made.exception() is not None)


class PageCache:
    """Facts, viewers and pages for the handlers of all addresses for people."""

    def __init__(self, live: LiveFacts, gate: Gate) -> None:
        self._live, self._gate, self._pages = live, gate, render.PageRenderer(live.around().zone)
        self.shared = SharedResults()

    async def get_visible_facts(self, request: web.Request) -> Facts:
        """The facts that the viewer may see. Raises StoreError."""
        facts, eyes = await self._live.get_facts(), self.get_visitor(request).eyes
        if eyes.all:
            return facts
        return await self.shared.get_result(
            ("facts", eyes), facts, lambda: asyncio.to_thread(eyes.filter_facts, facts)
        )

    def get_visitor(self, request: web.Request) -> Visitor:
        """Who makes the request."""
        return self._gate.identify_visitor(request.headers, self._live.get_now_s())

    async def read_alert_past(
        self, request: web.Request, alert: str
    ) -> tuple[list[detail.AlertChange], list[detail.AlertDelivery]]:
        """The changes of an alert and its deliveries, as far as the viewer may see them."""
        whole, eyes = await self._live.get_facts(), self.get_visitor(request).eyes
        line, told = await self._live.source.read(
            lambda store: (
                detail.read_alert_changes(store, alert),
                detail.read_alert_deliveries(store, alert),
            )
        )
        mine = eyes.is_owner_of(whole, alert)
        return eyes.filter_changes(whole, line), told if mine else [
            replace(d, answer="") for d in told
        ]

    async def require_own_alerts(self, eyes: Viewer, alerts: Sequence[str]) -> None:
        """Raise RequestRefused unless the viewer may answer all of these alerts."""
        whole = await self._live.get_facts()
        if not all(eyes.is_owner_of(whole, name) for name in alerts):
            raise RequestRefused("it is not of your jobs: its owner and administrators answer", 403)

    async def get_cached_page(
        self,
        request: web.Request,
        template: str,
        here: str,
        more: Callable[[Facts], Awaitable[dict[str, Any]]],
        part: int = 0,
    ) -> web.Response:
        """The page of this address, or a part of it. `more` makes what the template needs beside
        the facts."""
        facts, me = await self.get_visible_facts(request), self.get_visitor(request)

        async def make_page() -> str:
            return self._pages.render_page(template, facts, here, me=me, **await more(facts))

        return make_page_response(
            await self.shared.get_result((request.path, part, me), facts, make_page)
        )

    def render_fresh_page(
        self,
        request: web.Request,
        facts: Facts,
        template: str,
        here: str,
        more: dict[str, Any],
        status: int = 200,
    ) -> web.Response:
        """A page about one subject, made for this request and not kept."""
        me = self.get_visitor(request)
        return make_page_response(
            self._pages.render_page(template, facts, here, me=me, **more), status
        )


def make_page_response(text: str, status: int = 200, kind: str = "text/html") -> web.Response:
    """A response with the headers that every page has."""
    return web.Response(text=text, status=status, content_type=kind, headers=render.PAGE_HEADERS)


def redirect_to(where: str) -> web.Response:
    """A redirect to another page by GET, so that a reload does not repeat an order."""
    return web.Response(status=303, headers={**render.PAGE_HEADERS, "Location": where})


def parse_query_number(text: str, digits: int = 7) -> int:
    """Parse a number in a URL. Returns 0 if the text is not a number of at most `digits` digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else 0
