"""Follows one start of a job through its log, for the ledger of runs. Pure.

A row grows while the job makes steps, and ends after an hour, so that a slow hour can be told from
its neighbours. Times are those of the looks: a row is right to within one look at each end."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.futile_starts import FinishedStart
from sentinel.checks.log.log_findings import WatchedLog
from sentinel.checks.log.log_state import LogState
from sentinel.checks.log.topics import describe_cause
from sentinel.checks.log.trouble_cause import find_interruption_cause
from sentinel.core.clock import SECOND
from sentinel.core.run_ledger import EndCause, LedgerKind, LedgerRow

MAX_CAUSE_CHARS = 100

MAX_ROW_US = 3600 * SECOND
"""A row with steps is no longer than this."""

MIN_GAP_US = 300 * SECOND
"""A shorter pause between two looks is no blindness."""

MAX_SPACINGS = 3
"""Nor is a pause of fewer of the usual times between two looks."""

NEW_EPOCH_SHARE = 0.05
"""A number that falls below this share without an error or a pause begins anew in each epoch. It
says nothing about lost steps then, so the rows of the run have no steps from there on."""


class RunTracker(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen of one start of a job. Times are µs UTC."""

    attempt: int  # When it started, epoch seconds.
    looked: int  # When it was last looked at.
    spacing: int = 60 * SECOND  # The usual time between two looks.
    gpus: int | None = None  # How many GPUs it has. None: Slurm has not answered yet.
    began: int = 0  # When the row of steps begins. 0: no step was seen yet.
    first: float = 0.0  # The step at its beginning.
    at: int = 0  # When the last step was seen.
    last: float = 0.0  # That step.
    counts_epochs: bool = False  # Whether the number begins anew in each epoch.
    checkpoint_us: int = 0
    evaluation_us: int = 0
    phase: str = ""  # The phase that is open.
    phase_began: int = 0
    hung: int = 0  # Since when it makes no steps, once that is an alarm. 0: it is none.
    noticed: int = 0  # When that became an alarm.
    late: bool = False  # Whether sentinel saw it only after it had begun to make steps.
    start: FinishedStart = FinishedStart()  # What it would be if it ended now.


