"""A run at a glance: what each moment went into, in few classes. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.core.run_ledger import LedgerRow, StripClass
from sentinel.report.gpu_time import TimeClass, TimePiece, join_spans, subtract_spans
from sentinel.report.interruptions import PLANNED_ENDS

STRIP_LABELS: Mapping[StripClass, str] = {
    "steps": "steps",
    "slow": "slow steps",
    "lost": "lost steps",
    "hung": "hung",
    "down": "no job, or crashed",
    "queued": "queued or starting",
    "blind": "not known",
}

SLOW_PERCENT = 9
"""Steps that took 1.1 times as long as usual spent this share of their time on being slow."""

MIN_SILENCE_US = 900 * 10**6
"""Where a job has run, and its row says neither that it goes on nor how it ended for so long,
nobody saw what happened since."""

_OTHERS: Mapping[TimeClass, StripClass] = {
    "startup": "queued",
    "checkpoint": "steps",
    "evaluation": "steps",
    "hung": "hung",
    "crashed": "down",
    "tail": "down",
    "idle": "down",
    "unknown": "blind",
}

_URGENT: frozenset[StripClass] = frozenset({"hung", "down"})
"""In a cell these count twice, so that a short one is seen."""


class StripSpan(Struct, frozen=True, gc=False):
    """A span of one class. Times are µs UTC."""

    began: int
    ended: int
    kind: StripClass


def classify_piece(piece: TimePiece, split: Mapping[TimeClass, int]) -> list[StripSpan]:
    """The spans of a piece of one job. Of steps those that were lost come last."""
    began, ended = piece.began, piece.ended
    if piece.row is None or piece.row.kind != "steps":
        return [StripSpan(began, ended, _OTHERS[name]) for name in split]
    length = ended - began
    lost = split.get("redone", 0) + split.get("tail", 0)
    slow = split.get("slow", 0) * 100 >= length * SLOW_PERCENT
    worked: StripClass = "slow" if slow else "steps"
    spans = [StripSpan(began, ended - lost, worked), StripSpan(ended - lost, ended, "lost")]
    return [one for one in spans if one.ended > one.began]


def make_strip(
    spans: Iterable[StripSpan], rows: Sequence[LedgerRow], since: int, until: int
) -> list[StripSpan]:
    """The strip of a run: the spans of its jobs, with the queue and the time without any job
    between them. Spans never overlap. Before the first job, in maintenance, and after an end that
    somebody wanted there is none."""
    placed, at = list[StripSpan](), since
    for one in sorted(spans, key=lambda one: (one.began, one.ended)):
        began, ended = max(one.began, at), min(one.ended, until)
        if ended <= began:
            continue
        placed.append(StripSpan(began, ended, one.kind))
        at = ended
    found, at, gaps = list[StripSpan](), since, _Gaps(rows)
    for one in [*placed, StripSpan(until, until, "blind")]:
        if one.began > at:
            found += gaps.fill_gap(at, one.began)
        if one.ended > one.began:
            found.append(one)
        at = one.ended
    return _join_spans(found)


class _Gaps:
    """What the gaps between the jobs of a run were."""

    def __init__(self, rows: Sequence[LedgerRow]) -> None:
        self._maintained, self._queued = (
            join_spans((row.began, row.ended) for row in rows if row.kind == kind)
            for kind in ("maintenance", "queued")
        )
        self._jobs = sorted((r for r in rows if r.kind == "held"), key=lambda job: job.ended)
        self._newest = max((job.began for job in self._jobs), default=0)

    def fill_gap(self, began: int, ended: int) -> list[StripSpan]:
        """The spans of a gap."""
        free = subtract_spans([(began, ended)], self._maintained)
        rest = subtract_spans(free, self._queued)
        found = [StripSpan(a, b, "queued") for a, b in subtract_spans(free, rest)]
        judged = self._judge_gap(began, ended)
        if judged is not None:
            found += [StripSpan(a, b, judged) for a, b in rest]
        return sorted(found, key=lambda one: one.began)

    def _judge_gap(self, began: int, ended: int) -> StripClass | None:
        """What the time without a job after the last one was, where nothing waited in the queue."""
        before = bisect_right(self._jobs, began, key=lambda job: job.ended)
        if not before:
            return None
        last = self._jobs[before - 1]
        if self._newest >= ended or last.cause not in PLANNED_ENDS:
            return "down"
        return "blind" if not last.cause and ended - last.ended >= MIN_SILENCE_US else None


def _join_spans(spans: Sequence[StripSpan]) -> list[StripSpan]:
    joined = list[StripSpan]()
    for one in spans:
        if joined and joined[-1].kind == one.kind and joined[-1].ended == one.began:
            joined[-1] = StripSpan(joined[-1].began, one.ended, one.kind)
        else:
            joined.append(one)
    return joined


def cut_cells(
    spans: Sequence[StripSpan], since: int, until: int, count: int
) -> list[StripClass | None]:
    """The strip in cells of the same length: of each the class that most of it was. None: nothing
    is known of it, and nothing was expected."""
    cells = list[StripClass | None]()
    for number in range(count):
        began = since + (until - since) * number // count
        ended = since + (until - since) * (number + 1) // count
        times = dict[StripClass, int]()
        for one in spans:
            time = min(one.ended, ended) - max(one.began, began)
            if time > 0:
                weight = 2 if one.kind in _URGENT else 1
                times[one.kind] = times.get(one.kind, 0) + time * weight
        cells.append(max(times.items(), key=lambda pair: pair[1])[0] if times else None)
    return cells
