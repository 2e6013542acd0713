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
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.digests import blake2b
from sentinel.core.hostlist import expand_printed
from sentinel.core.text import visible
from sentinel.status import chart_history, detail, machine_room, plot
from sentinel.status.chart_history import ChartHistory, ChartRequest, SpaceHolder
from sentinel.status.folding import fold_singly
from sentinel.status.node_states import OUT_OF_SERVICE_STATES
from sentinel.status.privacy import HIDDEN_TEXT, Viewer, is_hidden
from sentinel.status.types import ActionFact, AlertFact, DiskFact, Facts, JobFact, NodesFact
from sentinel.web import grid
from sentinel.web.background import BackgroundReader
from sentinel.web.page_cache import PageCache, make_page_response, parse_query_number, redirect_to
from sentinel.web.render import PAGE_HEADERS
from sentinel.web.snapshot_cache import LiveFacts

if TYPE_CHECKING:
    from sentinel.stacks.shelf import KeptStacks

HISTORY_S = 14 * 86_400
"""Seconds of history that are drawn."""

SPAN_CHOICES = (("hour", 3600), ("6 hours", 21_600), ("day", 86_400), ("2 weeks", HISTORY_S))
"""What a page offers."""

REDRAWN, DRAWN = 60.0, 100
"""Seconds for which a drawn history is shown again, and how many are kept."""


