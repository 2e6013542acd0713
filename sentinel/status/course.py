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
from sentinel.core.hostlist import printed
from sentinel.core.ports import Logbook
from sentinel.core.text import shortened, visible
from sentinel.status.detail import points
from sentinel.status.metrics import RECENT, STILL
from sentinel.status.plot import HUGE, MOST_MARKS, Line, Mark, Point, Unit, pieces, words

CHANGES = 2000
"""The newest transitions among which those of a training are looked for."""

LATELY = 50
"""Steps of a training by which it is known how long it usually stands still."""

NODES = 64
"""Nodes of a training whose readings are looked at."""

SHAPES = {" step time": "slowdown", " speed": "slowdown", " loss": "loss", " errors": "error"}
"""What an alert about the second words of a training's subject tells; see the kind `log`."""


class Asked(Struct, frozen=True, kw_only=True):
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


class Holder(Struct, frozen=True, kw_only=True):
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
    def whole(self) -> bool:
        """Whether it is a tree or quota of its own and no part of one, whose names are its owner's."""
        return self.series == "used_bytes"


class Past(Struct, frozen=True, kw_only=True):
    """What was read: lines that begin where the first number is, marks, the oldest first, and who grew."""

    lines: Sequence[Line] = ()
    marks: Sequence[Mark] = ()
    grew: Sequence[Holder] = ()


TRAINING: tuple[tuple[str, str, Unit], ...] = (
    ("progress", "Step", "number"),
    ("loss", "Loss", "number"),
    ("grad_norm", "Gradient norm", "number"),
    ("running", "Jobs running", "number"),
    ("queued", "Jobs queued", "number"),
)
CONTENT = frozenset({"loss", "grad_norm"})
"""What only the owner of a training sees of it: that it goes on is no secret, how well it learns is."""

FILES: tuple[tuple[str, str, Unit], ...] = (
    ("used_percent", "Space used", "percent"),
    ("free_bytes", "Space free", "bytes"),
    ("inodes_used_percent", "Inodes used", "percent"),
    ("used_bytes", "Used", "bytes"),
    ("size_bytes", "Size", "bytes"),
)


def training(store: Store, logbook: Logbook | None, asked: Asked, now: Instant) -> Past:
    """Number, speed, loss and gradient norm of a training, the work since its last checkpoint, and
    marks for whatever happened to it. Raises StoreError."""
    lines = [_line(store, asked, *shape, now) for shape in TRAINING]
    seen = _read(store, asked.check, asked.subject, "progress", asked, now)
    steps = [step for step in seen if abs(step[1]) < HUGE]
    speed = Line(name="speed", title="Steps a minute", parts=pieces(_speed(steps)))
    lines[1:1] = [speed]
    saved = _saved(store, asked, now)
    at_risk = [
        Line(name=name, title="Work since the last checkpoint", unit="seconds", parts=pieces(seen))
        for name, seen in saved.items()
    ]
    marks = [*_restarts(steps), *_checkpoints(saved.values()), *_told(store, asked)]
    marks += _done(logbook, asked)
    shown = sorted((m for m in marks if (m.until or m.at) >= asked.first), key=lambda m: m.at)
    return Past(lines=[*lines, *at_risk], marks=shown[-MOST_MARKS:])


def as_of(marks: Iterable[Mark], now: float) -> list[Mark]:
    """As they are at that moment, which may be later than they were read: what goes on reaches to it."""
    return [m if m.until is None else replace(m, until=min(m.until, now)) for m in marks]


def files(store: Store, asked: Asked, now: Instant) -> Past:
    """Space and inodes of a file system, and marks for its alerts. Raises StoreError."""
    lines = [_line(store, asked, *shape, now) for shape in FILES]
    return Past(lines=lines, marks=sorted(_told(store, asked), key=lambda m: m.at)[-MOST_MARKS:])


def grown(store: Store, holders: Iterable[Holder], now: Instant, seconds: float) -> list[Holder]:
    """With how much each grew over that time."""
    found = list[Holder]()
    for one in holders:
        seen = points(store, one.check, one.subject, one.series, now, seconds)
        (first, before), (last, size) = (seen[0], seen[-1]) if seen else ((0.0, 0.0), (0.0, 0.0))
        if last - first >= 3600:
            one = replace(one, since=first, a_day=(size - before) / (last - first) * 86_400)
        found.append(one)
    return found


def _line(store: Store, asked: Asked, name: str, title: str, unit: Unit, now: Instant) -> Line:
    seen = _read(store, asked.check, asked.subject, name, asked, now)
    return Line(name=name, title=title, unit=unit, parts=pieces(seen))


