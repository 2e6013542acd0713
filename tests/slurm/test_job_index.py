"""What checks find in the index of the queue is what they would find by walking through it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from sentinel.checks.job import JobCheck
from sentinel.checks.run_rows import find_held_gpus
from sentinel.checks.users import find_meant_names, is_meant_job, large_jobs, running_jobs
from sentinel.core.cluster import Job
from sentinel.slurm.job_index import BUSY_PHASES, QueuedJobs, index_jobs, normalise_name
from sentinel.slurm.job_states import state_phase
from sentinel.testing import START, FixedSlurm, context, job

NAMES = ("train", "Train", "ｔｒａｉｎ", "train 2", "", "eval")
JOBS = st.lists(
    st.builds(
        lambda number, part, name, state, account, nodes: job(
            f"{number}+{part}" if part is not None else f"{number}",
            state,
            "None",
            name=name,
            account=account,
            node_count=nodes,
        ),
        st.integers(1, 6),
        st.none() | st.integers(0, 2),
        st.sampled_from(NAMES),
        st.sampled_from(("RUNNING", "PENDING", "COMPLETING", "SUSPENDED", "CONFIGURING")),
        st.sampled_from(("", "lab")),
        st.integers(1, 8),
    ),
    max_size=12,
    unique_by=lambda one: one.id,
)


@given(
    JOBS, st.sampled_from((*NAMES, None)), st.none() | st.sampled_from(("tr.*", "(?i)train", "x"))
)
def test_names_are_found_in_the_order_of_the_queue(
    jobs: list[Job], name: str | None, pattern: str | None
) -> None:
    match = re.compile(pattern) if pattern else None
    queue = index_jobs(jobs)
    found = queue.find_named(find_meant_names(name, match, queue))
    assert found == [one for one in jobs if is_meant_job(name, match, one.name)]


@given(JOBS)
def test_what_is_looked_up_is_what_stands_there(jobs: list[Job]) -> None:
    queue = index_jobs(jobs)
    assert queue.job_ids == {one.job_id for one in jobs}
    assert queue.busy_accounts == {
        one.account or one.user for one in jobs if state_phase(one.state) in BUSY_PHASES
    }
    for name in NAMES:
        alike = {one.name for one in jobs if normalise_name(one.name) == normalise_name(name)}
        assert {*queue.names_by_spelling.get(normalise_name(name), ())} == alike


@given(JOBS, st.integers(1, 20))
def test_the_parts_of_a_heterogeneous_job_are_one_size(jobs: list[Job], nodes: int) -> None:
    def whole(one: Job) -> int:
        # `15` and `15+0` are never in one queue.
        same = [x for x in jobs if x.id.partition("+")[0] == one.id.partition("+")[0]]
        return sum(x.node_count for x in same if ("+" in x.id) == ("+" in one.id))

    kept = large_jobs(jobs, 0, nodes, jobs, FixedSlurm(jobs=jobs))
    assert kept == [one for one in jobs if whole(one) >= nodes]


def test_a_job_of_unknown_size_is_watched_and_its_size_stays_unknown() -> None:
    """GPUs by the socket (sbatch(1), --gpus-per-socket) without accounting; one that has ended has none."""
    jobs = [job("11"), job("12"), job("13+0"), job("13+1"), job("14")]
    ids = {one.id: one.job_id for one in jobs}
    slurm = FixedSlurm(jobs=jobs, gpus={ids["11"]: None, ids["12"]: 8, ids["13+0"]: None})
    assert [one.id for one in large_jobs(jobs, 16, 0, jobs, slurm)] == ["11", "13+0", "13+1"]
    ctx = context(slurm, START)
    assert [find_held_gpus(ctx, one) for one in jobs] == [None, 8, None, None, 0]


def test_one_index_serves_all_checks() -> None:
    """A hundred checks on one queue walk through it once. A check on another queue has its own."""

    class CountedJobs(QueuedJobs):
        walks = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            type(self).walks += 1
            return super().__iter__()

    jobs = CountedJobs(job(str(n), "RUNNING", "None", name=f"train{n}") for n in range(100))
    assert index_jobs(jobs) is jobs
    slurm = FixedSlurm(jobs=jobs)
    for n in (*range(100), 1000):
        report = JobCheck(name=f"train{n}", users=["*"]).run(context(slurm, START, limit=60.0))
        assert report.findings[0].status.value == ("ok" if n < 100 else "unknown")
        found = (
            running_jobs(context(slurm, START), f"train{n}", ["*"], before=False) if n < 100 else []
        )
        assert [one.name for one in found] == [f"train{n}"] * (n < 100)
    walks = CountedJobs.walks
    JobCheck(name="train7", users=["*"]).run(context(slurm, START, limit=60.0))
    assert CountedJobs.walks == walks <= 4
