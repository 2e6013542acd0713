"""Parts of the pages about one subject: rows, cells, limits, users of space, and who may see
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web
from markupsafe import Markup
from msgspec.structs import replace

from sentinel.core.digests import blake2b
from sentinel.core.hostlist import expand_printed
from sentinel.core.text import visible
from sentinel.status import machine_room, plot
from sentinel.status.chart_history import ChartRequest, SpaceHolder
from sentinel.status.privacy import Viewer
from sentinel.status.types import AlertFact, DiskFact, Facts, JobFact, NodesFact
from sentinel.web.page_cache import parse_query_number
from sentinel.web.render import PAGE_HEADERS

if TYPE_CHECKING:
    from sentinel.stacks.shelf import KeptStacks


HISTORY_S = 14 * 86_400
"""Seconds of history that are drawn."""

SPAN_CHOICES = (("hour", 3600), ("6 hours", 21_600), ("day", 86_400), ("2 weeks", HISTORY_S))
"""The spans of time that a page offers."""


@lru_cache(maxsize=1)
def build_grid_cells(groups: tuple[NodesFact, ...]) -> Mapping[str, NodesFact]:
    return machine_room.index_nodes(groups)


def hash_grid_state(groups: Sequence[NodesFact]) -> str:
    """A digest that changes when the picture changes, so that an open page asks for the picture
    only then."""
    text = "\n".join(f"{g.state} {g.nodes}" for g in groups)
    return blake2b(text.encode(), digest_size=6).hexdigest()


def parse_time_span(request: web.Request, facts: Facts, name: str) -> ChartRequest:
    """The span of time in the address: `span` seconds that end now, or that lie around `at`."""
    query = request.query
    span = float(min(parse_query_number(query.get("span", ""), 12) or HISTORY_S, HISTORY_S))
    at = parse_query_number(query.get("at", ""), 12)
    last = min(facts.at, at + span / 2) if at else facts.at
    return ChartRequest(
        check=query.get("check", ""), subject=query.get(name, ""), first=last - span, last=last
    )


def build_subject_context(request: web.Request, made: plot.Chart, name: str) -> dict[str, Any]:
    """Values for the page of one training or file system that depend on the address."""
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


def make_data_response(told: Mapping[str, Any]) -> web.Response:
    return make_json_response(msgspec.json.encode(told))


def make_json_response(data: bytes) -> web.Response:
    """A response with data that is JSON already."""
    return web.Response(body=data, content_type="application/json", headers=PAGE_HEADERS)


def find_disk_row(facts: Facts, request: web.Request) -> DiskFact | None:
    wanted = request.query.get("check", ""), request.query.get("path", "")
    return next((d for d in facts.disks if (d.check, d.path) == wanted), None)


def find_training_row(facts: Facts, request: web.Request) -> JobFact | None:
    wanted = request.query.get("check", ""), request.query.get("subject", "")
    return next((j for j in facts.jobs if (j.check, j.subject) == wanted), None)


def find_training_address(facts: Facts, request: web.Request) -> str:
    """The address with the check, for one that names a training alone. Empty for others."""
    query = request.query
    rows = [j for j in facts.jobs if j.subject == query.get("subject")]
    if query.get("check") or not rows:
        return ""
    row = max(rows, key=lambda j: j.progress is not None)
    more = {k: query[k] for k in ("at", "span") if k in query}
    return f"{request.path}?{urlencode({'check': row.check, 'subject': row.subject, **more})}"


def add_limit_lines(line: plot.ChartLine, row: DiskFact, facts: Facts) -> plot.ChartLine:
    """The line with its limits, and with the time when it will be full."""
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


def is_about_training(alert: AlertFact, row: JobFact) -> bool:
    """Whether the alert is about this training, its job or its nodes."""
    return is_training_itself(alert, row) or bool(
        row.nodes and alert.labels.get("node") in _expand_hosts(row.nodes)
    )


def may_see_training(eyes: Viewer, row: JobFact | None) -> bool:
    """Whether the viewer may see everything about this training."""
    return eyes.all or bool(row and row.user and row.user == eyes.name)


def is_training_itself(alert: AlertFact, row: JobFact | None) -> bool:
    """Whether the alert is about the training itself."""
    name = row.subject if row else ""
    return alert.subject == name or alert.subject.startswith(f"{name} ")


def list_holders(facts: Facts, path: str) -> list[SpaceHolder]:
    """The largest users of space in a file system, the largest first.

    These are what `du` and `quota` know about it and below it (`/home user ann`, `/home tree`), and
    the directories and owners of trees."""
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


def list_kept_evidence(folder: str, jobs: set[str]) -> list[KeptStacks]:
    """The evidence that is kept for these jobs; empty if sentinel is installed without stacks."""
    try:
        from sentinel.stacks.shelf import list_kept
    except ModuleNotFoundError:
        return []
    return list_kept(folder, jobs)
