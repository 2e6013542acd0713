"""The watched jobs, sorted by what they mean for the training."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from sentinel.checks.job.chained import chained, depends
from sentinel.checks.job.memory import Memory
from sentinel.core.clock import Instant, elapsed
from sentinel.slurm.job_states import EXPEDITED, Phase, phase
from sentinel.slurm.model import Job
from sentinel.slurm.pending_reasons import Ends, explain


class Queue(Struct, frozen=True, kw_only=True):
    """Who runs, who will start by itself, who needs a person, and who we cannot place."""

    running: tuple[Job, ...] = ()
    starting: tuple[Job, ...] = ()
    waiting: tuple[Job, ...] = ()
    held: tuple[Job, ...] = ()
    paused: tuple[Job, ...] = ()
    ending: tuple[Job, ...] = ()
    unclear: tuple[Job, ...] = ()

    @property
    def alive(self) -> tuple[Job, ...]:
        """Those that have nodes and use them, or soon will."""
        return self.running + self.starting

    @property
    def coming(self) -> tuple[Job, ...]:
        """Those that may start without anybody's help."""
        return self.waiting + self.unclear

    @property
    def pending(self) -> tuple[Job, ...]:
        """All that have not begun."""
        return self.waiting + self.unclear + self.held


def elements(jobs: Sequence[Job]) -> int:
    """How many jobs the rows stand for: a row of a waiting array is several."""
    return sum(max(1, job.elements) for job in jobs)


def held_up(jobs: Sequence[Job], others: Sequence[Job]) -> Collection[str]:
    """The ids of those that wait, at any remove, for one of `others` that only a person lets go."""
    return chained(others, _held) if any(map(depends, jobs)) else ()


def arranged(
    jobs: Sequence[Job], memory: Memory, now: Instant, stuck: Collection[str] = ()
) -> Queue:
    """Sort jobs into a Queue; `memory` tells for how long each has had its reason, `stuck` are
    those that are `held_up`."""
    places: dict[Phase, list[Job]] = {}
    for job in jobs:
        place = Phase.HELD if job.id in stuck else _place(job, memory, now)
        places.setdefault(place, []).append(job)
    places.pop(Phase.OVER, None)
    return Queue(**{place.value: tuple(members) for place, members in places.items()})


def _place(job: Job, memory: Memory, now: Instant) -> Phase:
    where = phase(job.state)
    if where is not Phase.WAITING:
        return where
    reason = explain(job.reason)
    seen = memory.of(job)
    shown = elapsed(seen.since, now) if seen else 0.0
    if job.state == "EXPEDITING" and shown > EXPEDITED:
        return Phase.HELD
    if reason.ends is Ends.ITSELF and reason.patience is not None and shown > reason.patience:
        return Phase.HELD
    return _PHASE[reason.ends]


def _held(job: Job) -> bool:
    """Whether by its state and reason alone a person is needed."""
    where = phase(job.state)
    waits = where is Phase.WAITING and explain(job.reason).ends is Ends.PERSON
    return waits or where is Phase.HELD


_PHASE = {Ends.ITSELF: Phase.WAITING, Ends.PERSON: Phase.HELD, Ends.UNKNOWN: Phase.UNCLEAR}
