"""One node, one file system, one training: their addresses and what stands there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from aiohttp import web
from markupsafe import Markup

from sentinel.core.clock import Instant, elapsed
from sentinel.core.text import visible
from sentinel.core.values import size_text
from sentinel.status import detail, plot
from sentinel.status.node_states import OUT
from sentinel.status.types import ActionFact, Facts, NodesFact
from sentinel.web import grid
from sentinel.web.background import Aside
from sentinel.web.page_cache import Shown, answer, elsewhere, number_of
from sentinel.web.snapshot_cache import Live

if TYPE_CHECKING:
    from sentinel.stacks.shelf import Kept

HISTORY = 14 * 86_400.0
"""Seconds of history that are drawn."""

REDRAWN, DRAWN = 60.0, 100
"""Seconds for which a drawn history is shown again, and how many are kept."""


class Subjects:
    """Nodes, file systems and trainings."""

    def __init__(self, live: Live, shown: Shown) -> None:
        self._live, self._shown, self._aside = live, shown, Aside()
        self._drawn: dict[tuple[str, str, str], tuple[Instant, list[plot.Point]]] = {}
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get("/nodes", self.nodes),
            web.get("/nodes/grid.svg", self.grid),
            web.get("/nodes/at", self.node_at),
            web.get("/nodes/one", self.node),
            web.get("/files/one", self.file),
            web.get("/jobs/one", self.job),
        )

    async def nodes(self, request: web.Request) -> web.Response:
        """The grid, and why nodes are out of service."""

        def more(f: Facts) -> dict[str, Any]:
            out, fine = list[NodesFact](), list[NodesFact]()
            for group in f.nodes:
                (out if group.state in OUT or group.reason else fine).append(group)
            return {"out": out, "fine": fine, "stamp": _stamp(f.nodes)}

        return await self._shown.page(request, "nodes.html", "/nodes", more)

    async def grid(self, request: web.Request) -> web.Response:
        """The picture of the grid."""
        cells = await self._cells()
        text = grid.picture([group.state for group in cells.values()]) if cells else ""
        return answer(text, 200 if cells else 404, "image/svg+xml")

    async def node_at(self, request: web.Request) -> web.Response:
        """From a point of the picture to its node."""
        cells = await self._cells()
        place = grid.at(
            len(cells), number_of(request.query.get("x", "")), number_of(request.query.get("y", ""))
        )
        if place is None:
            raise web.HTTPNotFound
        return elsewhere(f"/nodes/one?name={quote([*cells][place])}")

    async def node(self, request: web.Request) -> web.Response:
        """One node: its state, reasons, GPUs, and what was done."""
        name, facts = request.query.get("name", "")[:253], await self._live.facts()
        around, now = self._live.around(), self._live.clock.now()
        group = (await self._cells()).get(name)
        found = await self._live.source.read(
            lambda _: (
                detail.readings(around.logbook, name),
                detail.gpus(around.gpus, name, now),
                detail.done(around.logbook, name),
            )
        )
        more = {
            "name": visible(name) or "?",
            "group": group,
            "alerts": [a for a in facts.alerts if name in (a.subject, a.labels.get("node"))],
            "readings": found[0],
            "gpus": found[1],
            "acts": found[2],
        }
        return self._shown.fresh(facts, "node.html", "/nodes", more)

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
        more = {"name": visible(path) or "?", "row": row, "plots": plots, "acts": (), "stacks": ()}
        return self._shown.fresh(facts, "one.html", "/files", more)

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
        acts, stacks = await self._done(check, row.job if row else "")
        more = {
            "name": visible(subject) or "?", "row": row, "plots": plots, "acts": acts, "stacks": stacks,
        }  # fmt: skip
        return self._shown.fresh(facts, "one.html", "/jobs", more)

    async def _done(self, check: str, job: str) -> tuple[list[ActionFact], list[Kept] | None]:
        """What the check asked for, and where the ranks stood: of the job that runs and of those
        that are meant there; None while the folder does not answer."""
        around = self._live.around()
        acts = await self._live.source.read(lambda _: detail.asked(around.logbook, check))
        jobs = {job, *(a.target for a in acts)}
        return acts, await self._aside.read(lambda: _kept(around.evidence, jobs))

    async def _cells(self) -> Mapping[str, NodesFact]:
        facts = await self._live.facts()
        return await asyncio.to_thread(_cells, facts.nodes)

    async def _points(self, check: str, subject: str, name: str) -> list[plot.Point]:
        """What is drawn, as it was read within REDRAWN: two weeks are many rows, one thread reads
        the state for everybody, and an open page asks every few seconds."""
        key, now = (check, subject, name), self._live.clock.now()
        read, points = self._drawn.get(key, (None, []))
        if read is None or elapsed(read, now) >= REDRAWN:
            points = plot.thinned(
                await self._live.source.read(
                    lambda store: detail.points(store, check, subject, name, now, HISTORY)
                )
            )
            self._keep(key, now, points)
        return points

    def _keep(self, key: tuple[str, str, str], now: Instant, points: list[plot.Point]) -> None:
        self._drawn.pop(key, None)
        if points:  # any address may be asked for; those of nothing cost nothing
            self._drawn[key] = now, points
        while len(self._drawn) > DRAWN:
            del self._drawn[next(iter(self._drawn))]

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


@lru_cache(maxsize=1)
def _cells(groups: tuple[NodesFact, ...]) -> Mapping[str, NodesFact]:
    return grid.cells(groups)


def _stamp(groups: Sequence[NodesFact]) -> str:
    """Another one when the picture is another, so that an open page asks for it then and only then."""
    text = "\n".join(f"{g.state} {g.nodes}" for g in groups)
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _percent(value: float) -> str:
    return f"{value:.4g}%"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _kept(folder: str, jobs: set[str]) -> list[Kept]:
    """The evidence there is; none where sentinel came without stacks."""
    try:
        from sentinel.stacks.shelf import kept
    except ModuleNotFoundError:
        return []
    return kept(folder, jobs)
