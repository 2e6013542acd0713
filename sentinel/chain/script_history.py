"""The past runs of a script, and which runs a pass has to submit because of them."""

from collections.abc import Sequence
from datetime import tzinfo
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain.script import CronScript, find_next_slot, iterate_slots

MAX_MADE_UP_SLOTS = 24
"""How many missed runs `catchup=all` submits at once."""

ON_TIME_S = 900.0
"""Seconds after which `catchup=none` counts a slot as missed. A pass may be late by less."""

MAX_RUNS_KEPT = 10


class SubmittedRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run: its slot, its job, and its end as soon as that is known.

    `state` is Slurm's word (COMPLETED, FAILED, TIMEOUT, …). It is `LOST` if neither slurmctld nor
    accounting knows the job any more. `job` is empty if nobody knows whether there was one.
    `elements` says how many elements of a job array ended badly, and how.
    """

    slot: int
    job: str
    at: float
    log: str = ""
    state: str = ""
    code: int | None = None
    ended: int | None = None
    elements: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the end of the run is known."""
        return bool(self.state)


class ScriptRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The past of a script. All slots up to `handled` (epoch seconds) have been dealt with.

    `next_slot` is the next one, by the `schedule` in words. Both are empty if they are not known.
    `begun_slot` is a slot whose submission began at `begun_at` (epoch seconds) and whose job id never
    came back. `begun_refused` says that sbatch itself said no.
    """

    handled: float
    runs: tuple[SubmittedRun, ...] = ()
    missed: int = 0
    skipped: int = 0
    trouble: str = ""
    schedule: str = ""
    next_slot: int = 0
    begun_slot: int = 0
    begun_at: float = 0.0
    begun_refused: bool = False

    @property
    def open_runs(self) -> tuple[SubmittedRun, ...]:
        """Runs whose end is not known."""
        return tuple(run for run in self.runs if not run.is_over)


class DueSlots(Struct, frozen=True, kw_only=True):
    """What a pass does about a script: it submits the slots in `run`. The others are only counted."""

    run: tuple[int, ...] = ()
    missed: int = 0
    skipped: int = 0


def update_record(
    record: ScriptRecord | None, runs: Sequence[SubmittedRun], now: float
) -> ScriptRecord:
    """The record at the begin of a pass, with the ends of its runs.

    A new script starts with its next slot. If the clock was set back, all scripts do: no slot in
    the future counts as due.
    """
    if record is None:
        return ScriptRecord(handled=now)
    return replace(record, handled=min(record.handled, now), runs=tuple(runs))


def due_slots(script: CronScript, record: ScriptRecord, now: float, zone: tzinfo) -> DueSlots:
    """Which slots since the last pass are run now. Slots that were already run are left out."""
    known = {run.slot for run in record.runs}
    missing = [
        s for s in iterate_slots(script.schedule, record.handled, now, zone) if s not in known
    ]
    if not missing:
        return DueSlots()
    run = _choose_slots(script, missing, now)
    missed = len(missing) - len(run)
    if script.overlap == "skip" and record.open_runs:
        return DueSlots(missed=missed, skipped=len(run))
    if script.overlap == "queue" and len(record.open_runs) > 1:
        return DueSlots(missed=missed, skipped=len(run))
    return DueSlots(run=tuple(run), missed=missed)


def record_submitted(
    record: ScriptRecord, due: DueSlots, submitted: Sequence[SubmittedRun], now: float
) -> ScriptRecord:
    """The record after the submissions, newest runs first."""
    runs = (*sorted(submitted, key=lambda run: -run.slot), *record.runs)
    kept = [run for run in runs if not run.is_over]
    done = islice((run for run in runs if run.is_over), MAX_RUNS_KEPT)
    return replace(
        record,
        handled=now,
        runs=tuple(sorted([*kept, *done], key=lambda run: (-run.slot, run.job))),
        missed=due.missed if due.run or due.missed else record.missed,
        skipped=record.skipped + due.skipped if due.skipped else 0 if due.run else record.skipped,
        trouble="",
        begun_slot=0,
        begun_at=0.0,
        begun_refused=False,
    )


def record_begun(
    record: ScriptRecord, submitted: Sequence[SubmittedRun], slot: int, now: float, why: str
) -> ScriptRecord:
    """The record while a slot is being submitted, after those in `submitted`."""
    return replace(record_failed(record, submitted, why), begun_slot=slot, begun_at=now)


def record_settled(record: ScriptRecord, run: SubmittedRun | None) -> ScriptRecord:
    """The record after it was found out what became of the submission that had begun: a run, or
    None if there was none."""
    runs = record.runs if run is None else record_failed(record, (run,), "").runs
    return replace(record, runs=runs, begun_slot=0, begun_at=0.0, begun_refused=False)


def record_failed(
    record: ScriptRecord, submitted: Sequence[SubmittedRun], why: str
) -> ScriptRecord:
    """The record after a failure. `submitted` (maybe empty) are the runs that were submitted. All
    others stay due."""
    runs = tuple(sorted((*submitted, *record.runs), key=lambda run: (-run.slot, run.job)))
    return replace(record, runs=runs, trouble=why)


def update_next_slot(
    record: ScriptRecord, script: CronScript, now: float, zone: tzinfo
) -> ScriptRecord:
    """The record with the slot that comes next. It is looked for only when it has passed or the
    schedule was changed."""
    text = script.schedule.text
    if record.schedule == text and record.next_slot > now:
        return record
    return replace(record, schedule=text, next_slot=find_next_slot(script.schedule, now, zone) or 0)


def _choose_slots(script: CronScript, missing: list[int], now: float) -> list[int]:
    if script.catchup == "all":
        return missing[-MAX_MADE_UP_SLOTS:]
    if script.catchup == "none" and now - missing[-1] > ON_TIME_S:
        return []
    return missing[-1:]