class RunTrackers(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen of all starts of a training."""

    jobs: dict[str, RunTracker] = {}  # Those that run, by job id.
    counts_epochs: bool = False  # Whether the number begins anew in each epoch.
    starts: tuple[FinishedStart, ...] = ()  # The last starts that are over.


class TrackedLook(Struct, frozen=True):
    """The tracker after a look, the rows that were finished or changed in kind by it, and the start
    inside the job that ended."""

    tracker: RunTracker
    rows: tuple[LedgerRow, ...] = ()
    ended: FinishedStart | None = None


def track_look(
    run: str, before: RunTracker, known: LogState | None, one: WatchedLog, now: int
) -> TrackedLook:
    """Follow one look at a log that could be read. `known` is the log at the look before."""
    job, step = one.sight.job, one.seen.step
    assert job is not None
    if step is not None and _is_ordinary(before, one, step, now):
        at, start = (
            before.at if step == before.last else now,
            _update_start(before.start, one, step),
        )
        return TrackedLook(replace(before, last=step, at=at, looked=now, start=start))
    work = _Tracking(run, job.job_id, before, known, one, now)
    work.bridge_gap(step)
    if step is None:
        pass
    elif not before.began:
        work.begin_first_row(step)
    elif step != work.tracker.last:
        work.record_step(step)
    elif one.verdict.hung and not work.tracker.hung:
        work.begin_hang()
    work.record_phase()
    start = _update_start(work.tracker.start, one, step)
    tracker = replace(work.tracker, looked=now, start=start)
    return TrackedLook(tracker, tuple(work.rows), work.ended)


def _is_ordinary(before: RunTracker, one: WatchedLog, step: float, now: int) -> bool:
    """Whether the row of steps only grows with this look. That is so at almost every look, and then
    one new tracker is all that is made."""
    phase = one.seen.phase
    return (
        before.began > now - MAX_ROW_US
        and step >= before.last
        and not (before.hung or (one.verdict.hung and step == before.last))
        and (phase.name if phase else "") == before.phase
        and not _is_blind(before, now)
    )


def _is_blind(tracker: RunTracker, now: int) -> bool:
    return now - tracker.looked > max(MAX_SPACINGS * tracker.spacing, MIN_GAP_US)


def _update_start(start: FinishedStart, one: WatchedLog, step: float | None) -> FinishedStart:
    """The start with this look: its first and highest step, and its first error since the last
    progress."""
    if step is not None and (start.highest is None or step > start.highest):
        first = step if start.first is None else start.first
        start = replace(start, first=first, highest=step)
    cause = _name_first_error(one) if one.seen.troubles else ""
    return start if cause == start.cause else replace(start, cause=cause)


def _name_first_error(one: WatchedLog) -> str:
    troubles = one.seen.troubles
    return describe_cause(troubles, {})[:MAX_CAUSE_CHARS] if troubles else ""


def list_blind_rows(run: str, job: str, tracker: RunTracker, now: int) -> list[LedgerRow]:
    """The time since the last look, if it is so long that nobody knows what happened in it."""
    if not _is_blind(tracker, now):
        return []
    return [_make_row(run, job, tracker, "blind", tracker.looked, now)]


def list_open_rows(
    run: str, job: str, tracker: RunTracker, seen: LogState | None
) -> list[LedgerRow]:
    """The rows that still grow, as they were at the last look. `seen` is the log at that time."""
    if not tracker.began:
        starting = not tracker.late and seen is not None and not seen.has_advanced
        return [make_startup_row(run, job, tracker, tracker.looked)] if starting else []
    rows = [_make_steps_row(run, job, tracker)] if tracker.at > tracker.began else []
    if tracker.hung:
        rows.append(_make_hung_row(run, job, tracker, seen, tracker.looked))
    elif seen is not None and seen.done and tracker.looked > tracker.at:
        rows.append(_make_row(run, job, tracker, "idle", tracker.at, tracker.looked))
    return rows


class _Tracking:
    """One look: changes the tracker, and collects rows."""

    def __init__(
        self,
        run: str,
        job: str,
        before: RunTracker,
        known: LogState | None,
        one: WatchedLog,
        now: int,
    ) -> None:
        self._run, self._job, self._known, self._one, self._now = run, job, known, one, now
        self.tracker, self.rows = before, list[LedgerRow]()
        self.ended: FinishedStart | None = None

    def bridge_gap(self, step: float | None) -> None:
        """If sentinel did not look for a long time, end what went on before, and begin anew."""
        tracker = self.tracker
        self.rows += list_blind_rows(self._run, self._job, tracker, self._now)
        if not self.rows:
            return
        if tracker.began:
            self.rows += list_open_rows(self._run, self._job, tracker, self._known)
            self._begin_row(tracker.last if step is None else step)
        self.tracker = replace(self.tracker, phase_began=self._now if tracker.phase else 0)

    def begin_first_row(self, step: float) -> None:
        """The first number was seen: what came before it was the start."""
        tracker = self.tracker
        if not tracker.late:
            self.rows.append(make_startup_row(self._run, self._job, tracker, self._now))
        self._begin_row(step)

    def record_step(self, step: float) -> None:
        """The number has changed."""
        tracker, now = self.tracker, self._now
        if tracker.hung:
            self._end_row()
            self.rows.append(_make_hung_row(self._run, self._job, tracker, self._one.seen, now))
            self._begin_row(step)
            return
        if step < tracker.last and self._is_new_epoch(step):
            self.tracker = tracker = replace(tracker, counts_epochs=True)
        elif step < tracker.last and not tracker.counts_epochs:
            cause = find_interruption_cause(self._one.seen.troubles) or "unknown"
            self._end_row(cause)
            self._add_row("startup", tracker.at, now)
            said = _name_first_error(self._one) or tracker.start.cause
            self.ended = replace(tracker.start, cause=said)
            self.tracker = replace(tracker, start=FinishedStart(nodes=tracker.start.nodes))
            self._begin_row(step)
            return
        self.tracker = replace(tracker, last=step, at=now)
        if now - tracker.began >= MAX_ROW_US:
            self._end_row()
            self._begin_row(self.tracker.last)

    def _is_new_epoch(self, step: float) -> bool:
        tracker, troubles = self.tracker, self._one.seen.troubles
        calm = not (troubles or tracker.hung) and self._now - tracker.at < 3 * tracker.spacing
        return calm and 0 <= step <= NEW_EPOCH_SHARE * tracker.last

    def begin_hang(self) -> None:
        """The standstill became an alarm now. It began with the last step."""
        self._end_row()
        self.tracker = replace(self.tracker, hung=self.tracker.at, noticed=self._now)
        self.rows.append(
            _make_hung_row(self._run, self._job, self.tracker, self._one.seen, self._now)
        )

    def record_phase(self) -> None:
        """Add up the time of checkpoints and evaluations. A phase that begins and ends between two
        looks has no time, and one that lies over a look has all the time between two: on the
        average that is right."""
        phase, tracker, now = self._one.seen.phase, self.tracker, self._now
        name = phase.name if phase else ""
        if name == tracker.phase:
            return
        spent = now - tracker.phase_began if tracker.phase else 0
        if is_evaluation(tracker.phase):
            tracker = replace(tracker, evaluation_us=tracker.evaluation_us + spent)
        elif tracker.phase:
            tracker = replace(tracker, checkpoint_us=tracker.checkpoint_us + spent)
        self.tracker = replace(tracker, phase=name, phase_began=now if name else 0)

    def _begin_row(self, step: float) -> None:
        self.tracker = replace(
            self.tracker,
            began=self._now,
            first=step,
            at=self._now,
            last=step,
            checkpoint_us=0,
            evaluation_us=0,
            hung=0,
            noticed=0,
        )

    def _end_row(self, cause: EndCause = "") -> None:
        if self.tracker.at > self.tracker.began:
            self.rows.append(_make_steps_row(self._run, self._job, self.tracker, cause))

    def _add_row(self, kind: LedgerKind, began: int, ended: int) -> None:
        if ended > began:
            self.rows.append(_make_row(self._run, self._job, self.tracker, kind, began, ended))


def is_evaluation(phase: str) -> bool:
    """Whether a phase of this name is an evaluation. Others save a checkpoint."""
    return "eval" in phase.lower() or "valid" in phase.lower() or "test" in phase.lower()


def make_startup_row(run: str, job: str, tracker: RunTracker, ended: int) -> LedgerRow:
    """The time from the start of the job to its first step."""
    began = tracker.attempt * SECOND
    return _make_row(run, job, tracker, "startup", began, max(began, ended))


def _make_hung_row(
    run: str, job: str, tracker: RunTracker, seen: LogState | None, ended: int
) -> LedgerRow:
    """A standstill with an error in the log is a crash: the job holds its GPUs and will not go on."""
    cause = find_interruption_cause(seen.troubles) if seen else None
    asked = seen.asked if seen else None
    row = _make_row(run, job, tracker, "crashed" if cause else "hung", tracker.hung, ended)
    acted = asked.wall if asked and asked.wall >= tracker.hung else None
    return replace(row, cause=cause or "", noticed=tracker.noticed, acted=acted)


def _make_steps_row(run: str, job: str, tracker: RunTracker, cause: EndCause = "") -> LedgerRow:
    row = _make_row(run, job, tracker, "steps", tracker.began, tracker.at)
    return replace(
        row,
        first_step=None if tracker.counts_epochs else tracker.first,
        last_step=None if tracker.counts_epochs else tracker.last,
        checkpoint_us=min(tracker.checkpoint_us, tracker.at - tracker.began),
        evaluation_us=min(tracker.evaluation_us, tracker.at - tracker.began),
        cause=cause,
    )


def _make_row(
    run: str, job: str, tracker: RunTracker, kind: LedgerKind, began: int, ended: int
) -> LedgerRow:
    return LedgerRow(run=run, kind=kind, began=began, ended=ended, job=job, attempt=tracker.attempt)
