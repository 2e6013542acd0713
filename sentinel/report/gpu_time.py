"""Splits the time of one job's GPUs into exclusive parts, exactly, in integers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Literal, get_args

from msgspec import Struct

from sentinel.core.run_ledger import LedgerRow

TimeClass = Literal[
    "useful",
    "provisional",
    "redone",
    "startup",
    "checkpoint",
    "evaluation",
    "slow",
    "hung",
    "crashed",
    "tail",
    "idle",
    "unknown",
]
CLASSES: tuple[TimeClass, ...] = get_args(TimeClass)

PRECEDENCE: tuple[str, ...] = (
    "blind",
    "hung",
    "crashed",
    "checkpoint",
    "evaluation",
    "steps",
    "startup",
    "idle",
)
"""Where two rows claim the same time, the first of these kinds gets it. Time that no row claims is
unknown, like the time when sentinel was blind: nothing is claimed for what nobody saw. Within steps,
checkpoints and evaluation that have no rows of their own come first, then what the steps took too
long (slow), then steps that were lost (tail, redone), then useful and provisional ones."""

_CLAIMING = frozenset(PRECEDENCE)

STEP_SCALE = 1000
"""Steps are counted in thousandths, because some trainers print fractions of an epoch."""


class TimePiece(Struct, frozen=True, gc=False):
    """A piece of time that one row claims. `row` is None where none does."""

    began: int
    ended: int
    row: LedgerRow | None


SLOW_TENTHS = 11
"""Steps are slow if they take longer than this many tenths of their usual time."""

MIN_SLOW_SPAN_US = 600 * 10**6
"""A shorter row says nothing about the pace."""

MAX_STEP = 1e15
"""A log or the name of a checkpoint can hold any number. No training makes so many steps."""


def scale_step(step: float | None) -> int:
    """The step in thousandths."""
    if not step:
        return 0
    if not -MAX_STEP <= step <= MAX_STEP:
        step = MAX_STEP if step > MAX_STEP else -MAX_STEP
    return round(step * STEP_SCALE)


class StepRow(Struct, frozen=True, gc=False):
    """A row with steps. A year has a hundred thousand, and each is asked many times."""

    row: LedgerRow
    began: int
    ended: int
    first: int  # The step at the beginning, in thousandths.
    last: int  # The step at the end.


def make_step_row(row: LedgerRow) -> StepRow:
    """The row with its steps in thousandths."""
    first, last = scale_step(row.first_step), scale_step(row.last_step)
    return StepRow(row, row.began, row.ended, first, last)


def measure_pace(steps: StepRow) -> int:
    """The time of a step (µs). 0 if the row is too short to say."""
    made, row = steps.last - steps.first, steps.row
    time = steps.ended - steps.began - row.checkpoint_us - row.evaluation_us
    return time * STEP_SCALE // made if made > 0 and time >= MIN_SLOW_SPAN_US else 0


def measure_slow_time(steps: StepRow, pace: int, usual: int) -> int:
    """How much longer the steps of the row took than usual (µs)."""
    if pace * 10 <= usual * SLOW_TENTHS:
        return 0
    return (pace - usual) * (steps.last - steps.first) // STEP_SCALE


def cut_pieces(began: int, ended: int, rows: Iterable[LedgerRow]) -> list[TimePiece]:
    """The time from `began` to `ended` in pieces, each given to one row by PRECEDENCE.

    The pieces touch each other and never overlap, so their lengths add up to the whole. Of two rows
    of one kind the earlier one gets the time: a clock that jumps back counts nothing twice.
    """
    claiming = [row for row in rows if row.ended > row.began and row.kind in _CLAIMING]
    claiming.sort(key=attrgetter("began"))
    if (pieces := _lay_side_by_side(began, ended, claiming)) is not None:
        return pieces
    free, taken = [(began, ended)] if ended > began else [], list[TimePiece]()
    claims = dict[str, list[LedgerRow]]()
    for row in claiming:
        claims.setdefault(row.kind, []).append(row)
    for kind in PRECEDENCE:
        if mine := claims.get(kind):
            mine.sort(key=attrgetter("began", "ended"))
            free = _claim_free_time(free, mine, taken)
    taken += [TimePiece(start, end, None) for start, end in free]
    return sorted(taken, key=attrgetter("began"))


def _lay_side_by_side(began: int, ended: int, rows: Sequence[LedgerRow]) -> list[TimePiece] | None:
    """The pieces if no two rows claim the same time, as in most jobs; None otherwise."""
    pieces, at = list[TimePiece](), began
    for row in rows:
        if row.began < at:
            return None
        if row.began > at:
            pieces.append(TimePiece(at, row.began, None))
        at = row.ended
        pieces.append(TimePiece(row.began, at, row))
    if at < ended:
        pieces.append(TimePiece(at, ended, None))
    return pieces if at <= ended else None


def _claim_free_time(
    free: Sequence[tuple[int, int]], rows: Sequence[LedgerRow], taken: list[TimePiece]
) -> list[tuple[int, int]]:
    """Give the free time to these rows, which are ordered by time. Returns what is left."""
    left, at = list[tuple[int, int]](), 0
    for start, end in free:
        while at < len(rows) and rows[at].ended <= start:
            at += 1
        position, ahead = start, at
        while position < end and ahead < len(rows) and rows[ahead].began < end:
            row = rows[ahead]
            ahead += 1
            if row.ended <= position:
                continue
            if row.began > position:
                left.append((position, row.began))
                position = row.began
            upto = min(end, row.ended)
            taken.append(TimePiece(position, upto, row))
            position = upto
        if position < end:
            left.append((position, end))
    return left


def join_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The time that at least one of the spans covers, as spans in order that do not touch."""
    joined = list[tuple[int, int]]()
    for began, ended in sorted(spans):
        if joined and began <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], ended))
        elif ended > began:
            joined.append((began, ended))
    return joined


