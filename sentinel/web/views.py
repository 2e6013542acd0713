"""The pages: what each address shows. Reading changes nothing; answers need the token."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from aiohttp import web
from markupsafe import Markup

from sentinel.core.model import Status
from sentinel.core.values import size_text
from sentinel.web import detail, doing, grid, metrics, plot, render
from sentinel.web.events import Events
from sentinel.web.gate import Gate, Refused
from sentinel.web.live import Live
from sentinel.web.nodestates import rank
from sentinel.web.nouns import Facts, NodesFact

FIRST, SIZE = 25, 200
"""Alerts on the overview, and on one page of the list."""

LENGTHS = (
    ("1h", "1 hour"),
    ("4h", "4 hours"),
    ("12h", "12 hours"),
    ("1d", "1 day"),
    ("7d", "7 days"),
)
HISTORY = 14 * 86_400.0
OUT = rank("maint")
"""States up to this one are out of service."""

CACHED = 64


class Views:
    """Every address for people, and `/metrics`."""

    def __init__(self, live: Live, gate: Gate, events: Events) -> None:
        self._live, self._gate = live, gate
        self._pages = render.Pages(live.around().zone)
        self._kept: dict[str, tuple[Facts, str]] = {}
        lists = [web.get(path, self._list(name)) for path, name in _LISTS.items()]
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get("/", self.overview),
            web.get("/alerts", self.alerts),
            web.get("/alerts/{id}", self.alert),
            web.post("/alerts/{id}/ack", self.ack),
            web.post("/alerts/{id}/silence", self.silence),
            web.get("/nodes", self.nodes),
            web.get("/nodes/grid.svg", self.grid),
            web.get("/nodes/at", self.node_at),
            web.get("/nodes/one", self.node),
            web.get("/files/one", self.file),
            web.get("/jobs/one", self.job),
            *lists,
            web.get("/metrics", self.metrics),
            web.get("/events", events.serve),
            web.get("/static/{digest}/{name}", self.static),
        )

    async def overview(self, request: web.Request) -> web.Response:
        """All at a glance."""
        return await self._page(request, "overview.html", "/", _overview)

    async def alerts(self, request: web.Request) -> web.Response:
        """A part of all alerts, and what happened lately."""
        first = _count(request.query.get("from", ""))
        past = await self._live.source.read(lambda store: detail.happened(store, limit=50))

        def more(f: Facts) -> dict[str, Any]:
            rows = f.alerts[first : first + SIZE]
            return {
                "rows": rows,
                "first": first,
                "size": SIZE,
                "total": len(f.alerts),
                "past": past,
            }

        return await self._page(request, "alerts.html", "/alerts", more)

    async def alert(self, request: web.Request, said: str = "", status: int = 200) -> web.Response:
        """One alert with its time line, and the forms to answer it."""
        name, facts = request.match_info["id"], await self._live.facts()
        line, told = await self._live.source.read(
            lambda store: (detail.happened(store, name), detail.delivered(store, name))
        )
        found = next((a for a in facts.alerts if a.id == name), None)
        if found is None and not line:
            raise web.HTTPNotFound
        title = found or line[0]
        more = {
            "a": found,
            "id": name,
            "name": f"{_of(title)}",
            "line": line,
            "told": told,
            "said": said,
            "may": bool(self._gate.token),
            "user": self._gate.user(request.headers),
            "lengths": LENGTHS,
        }
        text = self._pages.page("alert.html", facts, "/alerts", **more)
        return _answer(text, status)

    async def ack(self, request: web.Request) -> web.Response:
        """Somebody has it."""
        form = await _form(request)
        try:
            self._gate.admit(request.headers, form.get("token", ""))
            who = self._gate.who(request.headers, form.get("who", ""), "the status page")
            await doing.acknowledge(self._live, request.match_info["id"], who)
        except Refused as error:
            return await self._refused(request, error)
        return _back(request)

    async def silence(self, request: web.Request) -> web.Response:
        """Nobody is told for a while."""
        form = await _form(request)
        try:
            self._gate.admit(request.headers, form.get("token", ""))
            who = self._gate.who(request.headers, form.get("who", ""), "the status page")
            length = form.get("for", "")
            await doing.silence(self._live, request.match_info["id"], who, length)
        except Refused as error:
            return await self._refused(request, error)
        return _back(request)

    async def nodes(self, request: web.Request) -> web.Response:
        """The grid, and why nodes are out of service."""

        def more(f: Facts) -> dict[str, Any]:
            out = [g for g in f.nodes if rank(g.state) <= OUT or g.reason]
            fine = [g for g in f.nodes if g not in out] if len(f.nodes) < 2000 else []
            return {"out": out, "fine": fine, "stamp": int(f.nodes_seen or 0)}

        return await self._page(request, "nodes.html", "/nodes", more)

    async def grid(self, request: web.Request) -> web.Response:
        """The picture of the grid."""
        cells = await self._cells()
        text = grid.picture([state for _, state in cells]) if cells else ""
        return _answer(text, 200 if cells else 404, "image/svg+xml")

    async def node_at(self, request: web.Request) -> web.Response:
        """From a point of the picture to its node."""
        cells = await self._cells()
        place = grid.at(
            len(cells), _count(request.query.get("x", "")), _count(request.query.get("y", ""))
        )
        if place is None:
            raise web.HTTPNotFound
        where = f"/nodes/one?name={quote(cells[place][0])}"
        return web.Response(status=303, headers={**render.HEADERS, "Location": where})

    async def node(self, request: web.Request) -> web.Response:
        """One node: its state, reasons, GPUs, and what was done."""
        name, facts = request.query.get("name", "")[:253], await self._live.facts()
        around, now = self._live.around(), self._live.clock.now()
        states = dict(await self._cells())
        found = await self._live.source.read(
            lambda _: (
                detail.readings(around.logbook, name),
                detail.gpus(around.gpus, name, now),
            )
        )
        more = {
            "name": name or "?",
            "group": _group(facts, name) if name in states else None,
            "alerts": [a for a in facts.alerts if name in (a.subject, a.labels.get("node"))],
            "readings": found[0],
            "gpus": found[1],
            "acts": [a for a in facts.actions if a.target == name],
        }
        return _answer(self._pages.page("node.html", facts, "/nodes", **more))

    async def file(self, request: web.Request) -> web.Response:
        """One file system with its history and forecast."""
        check, path = request.query.get("check", ""), request.query.get("path", "")
        facts = await self._live.facts()
        row = next((d for d in facts.disks if (d.check, d.path) == (check, path)), None)
        space = await self._points(check, path, "free_bytes")
        used = await self._points(check, path, "used_percent")
        inodes = await self._points(check, path, "inodes_used_percent")
        bounds = (row.full_in_early_s, row.full_in_s, row.full_in_late_s) if row else ()
        known = [facts.at + s for s in bounds if s is not None]
        ahead = (known[0], known[1], known[2]) if len(known) == 3 else None
        plots = [
            ("Space used", self._plot(facts, "Space used", used, _percent, 100.0, ahead)),
            ("Space free", self._plot(facts, "Space free", space, size_text, None, None)),
            ("Inodes used", self._plot(facts, "Inodes used", inodes, _percent, 100.0, None)),
        ]
        more = {"name": path or "?", "row": row, "plots": plots, "evidence": ()}
        return _answer(self._pages.page("one.html", facts, "/files", **more))

    async def job(self, request: web.Request) -> web.Response:
        """One training with its progress, and the evidence that was taken of it."""
        check, subject = request.query.get("check", ""), request.query.get("subject", "")
        facts = await self._live.facts()
        row = next((j for j in facts.jobs if (j.check, j.subject) == (check, subject)), None)
        shown = (("progress", "Progress"), ("running", "Jobs running"), ("size_bytes", "Log size"))
        plots = []
        for name, title in shown:
            points = await self._points(check, subject, name)
            if points:
                words = size_text if name == "size_bytes" else _plain
                plots.append((title, self._plot(facts, title, points, words, None, None)))
        evidence = [a for a in facts.actions if a.action == "stacks" and a.by == check]
        more = {"name": subject or "?", "row": row, "plots": plots, "evidence": evidence}
        return _answer(self._pages.page("one.html", facts, "/jobs", **more))

    async def metrics(self, request: web.Request) -> web.Response:
        """For Prometheus."""
        facts = await self._live.facts()
        headers = {**render.HEADERS, "Content-Type": metrics.CONTENT_TYPE}
        return web.Response(body=metrics.metrics(facts), headers=headers)

    async def static(self, request: web.Request) -> web.Response:
        """Our own few files; a name that is none of them is no path."""
        name = request.match_info["name"]
        try:
            body = render.content(name)
        except KeyError:
            raise web.HTTPNotFound from None
        kind = render.TYPES[name[name.rindex(".") :]]
        headers = {**render.HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)

    def _list(self, name: str) -> Callable[[web.Request], Any]:
        async def show(request: web.Request) -> web.Response:
            return await self._page(request, "list.html", request.path, lambda _: {"name": name})

        return show

    async def _page(
        self,
        request: web.Request,
        template: str,
        here: str,
        more: Callable[[Facts], dict[str, Any]],
    ) -> web.Response:
        """The page; for all who ask while the facts are the same it is made once."""
        facts, key = await self._live.facts(), request.path_qs
        kept = self._kept.get(key)
        if kept is None or kept[0] is not facts:
            kept = facts, self._pages.page(template, facts, here, **more(facts))
            if len(self._kept) >= CACHED:
                self._kept.clear()
            self._kept[key] = kept
        return _answer(kept[1])

    async def _refused(self, request: web.Request, error: Refused) -> web.Response:
        try:
            status = 403 if error.status == 401 else error.status  # 401 asks for another way
            return await self.alert(request, f"Not done: {error}.", status)
        except web.HTTPNotFound:
            raise web.HTTPNotFound from None

    async def _cells(self) -> list[tuple[str, str]]:
        facts = await self._live.facts()
        return await asyncio.to_thread(_cells, facts.nodes)

    async def _points(self, check: str, subject: str, name: str) -> list[tuple[float, float]]:
        now = self._live.clock.now()
        return await self._live.source.read(
            lambda store: detail.points(store, check, subject, name, now, HISTORY)
        )

    def _plot(
        self,
        facts: Facts,
        title: str,
        points: Sequence[tuple[float, float]],
        words: Callable[[float], str],
        limit: float | None,
        ahead: tuple[float, float, float] | None,
    ) -> Markup:
        made = plot.Plot(
            title=title,
            points=points,
            now=facts.at,
            words=words,
            zone=self._live.around().zone,
            limit=limit if ahead else None,
            ahead=ahead,
        )
        return Markup(plot.svg(made))  # noqa: S704 - drawn here, its texts are escaped


_LISTS = {
    "/files": "File systems",
    "/jobs": "Jobs",
    "/gpus": "GPUs under suspicion",
    "/audit": "Audit log",
}


@lru_cache(maxsize=4)
def _cells(groups: tuple[NodesFact, ...]) -> list[tuple[str, str]]:
    return grid.cells(groups)


def _overview(f: Facts) -> dict[str, Any]:
    tones = Counter(a.tone for a in f.firing)
    told = [(s.value, tones[s]) for s in sorted(Status, key=lambda s: -s.rank) if tones[s]]
    words = ", ".join(f"{n} {tone}" for tone, n in told) or "no alert fires"
    return {
        "headline": words,
        "tones": told,
        "pending": len(f.alerts) - len(f.firing),
        "quiet": sum(a.quiet for a in f.firing),
        "blind": sum(c.blind for c in f.checks),
        "shown": f.alerts[:FIRST],
        "out": [g for g in f.nodes if rank(g.state) <= OUT],
        "strip": Markup(grid.strip(f.node_states)) if f.nodes else "",  # noqa: S704 - words of ours
    }


def _group(facts: Facts, name: str) -> NodesFact | None:
    return next((g for g in facts.nodes if any(n == name for n, _ in _cells((g,)))), None)


def _of(one: Any) -> str:
    return one.check if one.subject in ("", one.check) else f"{one.check} {one.subject}"


async def _form(request: web.Request) -> dict[str, str]:
    """The fields that are texts; none where the body is no form."""
    try:
        fields = await asyncio.wait_for(request.post(), 10.0)
    except asyncio.TimeoutError:
        raise web.HTTPRequestTimeout from None
    except (ValueError, LookupError):
        return {}
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def _back(request: web.Request) -> web.Response:
    """To the alert, by GET: a reload repeats nothing."""
    where = f"/alerts/{quote(request.match_info['id'], safe='')}"
    return web.Response(status=303, headers={**render.HEADERS, "Location": where})


def _answer(text: str, status: int = 200, kind: str = "text/html") -> web.Response:
    return web.Response(text=text, status=status, content_type=kind, headers=render.HEADERS)


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0


def _percent(value: float) -> str:
    return f"{value:.1f}%"


def _plain(value: float) -> str:
    return f"{value:,.0f}"
