"""Pages made once for all who ask while the facts are the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from sentinel.status import detail
from sentinel.status.privacy import Viewer
from sentinel.status.types import Facts
from sentinel.web import render
from sentinel.web.auth import Gate, RequestRefused, Visitor
from sentinel.web.snapshot_cache import LiveFacts

MAX_CACHED_PAGES = 64


class PageCache:
    """What the addresses for people share."""

    def __init__(self, live: LiveFacts, gate: Gate) -> None:
        self._live, self._gate, self._pages = live, gate, render.PageRenderer(live.around().zone)
        self._kept: dict[tuple[str, int, Visitor], tuple[Facts, str]] = {}
        self._seen: dict[Viewer, tuple[Facts, Facts]] = {}

    async def get_visible_facts(self, request: web.Request) -> Facts:
        """What who asks may see."""
        facts, eyes = await self._live.get_facts(), self.get_visitor(request).eyes
        if eyes.all:
            return facts
        if len(self._seen) >= MAX_CACHED_PAGES:
            self._seen.clear()
        whole, seen = self._seen.get(eyes, (None, facts))
        if whole is not facts:
            seen = await asyncio.to_thread(eyes.filter_facts, facts)
            self._seen[eyes] = facts, seen
        return seen

    def get_visitor(self, request: web.Request) -> Visitor:
        """Who asks."""
        return self._gate.identify_visitor(request.headers, self._live.get_now_s())

    async def read_alert_past(
        self, request: web.Request, alert: str
    ) -> tuple[list[detail.AlertChange], list[detail.AlertDelivery]]:
        """What happened to an alert and who was told, as far as who asks may see."""
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
        """Raises RequestRefused unless all of these alerts are theirs."""
        whole = await self._live.get_facts()
        if not all(eyes.is_owner_of(whole, name) for name in alerts):
            raise RequestRefused("it is not of your jobs: its owner and administrators answer", 403)

    async def get_cached_page(
        self,
        request: web.Request,
        template: str,
        here: str,
        more: Callable[[Facts], dict[str, Any]],
        part: int = 0,
    ) -> web.Response:
        """The page of this address, or a part of it; `more` makes what it needs besides the facts."""
        facts, me = await self.get_visible_facts(request), self.get_visitor(request)
        key = request.path, part, me
        kept = self._kept.get(key)
        if kept is None or kept[0] is not facts:
            kept = facts, self._pages.render_page(template, facts, here, me=me, **more(facts))
            if len(self._kept) >= MAX_CACHED_PAGES:
                self._kept.clear()
            self._kept[key] = kept
        return make_page_response(kept[1])

    def render_fresh_page(
        self,
        request: web.Request,
        facts: Facts,
        template: str,
        here: str,
        more: dict[str, Any],
        status: int = 200,
    ) -> web.Response:
        """A page about one thing, made for this request."""
        me = self.get_visitor(request)
        return make_page_response(
            self._pages.render_page(template, facts, here, me=me, **more), status
        )


def make_page_response(text: str, status: int = 200, kind: str = "text/html") -> web.Response:
    """With the headers that every page has."""
    return web.Response(text=text, status=status, content_type=kind, headers=render.PAGE_HEADERS)


def redirect_to(where: str) -> web.Response:
    """Look there, by GET: a reload repeats nothing."""
    return web.Response(status=303, headers={**render.PAGE_HEADERS, "Location": where})


def parse_query_number(text: str, digits: int = 7) -> int:
    """A number of an address of at most so many digits; 0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else 0