def _read(
    store: Store, check: str, subject: str, name: str, asked: Asked, now: Instant
) -> list[Point]:
    seconds = now.wall / SECOND - asked.first
    return [p for p in points(store, check, subject, name, now, seconds) if p[0] <= asked.last]


def _speed(steps: Sequence[Point]) -> list[Point]:
    """Steps a minute over the RECENT seconds before each look, since the number last fell; zero
    from where it stood still for STILL times as long as it lately did between two of its steps."""
    found: list[Point] = []
    begin, moved, still, gaps = 0, 0.0, False, deque[float](maxlen=LATELY)
    for n, (at, value) in enumerate(steps):
        if n and value < steps[n - 1][1]:
            begin = n
        if n and value == steps[n - 1][1]:
            if not still and gaps and at - moved > STILL * median(gaps):
                still, found = True, [(t, 0.0 if t > moved else speed) for t, speed in found]
            if still:
                found.append((at, 0.0))
                continue
        else:
            gaps.extend([at - moved] * bool(n))
            moved, still = at, False
        while begin < n - 1 and at - steps[begin + 1][0] >= RECENT:
            begin += 1
        since, before = steps[begin]
        if at > since:
            found.append((at, (value - before) / (at - since) * 60))
    return found


def _restarts(steps: Sequence[Point]) -> Iterator[Mark]:
    """Where the number fell: it went back to a checkpoint, and what came after that is lost."""
    for (_, before), (at, value) in pairwise(steps):
        if value < before:
            first, last, lost = (words("number", n) for n in (before, value, before - value))
            text = f"went back from step {first} to {last}: {lost} lost"
            yield Mark(at=at, kind="restart", text=text)


def _saved(store: Store, asked: Asked, now: Instant) -> dict[str, list[Point]]:
    """The work at risk, as each check of its checkpoints saw it."""
    told = {
        check: _read(store, check, asked.subject, "age_seconds", asked, now)
        for check in asked.checkpoints
    }
    return {check: seen for check, seen in told.items() if seen}


def _checkpoints(saved: Iterable[Sequence[Point]]) -> Iterator[Mark]:
    """Where the age of the newest fell: it became complete that long before."""
    for seen in saved:
        for (_, before), (at, age) in pairwise(seen):
            if age < before:
                yield Mark(at=at - age, kind="checkpoint", text="a checkpoint became complete")


def _told(store: Store, asked: Asked) -> Iterator[Mark]:
    """Alerts about it from their beginning to their end, which is endless for what goes on, and who
    took them."""
    begun: dict[str, Mark] = {}
    mine = {asked.subject, *(asked.subject + shape for shape in SHAPES)}
    changes = [t for t in store.history(CHANGES) if visible(t.key.subject) in mine]
    for t in sorted(changes, key=lambda t: t.at.wall):
        at, href = t.at.wall / SECOND, f"/alerts/{t.alert}"
        if t.reason in ("resolved", "gone"):
            if (open_ := begun.pop(t.alert, None)) is not None:
                yield Mark(at=open_.at, kind=open_.kind, text=open_.text, href=href, until=at)
        elif t.alert not in begun:
            text = shortened(f"{visible(t.key.check)}: {visible(t.summary)}", 200)
            kind, since = _kind(t.kind, t.key.subject), t.since.wall / SECOND
            begun[t.alert] = Mark(at=min(at, since), kind=kind, text=text, href=href)
    for mark in begun.values():
        yield replace(mark, until=inf)
    orders = store.orders().acks
    for alert in {t.alert for t in changes} & orders.keys():
        ack = orders[alert]
        text = shortened(f"acknowledged by {visible(ack.said)}", 200)
        yield Mark(at=ack.at.wall / SECOND, kind="ack", text=text, href=f"/alerts/{alert}")


def _kind(kind: str, subject: str) -> str:
    for shape, word in SHAPES.items():
        if subject.endswith(shape):
            return word
    return "hang" if kind == "log" else "alert"


def _done(logbook: Logbook | None, asked: Asked) -> Iterator[Mark]:
    """What its check asked for, and the states that its nodes had."""
    if logbook is None:
        return
    for record in logbook.records(limit=1000):
        if record.by == asked.check:
            text = shortened(
                f"{record.action} {visible(record.target)}: {record.outcome.value}", 200
            )
            yield Mark(at=record.at.wall / SECOND, kind="action", text=text)
    for node in printed(asked.nodes)[:NODES] if asked.nodes else ():
        for reading in logbook.readings(node, 20):
            state = f"{visible(node)}: {visible(reading.state)} {visible(reading.reason)}"
            href = f"/nodes/one?name={visible(node)}"
            yield Mark(
                at=reading.seen.wall / SECOND, kind="node", text=shortened(state, 200), href=href
            )
