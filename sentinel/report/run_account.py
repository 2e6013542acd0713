"""The account of one run: where all the time of its GPUs went. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from operator import attrgetter

from msgspec import Struct

from sentinel.core.run_ledger import LedgerRow
from sentinel.report.gpu_time import (
    CLASSES,
    SLOW_TENTHS,
    StepLimits,
    StepRow,
    TimeClass,
    TimePiece,
    cut_pieces,
    join_spans,
    make_step_row,
    measure_pace,
    measure_slow_time,
    split_steps,
    subtract_spans,
)
from sentinel.report.interruptions import Interruption, find_interruptions
from sentinel.report.lost_steps import (
    OVERLAP_US,
    JobSteps,
    StepHistory,
    add_unseen_first_steps,
    make_job_steps,
    place_checkpoints,
    trace_steps,
)
from sentinel.report.strip import StripSpan, classify_piece

MAX_ENDING_US = 1800 * 10**6
"""Between the last row of a job and its end no more time than this is explained by the end."""

MIN_PACE_ROWS = 3
"""A run has a usual pace if so many rows show it."""

WORK_KINDS = ("steps", "checkpoint", "evaluation")
"""Rows of these kinds end when that work ended."""

_OTHER_CLASSES: Mapping[str, TimeClass] = {
    "hung": "hung",
    "crashed": "crashed",
    "checkpoint": "checkpoint",
    "evaluation": "evaluation",
    "startup": "startup",
    "idle": "idle",
}


class CalendarTime(Struct, frozen=True, kw_only=True):
    """The calendar time of a run, µs. Its parts add up to the whole."""

    held: int = 0
    queued: int = 0
    not_submitted: int = 0
    maintenance: int = 0

    @property
    def counted(self) -> int:
        """The time that the ETTR counts: all but announced maintenance."""
        return self.held + self.queued + self.not_submitted


class HungTime(Struct, frozen=True, kw_only=True):
    """The GPU-time of hangs, by what ended each part. The parts add up to the class `hung`."""

    until_noticed: int = 0  # Until sentinel raised the alarm.
    until_acted: int = 0  # From there until sentinel acted, if it did.
    until_over: int = 0  # The rest, until it made steps again or the job ended.


class RunAccount(Struct, frozen=True, kw_only=True):
    """Where the time of a run went. GPU-times are µs times GPUs.

    parts: All of CLASSES. They add up to `held` exactly.
    useful_us: Useful time without the number of GPUs.
    overlapping: Two of its jobs ran at once.
    costs: What each interruption cost: steps that were lost, time hung, crashed and starting again.
    missing: Which kinds of checks would have to be configured to know more.
    doubts: What the numbers rest on, in sentences.
    """

    run: str
    began: int
    ended: int
    held: int
    parts: Mapping[TimeClass, int]
    useful_us: int
    calendar: CalendarTime
    hung: HungTime = HungTime()
    overlapping: bool = False
    interruptions: tuple[Interruption, ...] = ()
    costs: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    cluster: str = ""

    @property
    def knows_useful(self) -> bool:
        """Whether anything says which steps are in the model."""
        return "checkpoint" not in self.missing and "log" not in self.missing

    @property
    def goodput(self) -> Fraction | None:
        """Useful by held GPU-time. None if it is not known."""
        known = self.held and self.knows_useful
        return Fraction(self.parts["useful"], self.held) if known else None

    @property
    def ettr(self) -> Fraction | None:
        """Useful by calendar time, with queue and gaps and without maintenance. None if it is not
        known, or if jobs ran at once."""
        known = self.calendar.counted and self.knows_useful
        alone = known and not self.overlapping
        return Fraction(self.useful_us, self.calendar.counted) if alone else None


def account_run(
    run: str,
    rows: Iterable[LedgerRow],
    since: int,
    until: int,
    spans: list[StripSpan] | None = None,
) -> RunAccount:
    """Split the GPU-time that a run held between `since` and `until` (µs UTC).

    Rows from before `since` are needed too: they say what became of the steps. With `spans` what
    the jobs did is added to it, for a strip.
    """
    known = sorted(rows, key=attrgetter("began", "ended"))
    kinds = _RowsByKind(known)
    saved = kinds["saved"]
    jobs = _collect_jobs(kinds)
    checkpoints = place_checkpoints(jobs, saved)
    jobs = add_unseen_first_steps(jobs, checkpoints)
    sums, others = _RunSums(jobs, trace_steps(jobs, checkpoints), spans), _group_rows(kinds)
    for number, job in enumerate(jobs):
        began, ended = max(job.held.began, since), min(job.held.ended, until)
        rows_of_job = [*others.get(_get_start_key(job.held), ()), *(one.row for one in job.steps)]
        sums.add_job(number, cut_pieces(began, ended, rows_of_job), rows_of_job)
        sums.held += max(0, ended - began) * job.held.gpus
    kept = [at for at, one in enumerate(sums.found) if since <= one.at < until]
    return RunAccount(
        run=run,
        began=max(since, known[0].began if known else since),
        ended=min(until, max(map(attrgetter("ended"), known), default=until)),
        held=sums.held,
        parts=sums.parts,
        useful_us=sums.useful_us,
        calendar=_measure_calendar(kinds, since, until),
        hung=sums.hung,
        interruptions=tuple(sums.found[at] for at in kept),
        costs=tuple(sums.costs[at] for at in kept),
        missing=_list_missing_checks(jobs, saved),
        overlapping=_is_overlapping(jobs),
        doubts=_list_doubts(jobs, kinds),
    )


class _RowsByKind(dict[str, list[LedgerRow]]):
    """The rows of a run by their kind, each in their order; a year has a thousand rows a run."""

    def __init__(self, rows: Iterable[LedgerRow]) -> None:
        super().__init__()
        for row in rows:
            self[row.kind].append(row)

    def __missing__(self, kind: str) -> list[LedgerRow]:
        return self.setdefault(kind, [])


class _RunSums:
    """Adds up the pieces of all jobs of a run.

    held: The GPU-time that was held.
    found: The interruptions, by time.
    costs: What each of them cost.
    """

    def __init__(
        self, jobs: Sequence[JobSteps], history: StepHistory, spans: list[StripSpan] | None
    ) -> None:
        self._jobs, self._history, self._spans = jobs, history, spans
        self._paces = [[measure_pace(row) for row in job.steps] for job in jobs]
        self._usual = _find_usual_paces(jobs, self._paces)
        self._plain = StepLimits(safe=history.safe, knows_checkpoints=history.knows_checkpoints)
        self.found = find_interruptions(jobs)
        self._times = [one.at for one in self.found]
        self.costs = [0] * len(self.found)
        self.parts: dict[TimeClass, int] = dict.fromkeys(CLASSES, 0)
        self.held = self.useful_us = 0
        self.hung = HungTime()

    def add_job(self, number: int, pieces: Iterable[TimePiece], rows: Sequence[LedgerRow]) -> None:
        """Add the pieces of one start of a job. `rows` says what its time was spent on."""
        job = self._jobs[number]
        places = {id(one.row): at for at, one in enumerate(job.steps)}
        last = max(rows, key=attrgetter("ended", "began"), default=None)
        limits, gpus = self._list_limits(number), job.held.gpus
        for found in pieces:
            piece = found if found.row else _extend_last_row(found, job, last)
            at = places.get(id(piece.row), -1)
            if (
                at >= 0
                and limits[at] is self._plain
                and self._add_useful_row(piece, job.steps[at], gpus)
            ):
                continue
            if at >= 0:
                split = split_steps(piece, job.steps[at], limits[at])
            else:
                split = {_classify_other(piece, job, last): piece.ended - piece.began}
            for name, time in split.items():
                self.parts[name] += time * gpus
            self.useful_us += split.get("useful", 0)
            if at < 0 and piece.row is not None and piece.row.kind == "hung":
                self.hung = _add_hung_piece(self.hung, piece, piece.row, gpus)
            if at < 0 or limits[at].floor is not None:
                self._charge_interruption(piece, split, number, at)
            if self._spans is not None:
                self._spans += classify_piece(piece, split)

    def _add_useful_row(self, piece: TimePiece, steps: StepRow, gpus: int) -> bool:
        """Add a whole row of which each step is in the model, as most are. False: it is another one."""
        safe, row, rest = self._plain.safe, steps.row, piece.ended - piece.began
        if safe is None or self._spans is not None or steps.first > safe or steps.last > safe:
            return False
        if rest != steps.ended - steps.began:
            return False
        if row.checkpoint_us:
            saving = min(rest, row.checkpoint_us)
            self.parts["checkpoint"] += saving * gpus
            rest -= saving
        if row.evaluation_us:
            judging = min(rest, row.evaluation_us)
            self.parts["evaluation"] += judging * gpus
            rest -= judging
        self.parts["useful"] += rest * gpus
        self.useful_us += rest
        return True

    def _list_limits(self, number: int) -> list[StepLimits]:
        """The limits of each row with steps of this job. Most rows have the plain ones."""
        paces, usual = self._paces[number], self._usual.get(self._jobs[number].held.gpus)
        longest = usual * SLOW_TENTHS if usual else max(paces, default=0) * 10
        return [
            self._plain
            if pace * 10 <= longest and (number, at) not in self._history.floors
            else self._make_limits(number, at, usual)
            for at, pace in enumerate(paces)
        ]

    def _make_limits(self, number: int, at: int, usual: int | None) -> StepLimits:
        job, history = self._jobs[number], self._history
        slow = measure_slow_time(job.steps[at], self._paces[number][at], usual) if usual else 0
        floor = history.floors.get((number, at))
        return StepLimits(
            floor=floor[0] if floor else None,
            safe=history.safe,
            knows_checkpoints=history.knows_checkpoints,
            slow_us=slow,
            # What a restart inside the job lost before is no tail.
            hits_time_limit=job.held.cause == "time_limit"
            and floor is not None
            and floor[1] >= job.held.ended - OVERLAP_US,
        )

    def _charge_interruption(
        self, piece: TimePiece, split: Mapping[TimeClass, int], number: int, at: int
    ) -> None:
        """Add what a piece lost to the interruption that lost it. Steps were lost by the last one
        before the start that went back; a start is due to the one before it; a standstill to the
        one at its end."""
        kind = piece.row.kind if piece.row else ""
        lost, place = piece.ended - piece.began, -1
        if at >= 0:
            lost = split.get("redone", 0) + split.get("tail", 0)
            floor = self._history.floors.get((number, at))
            place = bisect_right(self._times, floor[1]) - 1 if floor else -1
        elif kind == "startup":
            place = bisect_right(self._times, piece.began) - 1
        elif kind in ("hung", "crashed"):
            place = bisect_left(self._times, piece.began)
        if 0 <= place < len(self.costs):
            self.costs[place] += lost * self._jobs[number].held.gpus


def _add_hung_piece(before: HungTime, piece: TimePiece, row: LedgerRow, gpus: int) -> HungTime:
    noticed = min(max(piece.began, row.noticed or row.ended), piece.ended)
    acted = min(max(noticed, row.acted or noticed), piece.ended)
    return HungTime(
        until_noticed=before.until_noticed + (noticed - piece.began) * gpus,
        until_acted=before.until_acted + (acted - noticed) * gpus,
        until_over=before.until_over + (piece.ended - acted) * gpus,
    )


def _get_start_key(row: LedgerRow) -> tuple[str, int]:
    return row.job, row.attempt


def _group_rows(kinds: _RowsByKind) -> dict[tuple[str, int], list[LedgerRow]]:
    grouped = dict[tuple[str, int], list[LedgerRow]]()
    for kind, rows in kinds.items():
        if kind in ("held", "saved"):
            continue
        for row in rows:
            if row.job and (kind != "steps" or row.last_step is None):
                grouped.setdefault(_get_start_key(row), []).append(row)
    return grouped


def _collect_jobs(kinds: _RowsByKind) -> list[JobSteps]:
    """Each start of a job with its rows. Steps of a job that is not known to hold anything are
    left out: they have no GPUs. So are those without numbers: nothing tells which were lost."""
    steps = dict[tuple[str, int], list[StepRow]]()
    for row in kinds["steps"]:
        if row.last_step is not None and row.ended > row.began:
            steps.setdefault((row.job, row.attempt), []).append(make_step_row(row))
    held = {_get_start_key(row): row for row in kinds["held"]}
    begins = {_get_start_key(row): row for row in reversed(kinds["startup"])}
    found = [
        make_job_steps(row, tuple(steps.get(key, ())), begins.get(key)) for key, row in held.items()
    ]
    return sorted(found, key=lambda job: job.held.began)


def _find_usual_paces(
    jobs: Sequence[JobSteps], measured: Sequence[Sequence[int]]
) -> dict[int, int]:
    """The usual time of a step (µs), by number of GPUs: the median of what was `measured` of the
    rows of each job."""
    paces = dict[int, list[int]]()
    for job, own in zip(jobs, measured, strict=True):
        paces.setdefault(job.held.gpus, []).extend(filter(None, own))
    return {
        gpus: sorted(found)[len(found) // 2]
        for gpus, found in paces.items()
        if len(found) >= MIN_PACE_ROWS
    }


def _is_unseen_end(piece: TimePiece, job: JobSteps, last: LedgerRow | None) -> bool:
    """Whether the piece lies between the last row and the known end of the job, where nobody looked
    any more. If that is long, sentinel may have been blind."""
    if piece.row is not None or not job.held.cause or last is None:
        return False
    return piece.began >= last.ended and job.held.ended - last.ended <= MAX_ENDING_US


def _extend_last_row(piece: TimePiece, job: JobSteps, last: LedgerRow | None) -> TimePiece:
    """A standstill or a start that was seen last went on until the end of the job."""
    goes_on = last is not None and last.kind not in WORK_KINDS and _is_unseen_end(piece, job, last)
    return TimePiece(piece.began, piece.ended, last) if goes_on else piece


def _classify_other(piece: TimePiece, job: JobSteps, last: LedgerRow | None) -> TimeClass:
    """The class of a piece without steps. After the last steps the kind of the end says what it
    was: the limit cut it, it crashed, or it waited for its end."""
    if piece.row is not None:
        return _OTHER_CLASSES.get(piece.row.kind, "unknown")
    if not _is_unseen_end(piece, job, last):
        return "unknown"
    return {"time_limit": "tail", "completed": "idle"}.get(job.held.cause, "crashed")  # type: ignore[return-value]


def _measure_calendar(kinds: _RowsByKind, since: int, until: int) -> CalendarTime:
    """The calendar time from the first to the last row of the run, each moment counted once: held,
    else maintenance, else queued, else not submitted."""
    spans = [*kinds["held"], *kinds["queued"]]
    if not spans:
        return CalendarTime()
    began = max(since, min(r.began for r in spans))
    ended = min(until, max(r.ended for r in spans))
    sums, free = dict[str, int](), [(began, ended)] if ended > began else []
    for kind in ("held", "maintenance", "queued"):
        before = sum(b - a for a, b in free)
        free = subtract_spans(free, join_spans((r.began, r.ended) for r in kinds[kind]))
        sums[kind] = before - sum(b - a for a, b in free)
    rest = sum(b - a for a, b in free)
    return CalendarTime(
        held=sums["held"],
        queued=sums["queued"],
        maintenance=sums["maintenance"],
        not_submitted=rest,
    )


def _list_missing_checks(jobs: Sequence[JobSteps], saved: Sequence[LedgerRow]) -> tuple[str, ...]:
    """The kinds of checks without which less is known."""
    return tuple(
        kind
        for kind, known in (
            ("job", bool(jobs)),
            ("log", any(job.steps for job in jobs)),
            ("checkpoint", bool(saved)),
        )
        if not known
    )


def _is_overlapping(jobs: Sequence[JobSteps]) -> bool:
    latest = 0
    for job in jobs:
        if latest - OVERLAP_US > job.held.began:
            return True
        latest = max(latest, job.held.ended)
    return False


def _list_doubts(jobs: Sequence[JobSteps], kinds: _RowsByKind) -> tuple[str, ...]:
    doubts = list[str]()
    if _is_overlapping(jobs):
        doubts.append("two of its jobs ran at once, so their checkpoints cannot be told apart")
    if any(row.last_step is None for row in kinds["steps"]):
        doubts.append(
            "the number in its log begins anew in each epoch, so lost steps cannot be told; "
            "set `progress` to one that counts on"
        )
    if any(job.held.gpus == 0 for job in jobs):
        doubts.append("jobs without GPUs are left out of all GPU-hours")
    return tuple(doubts)
