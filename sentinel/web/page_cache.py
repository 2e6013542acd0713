"""Pages made once for all who ask while the facts are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from sentinel.status.types import Facts
from sentinel.web import render
from sentinel.web.auth import Gate, Viewer
from sentinel.web.snapshot_cache import Live

CACHED = 64


class Shown:
    """What the addresses for people share."""

    def __init__(self, live: Live, gate: Gate) -> None:
        self._live, self._gate, self._pages = live, gate, render.Pages(live.around().zone)
        self._kept: dict[tuple[str, int, Viewer], tuple[Facts, str]] = {}

    def viewer(self, request: web.Request) -> Viewer:
        """Who asks."""
        return self._gate.viewer(request.headers, self._live.seconds())

    async def page(
        self,
        request: web.Request,
        template: str,
        here: str,
        more: Callable[[Facts], dict[str, Any]],
        part: int = 0,
    ) -> web.Response:
        """The page of this address, or a part of it; `more` makes what it needs besides the facts."""
        facts, me = await self._live.facts(), self.viewer(request)
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
