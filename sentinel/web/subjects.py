"""Handlers of the pages about one node, one file system or one training."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from aiohttp import web
from msgspec.structs import replace

from sentinel.alerting.state import Store
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.text import visible
from sentinel.status import chart_history, detail, machine_room, plot
from sentinel.status.chart_history import ChartHistory, ChartRequest, SpaceHolder
from sentinel.status.folding import fold_singly
from sentinel.status.node_states import OUT_OF_SERVICE_STATES
from sentinel.status.privacy import HIDDEN_TEXT, Viewer, is_hidden
from sentinel.status.types import ActionFact, DiskFact, Facts, JobFact, NodesFact
from sentinel.web import grid
from sentinel.web.background import BackgroundReader
from sentinel.web.page_cache import PageCache, make_page_response, parse_query_number, redirect_to
from sentinel.web.run_strips import build_strip_context
from sentinel.web.snapshot_cache import LiveFacts
from sentinel.web.subject_parts import (
    HISTORY_S,
    add_limit_lines,
    build_grid_cells,
    build_subject_context,
    find_disk_row,
    find_training_address,
    find_training_row,
    hash_grid_state,
    is_about_training,
    is_training_itself,
    list_holders,
    list_kept_evidence,
    make_data_response,
    make_json_response,
    may_see_training,
    parse_time_span,
)

if TYPE_CHECKING:
    from sentinel.stacks.shelf import KeptStacks


REDRAWN, DRAWN = 60.0, 100
"""Seconds for which the history behind a chart is kept, and how many are kept."""


class SubjectPages:
    """Handlers for nodes, file systems and trainings."""

    def __init__(self, live: LiveFacts, shown: PageCache) -> None:
        self._live, self._shown, self._aside = live, shown, BackgroundReader()
        self._drawn: dict[tuple[Hashable, ...], tuple[Instant, ChartHistory]] = {}
        self._turn = asyncio.Lock()
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
        """Show the grid of nodes, and why nodes are out of service."""

        async def build_nodes_context(f: Facts) -> dict[str, Any]:
            made = await self._get_room(request, f)
            out, fine = list[NodesFact](), list[NodesFact]()
            for group in f.nodes:
                (out if group.state in OUT_OF_SERVICE_STATES or group.reason else fine).append(
                    group
                )
            return {
                "out": out,
                "fine": fine,
                "stamp": hash_grid_state(f.nodes),
                "racks": await asyncio.to_thread(machine_room.build_rack_rows, made),
                "boxes": machine_room.measure_racks(made),
                "undrawn": made.undrawn,
            }

        return await self._shown.get_cached_page(
            request, "nodes.html", "/nodes", build_nodes_context
        )

    async def send_room_json(self, request: web.Request) -> web.Response:
        """Send the machine room as plain data, for the browser that draws it."""
        facts = await self._shown.get_visible_facts(request)

        async def encode_room() -> bytes:
            made = msgspec.structs.asdict(await self._get_room(request, facts))
            return msgspec.json.encode({**made, "colours": grid.STATE_COLOURS})

        eyes = self._shown.get_visitor(request).eyes
        return make_json_response(
            await self._shown.shared.get_result(("room.json", eyes), facts, encode_room)
        )

    async def _get_room(self, request: web.Request, facts: Facts) -> machine_room.MachineRoom:
        """The machine room, made in a thread."""
        eyes = self._shown.get_visitor(request).eyes
        return await self._shown.shared.get_result(
            ("room", eyes), facts, lambda: asyncio.to_thread(machine_room.build_room, facts)
        )

    async def send_node_grid(self, request: web.Request) -> web.Response:
        """Send the picture of the grid."""
        cells = await self._get_grid_cells(request)
        text = grid.draw_node_grid([group.state for group in cells.values()]) if cells else ""
        return make_page_response(text, 200 if cells else 404, "image/svg+xml")

    async def redirect_to_node(self, request: web.Request) -> web.Response:
        """Redirect from a point in the picture to the page of its node."""
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
        """Show one node: its state, reasons, GPUs, and the actions on it."""
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
        """Show one file system: its history, its limits and when it will be full."""
        facts = await self._shown.get_visible_facts(request)
        course = await self._build_file_system_chart(request, facts)
        row = find_disk_row(facts, request)
        eyes = self._shown.get_visitor(request).eyes
        more = {
            **build_subject_context(request, course, "path"),
            "row": row,
            "acts": (),
            "stacks": (),
            "run": None,
            "grew": await self._read_growth(facts, row, eyes) if row else (),
        }
        return self._shown.render_fresh_page(request, facts, "one.html", "/files", more)

    async def show_training(self, request: web.Request) -> web.Response:
        """Show one training: its history, and the evidence that was taken. Messages and reports name
        no check: they lead to one that sees its steps."""
        facts = await self._shown.get_visible_facts(request)
        if found := find_training_address(facts, request):
            return redirect_to(found)
        course = await self._build_training_chart(request, facts)
        row = find_training_row(facts, request)
        eyes, check = self._shown.get_visitor(request).eyes, request.query.get("check", "")
        job = row.job if row and may_see_training(eyes, row) else ""
        acts, stacks = await self._read_actions_and_stacks(check, job, alone=not eyes.all)
        acts = eyes.filter_actions(await self._live.get_facts(), acts)
        more = {
            **build_subject_context(request, course, "subject"),
            "row": row,
            "acts": acts,
            "stacks": stacks,
        }
        mine = [a for a in facts.alerts if row and is_about_training(a, row)]
        more["alerts"] = fold_singly(sorted(mine, key=lambda a: not is_training_itself(a, row)))
        runs = [
            r for r in facts.runs if row and (r.run, r.elsewhere) == (row.subject, row.elsewhere)
        ]
        more |= {**build_strip_context(runs, facts.at), "run": runs[0] if runs else None}
        more["saved"] = [a for a in facts.jobs if row and a.subject == row.subject and a is not row]
        return self._shown.render_fresh_page(request, facts, "one.html", "/jobs", more)

    async def send_file_system_json(self, request: web.Request) -> web.Response:
        """Send the chart of a file system as plain data, for the browser that draws it."""
        return make_data_response(
            plot.export_chart(
                await self._build_file_system_chart(
                    request, await self._shown.get_visible_facts(request)
                )
            )
        )

    async def send_training_json(self, request: web.Request) -> web.Response:
        """Send the chart of a training as plain data."""
        return make_data_response(
            plot.export_chart(
                await self._build_training_chart(
                    request, await self._shown.get_visible_facts(request)
                )
            )
        )

    async def _build_training_chart(self, request: web.Request, facts: Facts) -> plot.Chart:
        row, around = find_training_row(facts, request), self._live.around()
        stretch = parse_time_span(request, facts, "subject")
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
        asked, row = parse_time_span(request, facts, "path"), find_disk_row(facts, request)
        made = await self._build_chart(
            request,
            row,
            asked,
            lambda store, now: chart_history.read_file_system_history(store, asked, now),
        )
        return (
            made
            if row is None
            else replace(made, lines=[add_limit_lines(n, row, facts) for n in made.lines])
        )

    async def _build_chart(
        self,
        request: web.Request,
        row: DiskFact | JobFact | None,
        asked: ChartRequest,
        read: Callable[[Store, Instant], ChartHistory],
    ) -> plot.Chart:
        """The chart of a subject. Its history is read again after REDRAWN seconds: two weeks are
        many rows, one thread reads the state for everybody, and an open page asks every few
        seconds.

        Restricted viewers see only subjects for which they may see a `row`."""
        eyes = self._shown.get_visitor(request).eyes
        around = self._live.around()
        key = (
            request.path.removesuffix(".json"),
            asked.check,
            asked.subject,
            request.query.get("at", ""),
            request.query.get("span", ""),
        )
        seen = row is not None or eyes.all
        past = await self._read_history(key, read) if seen else ChartHistory()
        if isinstance(row, JobFact) and not may_see_training(eyes, row):
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

    async def _read_growth(
        self, facts: Facts, row: DiskFact, eyes: Viewer
    ) -> Sequence[SpaceHolder]:
        """The largest users of space in the facts that `eyes` may see, and how fast they grow; read
        again after REDRAWN seconds."""
        key, rows = ("grew", row.check, row.path, eyes), list_holders(facts, row.path)
        past = await self._read_history(
            key,
            lambda store, now: ChartHistory(
                grew=chart_history.measure_growth(store, rows, now, HISTORY_S)
            ),
        )
        return past.grew

    async def _read_history(
        self, key: tuple[Hashable, ...], read: Callable[[Store, Instant], ChartHistory]
    ) -> ChartHistory:
        """What was read under this key, for REDRAWN seconds. One history is read at a time, because two
        weeks are many rows, and other pages wait for the same thread."""
        if (kept := self._find_kept(key)) is not None:
            return kept
        async with self._turn:
            if (kept := self._find_kept(key)) is None:
                now = self._live.clock.now()
                kept = await self._live.source.read(lambda store: read(store, now))
                self._cache_history(key, now, kept)
            return kept

    def _find_kept(self, key: tuple[Hashable, ...]) -> ChartHistory | None:
        at, past = self._drawn.get(key, (None, None))
        return past if at and get_elapsed_s(at, self._live.clock.now()) < REDRAWN else None

    async def _read_actions_and_stacks(
        self, check: str, job: str, alone: bool
    ) -> tuple[list[ActionFact], list[KeptStacks] | None]:
        """The actions that the check requested, and the stacks that were kept: of the running job
        and, unless `alone`, of the jobs of those actions. The stacks are None while their folder
        does not answer."""
        around = self._live.around()
        acts = await self._live.source.read(
            lambda _: detail.read_check_actions(around.logbook, check)
        )
        jobs = {job} if alone else {job, *(a.target for a in acts)}
        return acts, await self._aside.read_in_time(
            lambda: list_kept_evidence(around.evidence, jobs)
        )

    async def _get_grid_cells(self, request: web.Request) -> Mapping[str, NodesFact]:
        facts = await self._shown.get_visible_facts(request)
        return await asyncio.to_thread(build_grid_cells, facts.nodes)

    def _cache_history(self, key: tuple[Hashable, ...], now: Instant, past: ChartHistory) -> None:
        self._drawn.pop(key, None)
        # the address may name a subject that does not exist
        if past.grew or any(line.parts for line in past.lines):
            self._drawn[key] = now, past
        while len(self._drawn) > DRAWN:
            del self._drawn[next(iter(self._drawn))]
