"""How a training or a file system went: its numbers and what happened, on one time axis.

Read from the state only when somebody opens it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.hostlist import expand_printed
from sentinel.core.ports import Logbook
from sentinel.core.text import shortened, visible
from sentinel.status.detail import read_sample_points
from sentinel.status.metrics import PACE_WINDOW_S, STANDSTILL_FACTOR
from sentinel.status.plot import (
    MAX_DRAWN_VALUE,
    MAX_MARKS,
    ChartLine,
    ChartMark,
    Point,
    Unit,
    format_value,
    split_points,
)

MAX_TRANSITIONS = 2000
"""Transitions of a training are searched among this many of the newest."""

MAX_STEP_GAPS = 50
"""Steps of a training by which it is known how long it usually stands still."""

MAX_NODES = 64
"""The readings of this many nodes of a training are used."""

MARK_KIND_BY_ENDING = {
    " step time": "slowdown",
    " speed": "slowdown",
    " loss": "loss",
    " errors": "error",
}
"""What an alert about the second words of a training's subject tells; see the kind `log`."""


class ChartRequest(Struct, frozen=True, kw_only=True):
    """A training or file system, and the stretch of time that is wanted of it, in seconds UTC.

    `checkpoints`: the checks that know its checkpoints; `kind`: of its check; `nodes`: a hostlist.
    """

    check: str
    subject: str
    kind: str = ""
    first: float
    last: float
    checkpoints: tuple[str, ...] = ()
    nodes: str = ""


class SpaceHolder(Struct, frozen=True, kw_only=True):
    """Who has `used` bytes of a file system; `name` in its check's history: `subject`, `series`. `a_day`: bytes
    by which it grew each day since `since` (s UTC), where the history tells."""

    name: str
    check: str
    subject: str
    series: str = "used_bytes"
    used: float
    since: float | None = None
    a_day: float | None = None

    @property
    def is_whole_tree(self) -> bool:
        """Whether it is a tree or quota, which has a page of its own, and no part of one."""
        return self.series == "used_bytes"


class ChartHistory(Struct, frozen=True, kw_only=True):
    """What was read: lines that begin where the first number is, marks, the oldest first, and who grew."""

    lines: Sequence[ChartLine] = ()
    marks: Sequence[ChartMark] = ()
    grew: Sequence[SpaceHolder] = ()


TRAINING_LINES: tuple[tuple[str, str, Unit], ...] = (
    ("progress", "Step", "number"),
    ("loss", "Loss", "number"),
    ("grad_norm", "Gradient norm", "number"),
    ("running", "Jobs running", "number"),
    ("queued", "Jobs queued", "number"),
)
OWNER_ONLY_LINES = frozenset({"loss", "grad_norm"})
"""What only the owner of a training sees of it: that it goes on is no secret, how well it learns is."""

FILE_SYSTEM_LINES: tuple[tuple[str, str, Unit], ...] = (
    ("used_percent", "Space used", "percent"),
    ("free_bytes", "Space free", "bytes"),
    ("inodes_used_percent", "Inodes used", "percent"),
    ("used_bytes", "Used", "bytes"),
    ("size_bytes", "Size", "bytes"),
)


def read_training_history(
    store: Store, logbook: Logbook | None, asked: ChartRequest, now: Instant
) -> ChartHistory:
    """Number, speed, loss and gradient norm of a training, the work since its last checkpoint, and
    marks for whatever happened to it. Raises StoreError."""
    lines = [_read_line(store, asked, *shape, now) for shape in TRAINING_LINES]
    seen = _read_window_points(store, asked.check, asked.subject, "progress", asked, now)
    steps = [step for step in seen if abs(step[1]) < MAX_DRAWN_VALUE]
    speed = ChartLine(
        name="speed", title="Steps a minute", parts=split_points(_compute_speed(steps))
    )
    lines[1:1] = [speed]
    saved = _read_work_at_risk(store, asked, now)
    at_risk = [
        ChartLine(
            name=name,
            title="Work since the last checkpoint",
            unit="seconds",
            parts=split_points(seen),
        )
        for name, seen in saved.items()
    ]
    marks = [
        *_find_restarts(steps),
        *_find_checkpoints(saved.values()),
        *_find_alert_marks(store, asked),
    ]
    marks += _find_logbook_marks(logbook, asked)
    shown = sorted((m for m in marks if (m.until or m.at) >= asked.first), key=lambda m: m.at)
    return ChartHistory(lines=[*lines, *at_risk], marks=shown[-MAX_MARKS:])


def clip_marks(marks: Iterable[ChartMark], now: float) -> list[ChartMark]:
    """As they are at that moment, which may be later than they were read: what goes on reaches to it."""
    return [m if m.until is None else replace(m, until=min(m.until, now)) for m in marks]


def read_file_system_history(store: Store, asked: ChartRequest, now: Instant) -> ChartHistory:
    """Space and inodes of a file system, and marks for its alerts. Raises StoreError."""
    lines = [_read_line(store, asked, *shape, now) for shape in FILE_SYSTEM_LINES]
    return ChartHistory(
        lines=lines, marks=sorted(_find_alert_marks(store, asked), key=lambda m: m.at)[-MAX_MARKS:]
    )


def measure_growth(
    store: Store, holders: Iterable[SpaceHolder], now: Instant, seconds: float
) -> list[SpaceHolder]:
    """The values, with how much each grew in that time."""
    found = list[SpaceHolder]()
    for one in holders:
        seen = read_sample_points(store, one.check, one.subject, one.series, now, seconds)
        (first, before), (last, size) = (seen[0], seen[-1]) if seen else ((0.0, 0.0), (0.0, 0.0))
        if last - first >= 3600:
            one = replace(one, since=first, a_day=(size - before) / (last - first) * 86_400)
        found.append(one)
    return found


