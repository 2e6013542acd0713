"""One node, one file system, one training: their addresses and what stands there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import web
from markupsafe import Markup
from msgspec.structs import replace

from sentinel.alerting.state import Store
from sentinel.core.clock import Instant, elapsed
from sentinel.core.digests import blake2b
from sentinel.core.hostlist import printed
from sentinel.core.text import visible
from sentinel.status import course, detail, plot, room
from sentinel.status.course import Asked, Holder, Past
from sentinel.status.folding import single
from sentinel.status.node_states import OUT
from sentinel.status.privacy import HIDDEN, Eyes, hidden
from sentinel.status.types import ActionFact, AlertFact, DiskFact, Facts, JobFact, NodesFact
from sentinel.web import grid
from sentinel.web.background import Aside
from sentinel.web.page_cache import Shown, answer, elsewhere, number_of
from sentinel.web.render import HEADERS
from sentinel.web.snapshot_cache import Live

if TYPE_CHECKING:
    from sentinel.stacks.shelf import Kept

HISTORY = 14 * 86_400
"""Seconds of history that are drawn."""

SPANS = (("hour", 3600), ("6 hours", 21_600), ("day", 86_400), ("2 weeks", HISTORY))
"""What a page offers."""

REDRAWN, DRAWN = 60.0, 100
"""Seconds for which a drawn history is shown again, and how many are kept."""


class Subjects:
    """Nodes, file systems and trainings."""

    def __init__(self, live: Live, shown: Shown) -> None:
        self._live, self._shown, self._aside = live, shown, Aside()
        self._room: tuple[Facts, room.Room] | None = None
        self._drawn: dict[tuple[str, ...], tuple[Instant, Past]] = {}
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get("/nodes", self.nodes),
            web.get("/nodes/grid.svg", self.grid),
            web.get("/nodes/room.json", self.room_told),
            web.get("/nodes/at", self.node_at),
            web.get("/nodes/one", self.node),
            web.get("/files/one", self.file),
            web.get("/files/one.json", self.file_told),
            web.get("/jobs/one", self.job),
            web.get("/jobs/one.json", self.job_told),
        )

    async def nodes(self, request: web.Request) -> web.Response:
        """The grid, and why nodes are out of service."""

        made = await self._room_of(await self._shown.facts(request))
        racks, boxes = room.table(made), room.boxes(made)

        def more(f: Facts) -> dict[str, Any]:
            out, fine = list[NodesFact](), list[NodesFact]()
            for group in f.nodes:
                (out if group.state in OUT or group.reason else fine).append(group)
            return {
                "out": out,
                "fine": fine,
                "stamp": _stamp(f.nodes),
                "racks": racks,
                "boxes": boxes,
            }

        return await self._shown.page(request, "nodes.html", "/nodes", more)

    async def room_told(self, request: web.Request) -> web.Response:
        """The machine room as plain data, for the browser that draws it."""
        made = await self._room_of(await self._shown.facts(request))
        return _data({**msgspec.structs.asdict(made), "colours": grid.COLOURS})

    async def _room_of(self, facts: Facts) -> room.Room:
        """Made once for all who ask while the facts are the same, and beside the loop."""
        if self._room is None or self._room[0] is not facts:
            self._room = facts, await asyncio.to_thread(room.room, facts)
        return self._room[1]

    async def grid(self, request: web.Request) -> web.Response:
        """The picture of the grid."""
        cells = await self._cells(request)
        text = grid.picture([group.state for group in cells.values()]) if cells else ""
        return answer(text, 200 if cells else 404, "image/svg+xml")

    async def node_at(self, request: web.Request) -> web.Response:
        """From a point of the picture to its node."""
        cells = await self._cells(request)
        place = grid.at(
            len(cells), number_of(request.query.get("x", "")), number_of(request.query.get("y", ""))
        )
        if place is None:
            raise web.HTTPNotFound
        return elsewhere(f"/nodes/one?name={quote([*cells][place])}")

    async def node(self, request: web.Request) -> web.Response:
        """One node: its state, reasons, GPUs, and what was done."""
        name, facts = request.query.get("name", "")[:253], await self._shown.facts(request)
        around, now = self._live.around(), self._live.clock.now()
        group = (await self._cells(request)).get(name)
        found = await self._live.source.read(
            lambda _: (
                detail.readings(around.logbook, name),
                detail.gpus(around.gpus, name, now),
                detail.done(around.logbook, name),
            )
        )
        eyes, whole = self._shown.viewer(request).eyes, await self._live.facts()
        if not eyes.all and hidden("nodes", whole):
            found = [], [], []
        more = {
            "name": visible(name) or "?",
            "group": group,
            "alerts": single(
                [a for a in facts.alerts if name in (a.subject, a.labels.get("node"))]
            ),
            "readings": found[0],
            "gpus": found[1],
            "acts": eyes.actions(whole, found[2]),
        }
        return self._shown.fresh(request, facts, "node.html", "/nodes", more)

    async def file(self, request: web.Request) -> web.Response:
        """One file system with its history, its limits and when it will be full."""
        facts = await self._shown.facts(request)
        course = await self._file_course(request, facts)
        row = _disk(facts, request)
        grew, eyes = await self._grew(row) if row else (), self._shown.viewer(request).eyes
        more = {
            **_one(request, course, "path"),
            "row": row,
            "acts": (),
            "stacks": (),
            "grew": [one for one in grew if eyes.all or one.whole],
        }
        return self._shown.fresh(request, facts, "one.html", "/files", more)

    async def job(self, request: web.Request) -> web.Response:
        """One training: how it went, and the evidence that was taken of it."""
        facts = await self._shown.facts(request)
        course = await self._job_course(request, facts)
        row = _training(facts, request)
        eyes, check = self._shown.viewer(request).eyes, request.query.get("check", "")
        job = row.job if row and _own(eyes, row) else ""
        acts, stacks = await self._done(check, job, alone=not eyes.all)
        acts = eyes.actions(await self._live.facts(), acts)
        more = {**_one(request, course, "subject"), "row": row, "acts": acts, "stacks": stacks}
        mine = [a for a in facts.alerts if row and _about(a, row)]
        more["alerts"] = single(sorted(mine, key=lambda a: not _its(a, row)))
        more["saved"] = [a for a in facts.jobs if row and a.subject == row.subject and a is not row]
        return self._shown.fresh(request, facts, "one.html", "/jobs", more)

    async def file_told(self, request: web.Request) -> web.Response:
        """The same course as plain data, for the browser that draws it."""
        return _data(plot.told(await self._file_course(request, await self._shown.facts(request))))

    async def job_told(self, request: web.Request) -> web.Response:
        """Likewise of a training."""
        return _data(plot.told(await self._job_course(request, await self._shown.facts(request))))

    async def _job_course(self, request: web.Request, facts: Facts) -> plot.Course:
        row, around = _training(facts, request), self._live.around()
        stretch = _asked(request, facts, "subject")
        asked = replace(
            stretch,
            nodes=row.nodes if row else "",
            checkpoints=tuple(c.name for c in around.checks if c.common.kind == "checkpoint"),
        )
        return await self._course(
            request,
            row,
            asked,
            lambda store, now: course.training(store, around.logbook, asked, now),
        )

    async def _file_course(self, request: web.Request, facts: Facts) -> plot.Course:
        asked, row = _asked(request, facts, "path"), _disk(facts, request)
        made = await self._course(
            request, row, asked, lambda store, now: course.files(store, asked, now)
        )
        return (
            made
            if row is None
            else replace(made, lines=[_limited(n, row, facts) for n in made.lines])
        )

    async def _course(
        self,
        request: web.Request,
        row: DiskFact | JobFact | None,
        asked: Asked,
        read: Callable[[Store, Instant], Past],
    ) -> plot.Course:
        """What is drawn, as it was read within REDRAWN: two weeks are many rows, one thread reads
        the state for everybody, and an open page asks every few seconds. Who may not see it all is shown
        nothing of what has no `row` for them."""
        eyes = self._shown.viewer(request).eyes
        around, now = self._live.around(), self._live.clock.now()
        key = (
            request.path.removesuffix(".json"),
            asked.check,
            asked.subject,
            request.query.get("at", ""),
            request.query.get("span", ""),
        )
        at, past = self._drawn.get(key, (None, Past()))
        if at is None or elapsed(at, now) >= REDRAWN:
            past = await self._live.source.read(lambda store: read(store, now))
            self._keep(key, now, past)
        if row is None and not eyes.all:
            past = Past()
        elif isinstance(row, JobFact) and not _own(eyes, row):
            lines = [line for line in past.lines if line.name not in course.CONTENT]
            past = Past(lines=lines, marks=[replace(m, text=HIDDEN) for m in past.marks])
        first = min((line.points[0][0] for line in past.lines if line.points), default=asked.first)
        moment = number_of(request.query.get("at", ""), 12)
        return plot.Course(
            title=visible(asked.subject),
            first=max(first, asked.first),
            now=asked.last,
            zone=around.zone,
            lines=past.lines,
            marks=course.as_of(past.marks, asked.last),
            at=float(moment) if moment else None,
        )

    async def _grew(self, row: DiskFact) -> Sequence[Holder]:
        """Who has most of it and grew how fast, as it was read within REDRAWN."""
        key, now = ("grew", row.check, row.path), self._live.clock.now()
        at, past = self._drawn.get(key, (None, Past()))
        if at is None or elapsed(at, now) >= REDRAWN:
            rows = _holders(await self._live.facts(), row.path)
            grew = await self._live.source.read(lambda s: course.grown(s, rows, now, HISTORY))
            past = Past(grew=grew)
            self._keep(key, now, past)
        return past.grew

    async def _done(
        self, check: str, job: str, alone: bool
    ) -> tuple[list[ActionFact], list[Kept] | None]:
        """What the check asked for, and where the ranks stood: of the job that runs and, unless it is to
        be `alone`, of those that are meant there; None while the folder does not answer."""
        around = self._live.around()
        acts = await self._live.source.read(lambda _: detail.asked(around.logbook, check))
        jobs = {job} if alone else {job, *(a.target for a in acts)}
        return acts, await self._aside.read(lambda: _kept(around.evidence, jobs))

    async def _cells(self, request: web.Request) -> Mapping[str, NodesFact]:
        facts = await self._shown.facts(request)
        return await asyncio.to_thread(_cells, facts.nodes)

    def _keep(self, key: tuple[str, ...], now: Instant, past: Past) -> None:
        self._drawn.pop(key, None)
        if past.grew or any(line.parts for line in past.lines):  # any address may be asked for
            self._drawn[key] = now, past
        while len(self._drawn) > DRAWN:
            del self._drawn[next(iter(self._drawn))]


@lru_cache(maxsize=1)
def _cells(groups: tuple[NodesFact, ...]) -> Mapping[str, NodesFact]:
    return room.cells(groups)


def _stamp(groups: Sequence[NodesFact]) -> str:
    """Another one when the picture is another, so that an open page asks for it then and only then."""
    text = "\n".join(f"{g.state} {g.nodes}" for g in groups)
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _asked(request: web.Request, facts: Facts, name: str) -> Asked:
    """The stretch of time of the address: `span` seconds that end now, or around `at`."""
    query = request.query
    span = float(min(number_of(query.get("span", ""), 12) or HISTORY, HISTORY))
    at = number_of(query.get("at", ""), 12)
    last = min(facts.at, at + span / 2) if at else facts.at
    return Asked(
        check=query.get("check", ""), subject=query.get(name, ""), first=last - span, last=last
    )


def _one(request: web.Request, made: plot.Course, name: str) -> dict[str, Any]:
    """What the page of one training or file system needs of the address."""
    mine = {k: request.query.get(k, "") for k in ("check", name)}
    here, at = f"{request.path}?{urlencode(mine)}", number_of(request.query.get("at", ""), 12)
    span = number_of(request.query.get("span", ""), 12)
    again = urlencode({**mine, **({"at": at} if at else {}), **({"span": span} if span else {})})
    return {
        "name": visible(request.query.get(name, "")) or "?",
        "here_one": here,
        "data": f"{request.path}.json?{again}",
        "spans": [(word, seconds, seconds == (span or HISTORY)) for word, seconds in SPANS],
        "course": made,
        "marks": [m for m in made.marks if m.kind != "checkpoint"],
        "saves": [m for m in made.marks if m.kind == "checkpoint"],
        "picture": Markup(plot.svg(made)),  # noqa: S704 - drawn here, its texts are escaped
        "alerts": (),
        "saved": (),
        "grew": (),
    }


def _data(told: Mapping[str, Any]) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(told),
        content_type="application/json",
        headers=HEADERS,
    )


def _disk(facts: Facts, request: web.Request) -> DiskFact | None:
    wanted = request.query.get("check", ""), request.query.get("path", "")
    return next((d for d in facts.disks if (d.check, d.path) == wanted), None)


def _training(facts: Facts, request: web.Request) -> JobFact | None:
    wanted = request.query.get("check", ""), request.query.get("subject", "")
    return next((j for j in facts.jobs if (j.check, j.subject) == wanted), None)


def _limited(line: plot.Line, row: DiskFact, facts: Facts) -> plot.Line:
    """With its limits, and when it will be full."""
    if line.name != "used_percent":
        return line
    levels = (("warning", row.warn_percent), ("critical", row.critical_percent))
    known = [
        facts.at + s
        for s in (row.full_in_early_s, row.full_in_s, row.full_in_late_s)
        if s is not None
    ]
    return replace(
        line,
        limits=[(name, level) for name, level in levels if level is not None],
        ahead=(known[0], known[1], known[2]) if len(known) == 3 else None,
    )


def _about(alert: AlertFact, row: JobFact) -> bool:
    """Whether it is of this training, of its job or of its nodes."""
    return _its(alert, row) or bool(row.nodes and alert.labels.get("node") in _hosts(row.nodes))


def _own(eyes: Eyes, row: JobFact | None) -> bool:
    """Whether all of this training may be seen."""
    return eyes.all or bool(row and row.user and row.user == eyes.name)


def _its(alert: AlertFact, row: JobFact | None) -> bool:
    """Whether it is of the training itself."""
    name = row.subject if row else ""
    return alert.subject == name or alert.subject.startswith(f"{name} ")


def _holders(facts: Facts, path: str) -> list[Holder]:
    """What `du` and `quota` know of a file system and below it (`/home user ann`, `/home tree`), with the
    directories and owners of trees; the largest first."""
    inside, found = (path.rstrip("/") + "/", f"{path} "), list[Holder]()
    for d in facts.disks:
        of: dict[str, Any] = {"check": d.check, "subject": d.path}
        if d.path != path and d.path.startswith(inside) and d.used_bytes is not None:
            found.append(Holder(name=d.path, used=d.used_bytes, **of))
        if d.path == path or d.path.startswith(inside):
            parts = d.parts.items()
            found += [Holder(name=n, series=n, used=size, **of) for n, size in parts]
    return sorted(found, key=lambda one: -one.used)[:20]


@lru_cache(maxsize=64)
def _hosts(nodes: str) -> frozenset[str]:
    """The names of a hostlist."""
    return frozenset(printed(nodes))


def _kept(folder: str, jobs: set[str]) -> list[Kept]:
    """The evidence there is; none where sentinel came without stacks."""
    try:
        from sentinel.stacks.shelf import kept
    except ModuleNotFoundError:
        return []
    return kept(folder, jobs)
