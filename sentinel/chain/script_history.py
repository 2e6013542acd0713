"""What is remembered of a script, and what follows from it when a pass comes by."""

from collections.abc import Sequence
from datetime import tzinfo
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain.script import CronScript, iterate_slots

MAX_MADE_UP_SLOTS = 24
"""Runs that `catchup=all` makes up at once."""

ON_TIME_S = 900.0
"""Seconds after which a slot counts as missed for `catchup=none`: a pass may come late."""

MAX_RUNS_KEPT = 10


class SubmittedRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run: its slot, its job, and how it ended once that is known.

    `state` is Slurm's word (COMPLETED, FAILED, TIMEOUT, …); `LOST` when nothing remembers it.
    """

    slot: int
    job: str
    at: float
    log: str = ""
    state: str = ""
    code: int | None = None
    ended: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is known how it ended."""
        return bool(self.state)


class ScriptRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A script's past. `handled`: up to this moment (epoch seconds) its slots are dealt with."""

    handled: float
    runs: tuple[SubmittedRun, ...] = ()
    missed: int = 0
    skipped: int = 0
    trouble: str = ""

    @property
    def open_runs(self) -> tuple[SubmittedRun, ...]:
        """Runs of which the end is not known."""
        return tuple(run for run in self.runs if not run.is_over)


class DueSlots(Struct, frozen=True, kw_only=True):
    """What a pass has to do about a script: these slots to submit, so many given up."""

    run: tuple[int, ...] = ()
    missed: int = 0
    skipped: int = 0


def update_record(
    record: ScriptRecord | None, runs: Sequence[SubmittedRun], now: float
) -> ScriptRecord:
    """The record as a pass finds it, with what became of its runs since; a new script begins with
    its next slot, and so do all when the clock was put back: nothing is due in a future."""
    if record is None:
        return ScriptRecord(handled=now)
    return replace(record, handled=min(record.handled, now), runs=tuple(runs))


def due_slots(script: CronScript, record: ScriptRecord, now: float, zone: tzinfo) -> DueSlots:
    """Which slots since the last pass are run now; none that was run already."""
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
    """The record once that was done: the newest runs first."""
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
    )


def record_failed(
    record: ScriptRecord, submitted: Sequence[SubmittedRun], why: str
) -> ScriptRecord:
    """The record when only these, or none, were submitted: what was not stays due."""
    runs = tuple(sorted((*submitted, *record.runs), key=lambda run: (-run.slot, run.job)))
    return replace(record, runs=runs, trouble=why)


def _choose_slots(script: CronScript, missing: list[int], now: float) -> list[int]:
    if script.catchup == "all":
        return missing[-MAX_MADE_UP_SLOTS:]
    if script.catchup == "none" and now - missing[-1] > ON_TIME_S:
        return []
    return missing[-1:]