class SubjectPages:
    """Nodes, file systems and trainings."""

    def __init__(self, live: LiveFacts, shown: PageCache) -> None:
        self._live, self._shown, self._aside = live, shown, BackgroundReader()
        self._room: tuple[Facts, machine_room.MachineRoom] | None = None
        self._drawn: dict[tuple[str, ...], tuple[Instant, ChartHistory]] = {}
        self.routes: Sequence[web.AbstractRouteDef] = (
            web.get("/nodes", self.show_nodes),
            web.get("/nodes/grid.svg", self.send_node_grid),
            web.get("/nodes/room.json", self.send_room_json),
            web.get("/nodes/at", self.redirect_to_node),
            web.get("/nodes/one", self.show_node),
            web.get("/files/one", self.show_file_system),
            web.get("/files/one.json", self.send_file_system_json),
            web.get("/jobs/one", self.show_training),
            web.get("/jobs/one.json", self.send_training_json),
        )

    async def show_nodes(self, request: web.Request) -> web.Response:
        """The grid, and why nodes are out of service."""

        made = await self._get_room(await self._shown.get_visible_facts(request))
        racks, boxes = machine_room.build_rack_rows(made), machine_room.measure_racks(made)

        def build_nodes_context(f: Facts) -> dict[str, Any]:
            out, fine = list[NodesFact](), list[NodesFact]()
            for group in f.nodes:
                (out if group.state in OUT_OF_SERVICE_STATES or group.reason else fine).append(
                    group
                )
            return {
                "out": out,
                "fine": fine,
                "stamp": _hash_grid_state(f.nodes),
                "racks": racks,
                "boxes": boxes,
            }

        return await self._shown.get_cached_page(
            request, "nodes.html", "/nodes", build_nodes_context
        )

    async def send_room_json(self, request: web.Request) -> web.Response:
        """The machine room as plain data, for the browser that draws it."""
        made = await self._get_room(await self._shown.get_visible_facts(request))
        return _make_data_response({**msgspec.structs.asdict(made), "colours": grid.STATE_COLOURS})

    async def _get_room(self, facts: Facts) -> machine_room.MachineRoom:
        """Made once for all who ask while the facts are the same, and beside the loop."""
        if self._room is None or self._room[0] is not facts:
            self._room = facts, await asyncio.to_thread(machine_room.build_room, facts)
        return self._room[1]

    async def send_node_grid(self, request: web.Request) -> web.Response:
        """The picture of the grid."""
        cells = await self._get_grid_cells(request)
        text = grid.draw_node_grid([group.state for group in cells.values()]) if cells else ""
        return make_page_response(text, 200 if cells else 404, "image/svg+xml")

    async def redirect_to_node(self, request: web.Request) -> web.Response:
        """From a point of the picture to its node."""
        cells = await self._get_grid_cells(request)
        place = grid.find_cell_index(
            len(cells),
            parse_query_number(request.query.get("x", "")),
            parse_query_number(request.query.get("y", "")),
        )
        if place is None:
            raise web.HTTPNotFound
        return redirect_to(f"/nodes/one?name={quote([*cells][place])}")

    async def show_node(self, request: web.Request) -> web.Response:
        """One node: its state, reasons, GPUs, and what was done."""
        name, facts = (
            request.query.get("name", "")[:253],
            await self._shown.get_visible_facts(request),
        )
        around, now = self._live.around(), self._live.clock.now()
        group = (await self._get_grid_cells(request)).get(name)
        found = await self._live.source.read(
            lambda _: (
                detail.read_node_states(around.logbook, name),
                detail.read_node_gpus(around.gpus, name, now),
                detail.read_target_actions(around.logbook, name),
            )
        )
        eyes, whole = self._shown.get_visitor(request).eyes, await self._live.get_facts()
        if not eyes.all and is_hidden("nodes", whole):
            found = [], [], []
        more = {
            "name": visible(name) or "?",
            "group": group,
            "alerts": fold_singly(
                [a for a in facts.alerts if name in (a.subject, a.labels.get("node"))]
            ),
            "readings": found[0],
            "gpus": found[1],
            "acts": eyes.filter_actions(whole, found[2]),
        }
        return self._shown.render_fresh_page(request, facts, "node.html", "/nodes", more)

    async def show_file_system(self, request: web.Request) -> web.Response:
        """One file system with its history, its limits and when it will be full."""
        facts = await self._shown.get_visible_facts(request)
        course = await self._build_file_system_chart(request, facts)
        row = _find_disk_row(facts, request)
        grew, eyes = (
            await self._read_growth(row) if row else (),
            self._shown.get_visitor(request).eyes,
        )
        more = {
            **_build_subject_context(request, course, "path"),
            "row": row,
            "acts": (),
            "stacks": (),
            "grew": [one for one in grew if eyes.all or one.is_whole_tree],
        }
        return self._shown.render_fresh_page(request, facts, "one.html", "/files", more)

    async def show_training(self, request: web.Request) -> web.Response:
        """One training: how it went, and the evidence that was taken of it."""
        facts = await self._shown.get_visible_facts(request)
        course = await self._build_training_chart(request, facts)
        row = _find_training_row(facts, request)
        eyes, check = self._shown.get_visitor(request).eyes, request.query.get("check", "")
        job = row.job if row and _may_see_training(eyes, row) else ""
        acts, stacks = await self._read_actions_and_stacks(check, job, alone=not eyes.all)
        acts = eyes.filter_actions(await self._live.get_facts(), acts)
        more = {
            **_build_subject_context(request, course, "subject"),
            "row": row,
            "acts": acts,
            "stacks": stacks,
        }
        mine = [a for a in facts.alerts if row and _is_about_training(a, row)]
        more["alerts"] = fold_singly(sorted(mine, key=lambda a: not _is_training_itself(a, row)))
        more["saved"] = [a for a in facts.jobs if row and a.subject == row.subject and a is not row]
        return self._shown.render_fresh_page(request, facts, "one.html", "/jobs", more)

    async def send_file_system_json(self, request: web.Request) -> web.Response:
        """The same course as plain data, for the browser that draws it."""
        return _make_data_response(
            plot.export_chart(
                await self._build_file_system_chart(
                    request, await self._shown.get_visible_facts(request)
                )
            )
        )

    async def send_training_json(self, request: web.Request) -> web.Response:
        """Likewise of a training."""
        return _make_data_response(
            plot.export_chart(
                await self._build_training_chart(
                    request, await self._shown.get_visible_facts(request)
                )
            )
        )

    async def _build_training_chart(self, request: web.Request, facts: Facts) -> plot.Chart:
        row, around = _find_training_row(facts, request), self._live.around()
        stretch = _parse_time_span(request, facts, "subject")
        asked = replace(
            stretch,
            nodes=row.nodes if row else "",
            checkpoints=tuple(c.name for c in around.checks if c.common.kind == "checkpoint"),
        )
        return await self._build_chart(
            request,
            row,
            asked,
            lambda store, now: chart_history.read_training_history(
                store, around.logbook, asked, now
            ),
        )

    async def _build_file_system_chart(self, request: web.Request, facts: Facts) -> plot.Chart:
        asked, row = _parse_time_span(request, facts, "path"), _find_disk_row(facts, request)
        made = await self._build_chart(
            request,
            row,
            asked,
            lambda store, now: chart_history.read_file_system_history(store, asked, now),
        )
        return (
            made
            if row is None
            else replace(made, lines=[_add_limit_lines(n, row, facts) for n in made.lines])
        )

    async def _build_chart(
        self,
        request: web.Request,
        row: DiskFact | JobFact | None,
        asked: ChartRequest,
        read: Callable[[Store, Instant], ChartHistory],
    ) -> plot.Chart:
        """What is drawn, as it was read within REDRAWN: two weeks are many rows, one thread reads
        the state for everybody, and an open page asks every few seconds. Who may not see it all is shown
        nothing of what has no `row` for them."""
        eyes = self._shown.get_visitor(request).eyes
        around, now = self._live.around(), self._live.clock.now()
        key = (
            request.path.removesuffix(".json"),
            asked.check,
            asked.subject,
            request.query.get("at", ""),
            request.query.get("span", ""),
        )
        at, past = self._drawn.get(key, (None, ChartHistory()))
        if at is None or get_elapsed_s(at, now) >= REDRAWN:
            past = await self._live.source.read(lambda store: read(store, now))
            self._cache_history(key, now, past)
        if row is None and not eyes.all:
            past = ChartHistory()
        elif isinstance(row, JobFact) and not _may_see_training(eyes, row):
            lines = [line for line in past.lines if line.name not in chart_history.OWNER_ONLY_LINES]
            past = ChartHistory(
                lines=lines, marks=[replace(m, text=HIDDEN_TEXT) for m in past.marks]
            )
        first = min(
            (line.all_points[0][0] for line in past.lines if line.all_points), default=asked.first
        )
        moment = parse_query_number(request.query.get("at", ""), 12)
        return plot.Chart(
            title=visible(asked.subject),
            first=max(first, asked.first),
            now=asked.last,
            zone=around.zone,
            lines=past.lines,
            marks=chart_history.clip_marks(past.marks, asked.last),
            at=float(moment) if moment else None,
        )

    async def _read_growth(self, row: DiskFact) -> Sequence[SpaceHolder]:
        """Who has most of it and grew how fast, as it was read within REDRAWN."""
        key, now = ("grew", row.check, row.path), self._live.clock.now()
        at, past = self._drawn.get(key, (None, ChartHistory()))
        if at is None or get_elapsed_s(at, now) >= REDRAWN:
            rows = _list_holders(await self._live.get_facts(), row.path)
            grew = await self._live.source.read(
                lambda s: chart_history.measure_growth(s, rows, now, HISTORY_S)
            )
            past = ChartHistory(grew=grew)
            self._cache_history(key, now, past)
        return past.grew

    async def _read_actions_and_stacks(
        self, check: str, job: str, alone: bool
    ) -> tuple[list[ActionFact], list[KeptStacks] | None]:
        """What the check asked for, and where the ranks stood: of the job that runs and, unless it is to
        be `alone`, of those that are meant there; None while the folder does not answer."""
        around = self._live.around()
        acts = await self._live.source.read(
            lambda _: detail.read_check_actions(around.logbook, check)
        )
        jobs = {job} if alone else {job, *(a.target for a in acts)}
        return acts, await self._aside.read_in_time(
            lambda: _list_kept_evidence(around.evidence, jobs)
        )

    async def _get_grid_cells(self, request: web.Request) -> Mapping[str, NodesFact]:
        facts = await self._shown.get_visible_facts(request)
        return await asyncio.to_thread(_build_grid_cells, facts.nodes)

    def _cache_history(self, key: tuple[str, ...], now: Instant, past: ChartHistory) -> None:
        self._drawn.pop(key, None)
        if past.grew or any(line.parts for line in past.lines):  # any address may be asked for
            self._drawn[key] = now, past
        while len(self._drawn) > DRAWN:
            del self._drawn[next(iter(self._drawn))]


