"""Jobs, ends and looks at a queue, with everything a test does not speak of filled in."""

from collections.abc import Mapping
from typing import Any

from sentinel.checks.job import JobCheck
from sentinel.core.clock import Instant
from sentinel.core.cluster import Job, JobEnd
from sentinel.core.model import Finding, Report
from sentinel.testing import START, FixedSlurm, ManualClock, context
from sentinel.testing import job as job

NOW = START.wall // 1_000_000
HOUR, DAY = 3600, 86400


def pending(number: str = "11", reason: str = "Priority", **more: Any) -> Job:
    """A waiting job."""
    return job(number, "PENDING", reason, **more)


def ended(job_id: str = "10", state: str = "FAILED", **more: Any) -> JobEnd:
    """How a job ended, five minutes ago and an hour after its start."""
    fields = {"nodes": "node-[0-3]", "started": NOW - 3900, "ended": NOW - 300, **more}
    return JobEnd(job_id=job_id, state=state, **fields)


def check(**settings: Any) -> JobCheck:
    """A check on alice's job `train`."""
    return JobCheck(**{"name": "train", "users": ["alice"], **settings})


class Watch:
    """A check and what it remembers: `look` runs it once, as the service would."""

    def __init__(self, one: JobCheck) -> None:
        self.check, self.clock = one, ManualClock()
        self.memory: Mapping[str, Any] = {}
        self.limit = 10.0

    def look(self, *jobs: Job, after: float = 0, ends: list[JobEnd] | None = None) -> Finding:
        self.clock.advance(after)
        return self.see(FixedSlurm(jobs=jobs, ends={e.job_id: e for e in ends or []}))

    def see(self, slurm: Any) -> Finding:
        report = self.check.run(
            context(slurm, self.clock.now(), memory=self.memory, limit=self.limit)
        )
        assert report.memory is not None
        self.memory = report.memory
        return report.findings[0]


def glance(one: JobCheck, *jobs: Job, now: Instant = START) -> Report:
    """One look without a memory, as `sentinel check` has it."""
    return one.run(context(FixedSlurm(jobs=jobs), now, one_shot=True))
