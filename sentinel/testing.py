"""Small honest implementations of the ports, for sentinel's tests and for plugin authors'."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import structs

from sentinel.core.clock import Instant, shift_instant
from sentinel.core.cluster import (
    Controller,
    Job,
    JobEnd,
    JobPast,
    JobRun,
    Node,
    Reservation,
    Submission,
    Timeouts,
)
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage
from sentinel.core.ports import Context
from sentinel.slurm.job_states import Phase, state_phase

Answer = TypeVar("Answer")
ALL_SEEN = Coverage(of="subjects", meant=1)
"""Coverage for a report in a test that does not test coverage."""

START = Instant(wall=1_800_000_000_000_000, boot="boot-1", mono=1_000_000_000)


class ManualClock:
    """A clock that moves when told; `jump` moves the wall clock alone."""

    def __init__(self, start: Instant = START) -> None:
        self._now = start

    def now(self) -> Instant:
        return self._now

    def advance(self, seconds: float) -> Instant:
        self._now = shift_instant(self._now, seconds)
        return self._now

    def jump(self, seconds: float) -> Instant:
        self._now = Instant(
            wall=self._now.wall + int(seconds * 1_000_000), boot=self._now.boot, mono=self._now.mono
        )
        return self._now


def job(number: str = "10", state: str = "RUNNING", reason: str = "None", **more: Any) -> Job:
    """A row of squeue at START: a running job has nodes and times, a pending one has none. `more` are
    fields of Job."""
    runs = state_phase(state) not in (Phase.WAITING, Phase.HELD)
    now = START.wall // 1_000_000
    fields: dict[str, Any] = {
        "id": number,
        "job_id": number.partition("_")[0],
        "array_id": number.partition("_")[0],
        "task": number.partition("_")[2],
        "name": "train",
        "user": "alice",
        "partition": "prod",
        "state": state,
        "reason": reason,
        "nodes": "node-[0-3]" if runs else "",
        "node_count": 4,
        "dependency": "",
        "submitted": now - 7200,
        "started": now - 3600 if runs else None,
        "ends": now + 68400 if runs else None,
        "time_limit": 72000,
    }
    return Job(**{**fields, **more})


class FixedSlurm:
    """A Slurm with given answers. Without a given answer it raises CannotTell."""

    def __init__(
        self,
        *,
        jobs: Sequence[Job] | None = None,
        nodes: Sequence[Node] | None = None,
        ends: Mapping[str, JobEnd] | None = None,
        controller: Controller | None = None,
        gpus: Mapping[str, int | None] | None = None,
        timeouts: Timeouts | None = None,
        sluids: Mapping[str, str] | None = None,
        reservations: Sequence[Reservation] | None = None,
        submissions: Mapping[str, Submission] | None = None,
        topology: Mapping[str, str] | None = None,
        partitions: Mapping[str, int] | None = None,
        partition_states: Mapping[str, str] | None = None,
        private: Collection[str] = (),
    ) -> None:
        self._jobs, self._nodes, self._ends = jobs, nodes, ends or {}
        self._controller, self._gpus, self._timeouts = controller, gpus, timeouts
        self._sluids, self._reservations = sluids, reservations
        self._submissions, self._topology = submissions or {}, topology
        self._partitions, self._private = partitions, private
        self._partition_states = partition_states

    def jobs(self) -> Sequence[Job]:
        return _require_given(self._jobs)

    def gpus(self) -> Mapping[str, int | None]:
        return _require_given(self._gpus)

    def sluids(self) -> Mapping[str, str]:
        return _require_given(self._sluids)

    def nodes(self) -> Sequence[Node]:
        return _require_given(self._nodes)

    def job_end(self, job_id: str) -> JobEnd | None:
        return self._ends.get(job_id)

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        """The ends it was given; those that are no Run have no name and no user."""
        runs = (
            e if isinstance(e, JobRun) else JobRun(**structs.asdict(e)) for e in self._ends.values()
        )
        return JobPast(runs=tuple(runs))

    def controller(self) -> Controller:
        return _require_given(self._controller)

    def timeouts(self) -> Timeouts:
        return _require_given(self._timeouts)

    def reservations(self) -> Sequence[Reservation]:
        return _require_given(self._reservations)

    def partitions(self) -> Mapping[str, int]:
        return _require_given(self._partitions)

    def partition_states(self) -> Mapping[str, str]:
        """Every partition of a node is UP that was not given."""
        named = {name for node in self._nodes or () for name in node.partitions}
        return {**dict.fromkeys(named, "UP"), **(self._partition_states or {})}

    def private(self) -> Collection[str]:
        return self._private

    def topology(self) -> Mapping[str, str]:
        return _require_given(self._topology)

    def submission(self, job_id: str) -> Submission | None:
        return self._submissions.get(job_id)


def context(slurm: FixedSlurm | None = None, now: Instant = START, **more: Any) -> Context:
    """A context for one run of a check; `more` are further fields of Context."""
    return Context(
        **{"name": "test", "limit": 10.0, "now": now, "slurm": slurm or FixedSlurm(), **more}
    )


def _require_given(answer: Answer | None) -> Answer:
    if answer is None:
        raise CannotTell(
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
        )
    return answer