@lru_cache(maxsize=1)
def _build_grid_cells(groups: tuple[NodesFact, ...]) -> Mapping[str, NodesFact]:
    return machine_room.index_nodes(groups)


def _hash_grid_state(groups: Sequence[NodesFact]) -> str:
    """Another one when the picture is another, so that an open page asks for it then and only then."""
    text = "\n".join(f"{g.state} {g.nodes}" for g in groups)
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _parse_time_span(request: web.Request, facts: Facts, name: str) -> ChartRequest:
    """The stretch of time of the address: `span` seconds that end now, or around `at`."""
    query = request.query
    span = float(min(parse_query_number(query.get("span", ""), 12) or HISTORY_S, HISTORY_S))
    at = parse_query_number(query.get("at", ""), 12)
    last = min(facts.at, at + span / 2) if at else facts.at
    return ChartRequest(
        check=query.get("check", ""), subject=query.get(name, ""), first=last - span, last=last
    )


def _build_subject_context(request: web.Request, made: plot.Chart, name: str) -> dict[str, Any]:
    """What the page of one training or file system needs of the address."""
    mine = {k: request.query.get(k, "") for k in ("check", name)}
    here, at = (
        f"{request.path}?{urlencode(mine)}",
        parse_query_number(request.query.get("at", ""), 12),
    )
    span = parse_query_number(request.query.get("span", ""), 12)
    again = urlencode({**mine, **({"at": at} if at else {}), **({"span": span} if span else {})})
    return {
        "name": visible(request.query.get(name, "")) or "?",
        "here_one": here,
        "data": f"{request.path}.json?{again}",
        "spans": [
            (word, seconds, seconds == (span or HISTORY_S)) for word, seconds in SPAN_CHOICES
        ],
        "course": made,
        "marks": [m for m in made.marks if m.kind != "checkpoint"],
        "saves": [m for m in made.marks if m.kind == "checkpoint"],
        "picture": Markup(plot.render_svg(made)),  # noqa: S704 - drawn here, its texts are escaped
        "alerts": (),
        "saved": (),
        "grew": (),
    }


