"""What is remembered of a script, and what follows from it when a pass comes by."""

from collections.abc import Sequence
from datetime import tzinfo
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain.script import Script, slots

MOST_MADE_UP = 24
"""Runs that `catchup=all` makes up at once."""

ON_TIME = 900.0
"""Seconds after which a slot counts as missed for `catchup=none`: a pass may come late."""

HISTORY = 10


class Submitted(Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    def over(self) -> bool:
        """Whether it is known how it ended."""
        return bool(self.state)


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A script's past. `handled`: up to this moment (epoch seconds) its slots are dealt with."""

    handled: float
    runs: tuple[Submitted, ...] = ()
    missed: int = 0
    skipped: int = 0
    trouble: str = ""

    @property
    def open(self) -> tuple[Submitted, ...]:
        """Runs of which the end is not known."""
        return tuple(run for run in self.runs if not run.over)


class Due(Struct, frozen=True, kw_only=True):
    """What a pass has to do about a script: these slots to submit, so many given up."""

    run: tuple[int, ...] = ()
    missed: int = 0
    skipped: int = 0


def found(record: Record | None, runs: Sequence[Submitted], now: float) -> Record:
    """The record as a pass finds it, with what became of its runs since; a new script begins with
    its next slot, and so do all when the clock was put back: nothing is due in a future."""
    if record is None:
        return Record(handled=now)
    return replace(record, handled=min(record.handled, now), runs=tuple(runs))


def due(script: Script, record: Record, now: float, zone: tzinfo) -> Due:
    """Which slots since the last pass are run now; none that was run already."""
    known = {run.slot for run in record.runs}
    missing = [s for s in slots(script.schedule, record.handled, now, zone) if s not in known]
    if not missing:
        return Due()
    run = _chosen(script, missing, now)
    missed = len(missing) - len(run)
    if script.overlap == "skip" and record.open:
        return Due(missed=missed, skipped=len(run))
    if script.overlap == "queue" and len(record.open) > 1:
        return Due(missed=missed, skipped=len(run))
    return Due(run=tuple(run), missed=missed)


def after(record: Record, due: Due, submitted: Sequence[Submitted], now: float) -> Record:
    """The record once that was done: the newest runs first."""
    runs = (*sorted(submitted, key=lambda run: -run.slot), *record.runs)
    kept = [run for run in runs if not run.over]
    done = islice((run for run in runs if run.over), HISTORY)
    return replace(
        record,
        handled=now,
        runs=tuple(sorted([*kept, *done], key=lambda run: (-run.slot, run.job))),
        missed=due.missed if due.run or due.missed else record.missed,
        skipped=record.skipped + due.skipped if due.skipped else 0 if due.run else record.skipped,
        trouble="",
    )


def failed(record: Record, submitted: Sequence[Submitted], why: str) -> Record:
    """The record when only these, or none, were submitted: what was not stays due."""
    runs = tuple(sorted((*submitted, *record.runs), key=lambda run: (-run.slot, run.job)))
    return replace(record, runs=runs, trouble=why)


def _chosen(script: Script, missing: list[int], now: float) -> list[int]:
    if script.catchup == "all":
        return missing[-MOST_MADE_UP:]
    if script.catchup == "none" and now - missing[-1] > ON_TIME:
        return []
    return missing[-1:]