def _read_line(
    store: Store, asked: ChartRequest, name: str, title: str, unit: Unit, now: Instant
) -> ChartLine:
    seen = _read_window_points(store, asked.check, asked.subject, name, asked, now)
    return ChartLine(name=name, title=title, unit=unit, parts=split_points(seen))


def _read_window_points(
    store: Store, check: str, subject: str, name: str, asked: ChartRequest, now: Instant
) -> list[Point]:
    seconds = now.wall / SECOND - asked.first
    return [
        p
        for p in read_sample_points(store, check, subject, name, now, seconds)
        if p[0] <= asked.last
    ]


def _compute_speed(steps: Sequence[Point]) -> list[Point]:
    """Steps a minute over the RECENT seconds before each look, since the number last fell; zero
    from where it stood still for STILL times as long as it lately did between two of its steps."""
    found: list[Point] = []
    begin, moved, still, gaps = 0, 0.0, False, deque[float](maxlen=MAX_STEP_GAPS)
    for n, (at, value) in enumerate(steps):
        if n and value < steps[n - 1][1]:
            begin = n
        if n and value == steps[n - 1][1]:
            if not still and gaps and at - moved > STANDSTILL_FACTOR * median(gaps):
                still, found = True, [(t, 0.0 if t > moved else speed) for t, speed in found]
            if still:
                found.append((at, 0.0))
                continue
        else:
            gaps.extend([at - moved] * bool(n))
            moved, still = at, False
        while begin < n - 1 and at - steps[begin + 1][0] >= PACE_WINDOW_S:
            begin += 1
        since, before = steps[begin]
        if at > since:
            found.append((at, (value - before) / (at - since) * 60))
    return found


def _find_restarts(steps: Sequence[Point]) -> Iterator[ChartMark]:
    """Where the number fell: it went back to a checkpoint, and what came after that is lost."""
    for (_, before), (at, value) in pairwise(steps):
        if value < before:
            first, last, lost = (format_value("number", n) for n in (before, value, before - value))
            text = f"went back from step {first} to {last}: {lost} lost"
            yield ChartMark(at=at, kind="restart", text=text)


def _read_work_at_risk(store: Store, asked: ChartRequest, now: Instant) -> dict[str, list[Point]]:
    """The work at risk, as each check of its checkpoints saw it."""
    told = {
        check: _read_window_points(store, check, asked.subject, "age_seconds", asked, now)
        for check in asked.checkpoints
    }
    return {check: seen for check, seen in told.items() if seen}


def _find_checkpoints(saved: Iterable[Sequence[Point]]) -> Iterator[ChartMark]:
    """Times when the age of the newest checkpoint fell. It became complete that long before."""
    for seen in saved:
        for (_, before), (at, age) in pairwise(seen):
            if age < before:
                yield ChartMark(at=at - age, kind="checkpoint", text="a checkpoint became complete")


def _find_alert_marks(store: Store, asked: ChartRequest) -> Iterator[ChartMark]:
    """Alerts about it from their beginning to their end, which is endless for what goes on, and who
    took them."""
    begun: dict[str, ChartMark] = {}
    mine = {asked.subject, *(asked.subject + shape for shape in MARK_KIND_BY_ENDING)}
    changes = [t for t in store.read_transitions(MAX_TRANSITIONS) if visible(t.key.subject) in mine]
    for t in sorted(changes, key=lambda t: t.at.wall):
        at, href = t.at.wall / SECOND, f"/alerts/{t.alert}"
        if t.reason in ("resolved", "gone"):
            if (open_ := begun.pop(t.alert, None)) is not None:
                yield ChartMark(at=open_.at, kind=open_.kind, text=open_.text, href=href, until=at)
        elif t.alert not in begun:
            text = shortened(f"{visible(t.key.check)}: {visible(t.summary)}", 200)
            kind, since = _get_mark_kind(t.kind, t.key.subject), t.since.wall / SECOND
            begun[t.alert] = ChartMark(at=min(at, since), kind=kind, text=text, href=href)
    for mark in begun.values():
        yield replace(mark, until=inf)
    orders = store.read_orders().acks
    for alert in {t.alert for t in changes} & orders.keys():
        ack = orders[alert]
        text = shortened(f"acknowledged by {visible(ack.author_text)}", 200)
        yield ChartMark(at=ack.at.wall / SECOND, kind="ack", text=text, href=f"/alerts/{alert}")


def _get_mark_kind(kind: str, subject: str) -> str:
    for shape, word in MARK_KIND_BY_ENDING.items():
        if subject.endswith(shape):
            return word
    return "hang" if kind == "log" else "alert"


def _find_logbook_marks(logbook: Logbook | None, asked: ChartRequest) -> Iterator[ChartMark]:
    """The actions that its check requested, and the states of its nodes."""
    if logbook is None:
        return
    for record in logbook.records(limit=1000):
        if record.by == asked.check:
            text = shortened(
                f"{record.action} {visible(record.target)}: {record.outcome.value}", 200
            )
            yield ChartMark(at=record.at.wall / SECOND, kind="action", text=text)
    for node in expand_printed(asked.nodes)[:MAX_NODES] if asked.nodes else ():
        for reading in logbook.readings(node, 20):
            state = f"{visible(node)}: {visible(reading.state)} {visible(reading.reason)}"
            href = f"/nodes/one?name={visible(node)}"
            yield ChartMark(
                at=reading.seen.wall / SECOND, kind="node", text=shortened(state, 200), href=href
            )
