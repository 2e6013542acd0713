"""Pages made once for all who ask while the facts are the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from sentinel.status import detail
from sentinel.status.privacy import Eyes
from sentinel.status.types import Facts
from sentinel.web import render
from sentinel.web.auth import Gate, Refused, Viewer
from sentinel.web.snapshot_cache import Live

CACHED = 64


class Shown:
    """What the addresses for people share."""

    def __init__(self, live: Live, gate: Gate) -> None:
        self._live, self._gate, self._pages = live, gate, render.Pages(live.around().zone)
        self._kept: dict[tuple[str, int, Viewer], tuple[Facts, str]] = {}
        self._seen: dict[Eyes, tuple[Facts, Facts]] = {}

    async def facts(self, request: web.Request) -> Facts:
        """What who asks may see."""
        facts, eyes = await self._live.facts(), self.viewer(request).eyes
        if eyes.all:
            return facts
        if len(self._seen) >= CACHED:
            self._seen.clear()
        whole, seen = self._seen.get(eyes, (None, facts))
        if whole is not facts:
            seen = await asyncio.to_thread(eyes.facts, facts)
            self._seen[eyes] = facts, seen
        return seen

    def viewer(self, request: web.Request) -> Viewer:
        """Who asks."""
        return self._gate.viewer(request.headers, self._live.seconds())

    async def past(
        self, request: web.Request, alert: str
    ) -> tuple[list[detail.Happened], list[detail.Delivered]]:
        """What happened to an alert and who was told, as far as who asks may see."""
        whole, eyes = await self._live.facts(), self.viewer(request).eyes
        line, told = await self._live.source.read(
            lambda store: (detail.happened(store, alert), detail.delivered(store, alert))
        )
        mine = eyes.owns(whole, alert)
        return eyes.happened(whole, line), told if mine else [replace(d, answer="") for d in told]

    async def own(self, eyes: Eyes, alerts: Sequence[str]) -> None:
        """Raises Refused unless all of these alerts are theirs."""
        whole = await self._live.facts()
        if not all(eyes.owns(whole, name) for name in alerts):
            raise Refused("it is not of your jobs: its owner and administrators answer", 403)

    async def page(
        self,
        request: web.Request,
        template: str,
        here: str,
        more: Callable[[Facts], dict[str, Any]],
        part: int = 0,
    ) -> web.Response:
        """The page of this address, or a part of it; `more` makes what it needs besides the facts."""
        facts, me = await self.facts(request), self.viewer(request)
        key = request.path, part, me
        kept = self._kept.get(key)
        if kept is None or kept[0] is not facts:
            kept = facts, self._pages.page(template, facts, here, me=me, **more(facts))
            if len(self._kept) >= CACHED:
                self._kept.clear()
            self._kept[key] = kept
        return answer(kept[1])

    def fresh(
        self,
        request: web.Request,
        facts: Facts,
        template: str,
        here: str,
        more: dict[str, Any],
        status: int = 200,
    ) -> web.Response:
        """A page about one thing, made for this request."""
        me = self.viewer(request)
        return answer(self._pages.page(template, facts, here, me=me, **more), status)


def answer(text: str, status: int = 200, kind: str = "text/html") -> web.Response:
    """With the headers that every page has."""
    return web.Response(text=text, status=status, content_type=kind, headers=render.HEADERS)


def elsewhere(where: str) -> web.Response:
    """Look there, by GET: a reload repeats nothing."""
    return web.Response(status=303, headers={**render.HEADERS, "Location": where})


def number_of(text: str, digits: int = 7) -> int:
    """A number of an address of at most so many digits; 0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else 0