def _make_data_response(told: Mapping[str, Any]) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(told),
        content_type="application/json",
        headers=PAGE_HEADERS,
    )


def _find_disk_row(facts: Facts, request: web.Request) -> DiskFact | None:
    wanted = request.query.get("check", ""), request.query.get("path", "")
    return next((d for d in facts.disks if (d.check, d.path) == wanted), None)


def _find_training_row(facts: Facts, request: web.Request) -> JobFact | None:
    wanted = request.query.get("check", ""), request.query.get("subject", "")
    return next((j for j in facts.jobs if (j.check, j.subject) == wanted), None)


def _add_limit_lines(line: plot.ChartLine, row: DiskFact, facts: Facts) -> plot.ChartLine:
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


def _is_about_training(alert: AlertFact, row: JobFact) -> bool:
    """Whether it is of this training, of its job or of its nodes."""
    return _is_training_itself(alert, row) or bool(
        row.nodes and alert.labels.get("node") in _expand_hosts(row.nodes)
    )


def _may_see_training(eyes: Viewer, row: JobFact | None) -> bool:
    """Whether all of this training may be seen."""
    return eyes.all or bool(row and row.user and row.user == eyes.name)


def _is_training_itself(alert: AlertFact, row: JobFact | None) -> bool:
    """Whether it is of the training itself."""
    name = row.subject if row else ""
    return alert.subject == name or alert.subject.startswith(f"{name} ")


def _list_holders(facts: Facts, path: str) -> list[SpaceHolder]:
    """What `du` and `quota` know of a file system and below it (`/home user ann`, `/home tree`), with the
    directories and owners of trees; the largest first."""
    inside, found = (path.rstrip("/") + "/", f"{path} "), list[SpaceHolder]()
    for d in facts.disks:
        of: dict[str, Any] = {"check": d.check, "subject": d.path}
        if d.path != path and d.path.startswith(inside) and d.used_bytes is not None:
            found.append(SpaceHolder(name=d.path, used=d.used_bytes, **of))
        if d.path == path or d.path.startswith(inside):
            parts = d.parts.items()
            found += [SpaceHolder(name=n, series=n, used=size, **of) for n, size in parts]
    return sorted(found, key=lambda one: -one.used)[:20]


@lru_cache(maxsize=64)
def _expand_hosts(nodes: str) -> frozenset[str]:
    """The names of a hostlist."""
    return frozenset(expand_printed(nodes))


def _list_kept_evidence(folder: str, jobs: set[str]) -> list[KeptStacks]:
    """The evidence there is; none where sentinel came without stacks."""
    try:
        from sentinel.stacks.shelf import list_kept
    except ModuleNotFoundError:
        return []
    return list_kept(folder, jobs)
