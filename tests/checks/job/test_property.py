"""What holds whatever the queue looks like."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.checks.job import JobCheck
from sentinel.core.cluster import Job
from sentinel.core.model import Status
from sentinel.core.values import Duration
from sentinel.slurm.job_states import JOB_STATES, REVOKED
from sentinel.slurm.pending_reasons import REASONS
from tests.checks.job.making import NOW, Watch, check, job

TIMES = st.one_of(st.none(), st.integers(NOW - 10**6, NOW + 10**6))
TEXT = st.text(max_size=30)
JOBS = st.builds(
    job,
    st.integers(1, 9).map(str),
    st.sampled_from([*JOB_STATES, "NEW"]),
    st.one_of(st.sampled_from(sorted(REASONS)), TEXT),
    submitted=TIMES,
    started=TIMES,
    ends=TIMES,
    nodes=TEXT,
    dependency=TEXT,
    elements=st.integers(0, 5),
    node_count=st.integers(0, 5),
)
CHECKS = st.builds(
    check,
    queued=st.integers(0, 3),
    starts_within=st.one_of(st.none(), st.integers(0, 10**6).map(Duration)),
    restarts=st.sampled_from([None, "1 in 1h", "3 in 2d"]),
)
LOOKS = st.lists(st.lists(JOBS, max_size=5, unique_by=lambda j: j.job_id), max_size=5)


@settings(max_examples=300, deadline=None)
@given(CHECKS, LOOKS)
def test_never_critical_while_one_runs_and_always_one_printable_line(
    one: JobCheck, looks: list[list[Job]]
) -> None:
    """And critical whenever no job is in the queue at all: there is nothing in between."""
    watch = Watch(one)
    for jobs in looks:
        finding = watch.look(*jobs, after=60)
        assert finding.summary.isprintable()
        if all(job.state in JOB_STATES and job.state != REVOKED for job in jobs):
            assert finding.status is not Status.UNKNOWN
        if any(j.state == "RUNNING" for j in jobs):
            assert finding.status is not Status.CRITICAL
        if not jobs:
            assert finding.status is Status.CRITICAL