def subtract_spans(
    free: Iterable[tuple[int, int]], joined: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What joined spans leave of the free time."""
    left = list[tuple[int, int]]()
    for start, end in free:
        position, at = start, bisect_right(joined, start, key=lambda one: one[1])
        while at < len(joined) and joined[at][0] < end:
            left.append((position, joined[at][0]))
            position = joined[at][1]
            at += 1
        left.append((position, end))
    return [(began, ended) for began, ended in left if ended > began]


class StepLimits(Struct, frozen=True, gc=False):
    """Where a stretch of steps stops to count, in thousandths of a step."""

    floor: int | None = None  # A later start went on from here: what is above it was lost.
    safe: int | None = None  # The newest complete checkpoint: what is below it is in the model.
    knows_checkpoints: bool = False  # Whether anything says which checkpoints are complete.
    slow_us: int = 0  # How much longer than usual the steps of the row took.
    hits_time_limit: bool = False  # Whether the job ended at its time limit.


def split_steps(piece: TimePiece, steps: StepRow, limits: StepLimits) -> dict[TimeClass, int]:
    """The parts of a piece of a row with steps, µs. They add up to the length of the piece."""
    parts, rest = _split_own_times(piece, steps, limits.slow_us)
    first, last, safe = steps.first, steps.last, limits.safe
    if limits.floor is None and safe is not None and first <= safe and last <= safe:
        parts["useful"] = rest  # most rows
        return parts

    def take(name: TimeClass, amount: int) -> None:
        nonlocal rest
        taken = max(0, min(rest, amount))
        parts[name] = parts.get(name, 0) + taken
        rest -= taken

    whole = steps.ended - steps.began
    start = first + (last - first) * (piece.began - steps.began) // whole
    end = first + (last - first) * (piece.ended - steps.began) // whole
    work = rest
    lost: TimeClass = "tail" if limits.hits_time_limit else "redone"
    if limits.floor is not None:
        take(lost, _measure_share_above(limits.floor, start, end, work))
    if limits.safe is None:
        take("provisional" if limits.knows_checkpoints else "unknown", rest)
    else:
        # What is above the floor has gone already, so only what lies between counts here.
        top = end if limits.floor is None else min(end, max(limits.floor, start))
        above = _measure_share_above(limits.safe, start, top, rest)
        take("provisional" if limits.knows_checkpoints else "unknown", above)
    take("useful", rest)
    return parts


def _split_own_times(
    piece: TimePiece, steps: StepRow, slow_us: int
) -> tuple[dict[TimeClass, int], int]:
    """What a piece spent on something other than steps at their usual pace, and the rest of it."""
    row, rest = steps.row, piece.ended - piece.began
    whole, length = steps.ended - steps.began, rest
    parts = dict[TimeClass, int]()
    own: tuple[tuple[TimeClass, int], ...] = (
        ("checkpoint", row.checkpoint_us),
        ("evaluation", row.evaluation_us),
        ("slow", slow_us),
    )
    for name, time in own:
        if time:
            taken = time if length == whole else time * length // whole
            parts[name] = taken if taken < rest else rest
            rest -= parts[name]
    return parts, rest


def _measure_share_above(limit: int, start: int, end: int, time: int) -> int:
    """How much of the time belongs to steps above the limit. Steps pass evenly."""
    if end <= start:
        return time if end > limit else 0
    return time * max(0, end - max(start, limit)) // (end - start)
