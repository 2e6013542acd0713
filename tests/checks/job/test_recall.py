"""A second look before "not running": lists that are cut, deaths that nobody saw, lost memories."""

import re
from collections.abc import Collection
from typing import Any

import pytest

from sentinel.checks.job.settings import DoneWhen
from sentinel.core.cluster import Job, JobPast, JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.values import clock_text
from sentinel.testing import FixedSlurm, context
from tests.checks.job.making import NOW, Watch, check, ended, job, pending
from tests.checks.job.test_trainings import Watch as Trainings
from tests.kinds import looks


def run(number: str = "10", state: str = "FAILED", **more: Any) -> JobRun:
    """A run of alice's job `train`, which has ended five minutes ago."""
    over = state not in ("RUNNING", "PENDING")
    fields: dict[str, Any] = {
        "id": number,
        "job_id": number,
        "array_id": number.partition("_")[0],
        "state": state,
        "name": "train",
        "user": "alice",
        "partition": "prod",
        "nodes": "node-[0-3]",
        "started": NOW - 3600,
        "ended": NOW - 300 if over else None,
        "submitted": NOW - 7200,
        "source": "squeue",
        **more,
    }
    return JobRun(**fields)


class Slurm(FixedSlurm):
    """A Slurm whose list of jobs has these, and that remembers those."""

    def __init__(self, *jobs: Job, runs: Collection[JobRun] = (), **more: Any) -> None:
        super().__init__(jobs=jobs)
        self.told, self.asked = JobPast(runs=tuple(runs), **more), list[tuple[set[str], set[str]]]()
        self.windows = list[float]()

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        self.asked.append((set(job_ids), set(names)))
        self.windows.append(failed_within)
        return self.told


class Slow(FixedSlurm):
    """A Slurm that is too slow for a second question."""

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        raise CannotTell("squeue took 9s: slurmctld is not asked a second time")


def test_what_another_cluster_of_the_federation_has_is_not_judged_here() -> None:
    """While it is in the list, and when it has left it; the death of a later one here is told."""
    watch, away = Watch(check()), run(state="REVOKED", nodes="", started=None)
    seen = watch.see(Slurm(job("10", state="REVOKED", nodes="", started=None)))
    assert seen.status is Status.UNKNOWN
    assert seen.summary.startswith("job 10 is REVOKED: it went to another cluster of the")
    assert watch.see(Slurm(runs=[away])).summary.startswith("job 10 is REVOKED: it went to")
    watch.see(Slurm(job("11"), runs=[away]))
    dead = watch.see(Slurm(runs=[away, run("11")]))
    assert (dead.status, "job 11 FAILED" in dead.summary) == (Status.CRITICAL, True)


def test_what_another_cluster_took_before_the_first_look_is_not_judged_here() -> None:
    """A cluster that is not its origin has it among all states alone (seen on 26.05), and forgets it
    soon; a job that dies here is told."""
    watch, away = Watch(check()), run(state="REVOKED", nodes="", started=None)
    for runs in ([away], [away], [], []):
        seen = watch.see(Slurm(runs=runs))
        assert (seen.status, seen.summary[:17]) == (Status.UNKNOWN, "job 10 is REVOKED")
    assert watch.look(job("11")).status is Status.OK
    dead = watch.see(Slurm(runs=[run("11")]))
    assert (dead.status, "job 11 FAILED" in dead.summary) == (Status.CRITICAL, True)


def test_a_one_shot_says_so_too() -> None:
    """The newest job of the name counts; of a pattern that nothing else has ever fitted too."""
    older = run("9", exit_code=1, submitted=NOW - 300)
    asked = context(Slurm(runs=[older, run(state="REVOKED", submitted=NOW - 200)]), one_shot=True)
    with pytest.raises(CannotTell, match="job 10 is REVOKED"):
        check().run(asked)
    asked = context(Slurm(runs=[run(state="REVOKED")]), one_shot=True)
    (told,) = check(name=None, match=re.compile("tr.*")).run(asked).findings
    assert (told.status, told.summary[:17]) == (Status.UNKNOWN, "job 10 is REVOKED")


def test_a_list_that_leaves_a_job_out_is_no_death() -> None:
    """Cut at a whole record, or empty with exit code 0: asked once more the job is there."""
    watch = Watch(check())
    watch.look(job())
    finding = watch.see(Slurm(runs=[run(state="RUNNING")]))
    assert finding.status is Status.UNKNOWN
    assert "squeue's list leaves out job 10, which is RUNNING" in finding.summary
    assert watch.look(job()).status is Status.OK


def test_on_the_first_look_too() -> None:
    """Nothing was seen before, and the list may be cut all the same."""
    with pytest.raises(CannotTell, match="leaves out job 10"):
        check().run(context(Slurm(runs=[run(state="RUNNING")]), one_shot=True))
    assert Watch(check()).see(Slurm(runs=[run(state="RUNNING")])).status is Status.UNKNOWN


def test_a_job_that_died_before_the_first_look_is_found_by_name() -> None:
    """Also where nobody remembers anything but Slurm."""
    report = check().run(context(Slurm(runs=[run(exit_code=3)]), one_shot=True))
    (finding,) = report.findings
    assert finding.status is Status.CRITICAL
    assert "job 10 FAILED with exit code 3" in finding.summary


def test_a_job_that_began_and_died_between_two_looks_is_found_by_name() -> None:
    """Not the end of the one before it is told, which was seen."""
    watch = Watch(check())
    watch.look(job())
    young = run("11", exit_code=7, started=NOW - 20, ended=NOW - 10)
    finding = watch.see(Slurm(runs=[run(exit_code=1), young]))
    assert "job 11 FAILED with exit code 7" in finding.summary
    assert "job 10 FAILED with exit code 1" in finding.details
    assert looks(finding)[0] == "scontrol show job 11 | cat -v"


@pytest.mark.parametrize(
    "other",
    [
        run("11", user="bob", exit_code=9, started=NOW - 20, ended=NOW - 10),
        run("11", name="train2", exit_code=9, started=NOW - 20, ended=NOW - 10),
        run("11", partition="debug", exit_code=9, started=NOW - 20, ended=NOW - 10),
        run("9", exit_code=9, started=NOW - 90000, ended=NOW - 80000),
    ],
    ids=["another user's", "another name", "another partition", "an older one"],
)
def test_the_end_of_another_job_is_not_told_in_its_place(other: JobRun) -> None:
    """Who it is counts as it does in the queue, and what began before was told before."""
    watch = Watch(check(partition="prod"))
    watch.look(job())
    summary = watch.see(Slurm(runs=[other, run(exit_code=1)])).summary
    assert "job 10 FAILED with exit code 1" in summary


@pytest.mark.parametrize(
    "other", [run(user="bob"), run(name="other", started=NOW - 50)], ids=["user", "name"]
)
def test_an_id_that_was_given_again_is_another_job(other: JobRun) -> None:
    """slurmctld that has lost its memory begins to count anew."""
    watch = Watch(check())
    watch.look(job())
    assert "FAILED" not in watch.see(Slurm(runs=[other])).summary


def test_a_renamed_job_is_still_the_same() -> None:
    """By its start."""
    watch = Watch(check())
    watch.look(job())
    summary = watch.see(Slurm(runs=[run(name="other", exit_code=5)])).summary
    assert "job 10 FAILED with exit code 5" in summary


@pytest.mark.parametrize("later", [[], [run(state="RUNNING", source="sacct")]])
def test_a_run_before_the_requeue_is_not_the_end(later: list[JobRun]) -> None:
    """Accounting is behind: it has the run that a node failed, or not yet that the new one ended."""
    watch = Watch(check())
    watch.look(job())
    old = run(state="NODE_FAIL", started=NOW - 9000, ended=NOW - 4000, source="sacct")
    finding = watch.see(Slurm(runs=[old, *later]))
    assert finding.status is Status.CRITICAL
    assert "NODE_FAIL" not in finding.summary
    assert "how is not known yet" in finding.summary
    watch.clock.advance(60)
    assert "exit code 2" in watch.see(Slurm(runs=[run(exit_code=2)])).summary


# as_mysql_job.c sets no time_start at the end of a job that waited; slurmctld gives the end as its start
@pytest.mark.parametrize("source", ["squeue", "sacct"])
def test_a_job_that_was_requeued_and_then_cancelled_ended_by_that(source: str) -> None:
    """Its first run is REQUEUED in accounting, and has a start; the second has none."""
    cut, end = NOW - 300, NOW - 90
    watch = Watch(check())
    watch.look(job())
    watch.look(pending("10", reason="BeginTime", submitted=cut + 1))
    first = run(state="REQUEUED", ended=None, source="sacct")
    second = run(
        state="CANCELLED", submitted=cut + 1, started=None, ended=end, nodes="",
        cancelled_by="alice", source=source,
    )  # fmt: skip
    for _ in range(3):
        watch.clock.advance(60)
        finding = watch.see(Slurm(runs=[first, second]))
    assert finding.status is Status.OK
    assert finding.summary.startswith("stopped by its own user")
    lost = Watch(check())
    lost.look(job())
    for _ in range(3):
        lost.clock.advance(60)
        finding = lost.see(Slurm(runs=[first], accounting=True))
    assert (finding.status, "runaway" in finding.summary) == (Status.CRITICAL, False)


def test_of_an_array_a_failed_element_is_told() -> None:
    """One COMPLETED, and those behind it failed between two looks."""
    watch = Watch(check(done_when=DoneWhen(state="completed")))
    watch.look(
        job("16", id="15_0", array_id="15", task="0"), pending("15", id="15_[1-3]", task="1-3")
    )
    good = run("16", "COMPLETED", id="15_0", array_id="15", exit_code=0, ended=NOW - 30)
    bad = [
        run(
            str(number),
            id=f"15_{task}",
            array_id="15",
            exit_code=1,
            started=NOW - 25,
            ended=NOW - 9,
        )
        for task, number in ((1, 17), (2, 18), (3, 15))
    ]
    finding = watch.see(Slurm(runs=[good, *bad]))
    assert finding.status is Status.CRITICAL
    assert "FAILED with exit code 1" in finding.summary
    assert "COMPLETED" not in finding.summary


def test_of_an_array_that_ended_within_one_second_its_last_failure_is_told() -> None:
    """Slurm's times are whole seconds: which element came last they do not say."""
    watch = Watch(check(done_when=DoneWhen(state="completed")))
    watch.look(
        job("16", id="15_0", array_id="15", task="0"), pending("15", id="15_[1-2]", task="1-2")
    )
    good = run("16", "COMPLETED", id="15_0", array_id="15", exit_code=0, ended=NOW - 3600)
    bad = [
        run(number, id=f"15_{task}", array_id="15", exit_code=4, ended=NOW - 3600)
        for task, number in ((1, "17"), (2, "15"))
    ]
    finding = watch.see(Slurm(runs=[good, *bad]))
    assert finding.status is Status.CRITICAL
    assert "job 15_2 FAILED with exit code 4" in finding.summary


def test_of_an_array_that_ran_side_by_side_a_failed_element_is_told() -> None:
    """Although the one that began last is COMPLETED; one that failed long before does not count."""
    watch = Watch(check(done_when=DoneWhen(state="completed")))
    first = job("16", id="15_0", array_id="15", task="0")
    last = job("15", id="15_1", array_id="15", task="1", started=NOW - 3500)
    watch.look(first, last)
    good = run("15", "COMPLETED", id="15_1", exit_code=0, started=NOW - 3500)
    bad = run("16", id="15_0", array_id="15", exit_code=1, ended=NOW - 400)
    assert "15_0 FAILED with exit code 1" in watch.see(Slurm(runs=[good, bad])).summary

    watch = Watch(check(done_when=DoneWhen(state="completed")))
    watch.look(first, last)
    before = run("16", id="15_0", array_id="15", exit_code=1, ended=NOW - 3550)
    assert watch.see(Slurm(runs=[good, before])).status is Status.OK


def test_a_controller_that_has_lost_its_memory_is_said_to_have() -> None:
    """It started after the job was seen, and counts from the beginning, or should remember it."""
    for more in ({"next_id": 3, "keeps": 0}, {"next_id": 99, "keeps": 300}):
        watch = Watch(check())
        watch.look(job())
        watch.clock.advance(60)
        finding = watch.see(Slurm(booted=NOW + 30, **more))
        assert finding.status is Status.CRITICAL
        assert (
            f"job 10 is gone: slurmctld started anew {clock_text(NOW, NOW)} and has lost its memory"
            in (finding.summary)
        )


@pytest.mark.parametrize(
    ("booted", "more"),
    [
        (NOW - 9000, {"next_id": 3, "keeps": 300}),
        (NOW + 30, {"next_id": 99, "keeps": 10}),
        (None, {}),
    ],
    ids=["it started before", "it may have forgotten in time", "that was not asked"],
)
def test_what_a_controller_forgets_in_time_is_no_lost_memory(
    booted: int | None, more: dict[str, int]
) -> None:
    """MinJobAge after the end."""
    watch = Watch(check())
    watch.look(job())
    watch.clock.advance(60)
    finding = watch.see(Slurm(booted=booted, **more))
    assert "neither squeue nor sacct said how it ended" in finding.summary


def test_what_accounting_could_not_be_asked_is_asked_again() -> None:
    """It is not said that nothing remembers the job."""
    watch = Watch(check())
    watch.look(job())
    assert "not known yet" in watch.see(Slurm(unasked="sacct: slurmdbd is slow")).summary
    watch.clock.advance(60)
    late = run(exit_code=4, source="sacct")
    assert "exit code 4" in watch.see(Slurm(runs=[late])).summary


def test_one_list_of_a_slow_controller_is_not_believed_and_two_are() -> None:
    """It is not asked again at once, and nobody is woken by what one list leaves out."""
    watch = Watch(check())
    watch.look(job())
    watch.clock.advance(60)
    assert watch.see(Slow(jobs=[])).status is Status.UNKNOWN
    watch.clock.advance(60)
    assert watch.see(Slow(jobs=[])).status is Status.CRITICAL


def test_all_names_are_in_one_question() -> None:
    """What is known is not asked for again. The names are, at each look."""
    watch = Trainings(match=re.compile("flagship-.*"), users=["*"])
    rows = [job(str(n), name=f"flagship-{n}") for n in range(10, 40)]
    watch.look(*rows)
    slurm = Slurm(runs=[run(str(n), name=f"flagship-{n}", exit_code=1) for n in range(10, 40)])
    found = watch.look(slurm=slurm)
    assert len(slurm.asked) == 1
    assert slurm.asked[0] == ({r.job_id for r in rows}, {r.name for r in rows})
    assert {f.status for f in found.values()} == {Status.CRITICAL}
    for after in (20, 10, 60, 100):
        watch.look(slurm=slurm, after=after)
    assert slurm.asked[1:] == [(set(), {r.name for r in rows})] * 3


def test_a_training_that_nobody_ever_saw_is_found_by_a_pattern() -> None:
    """One that failed before the first look, and one beside another's death."""
    watch = Trainings(match=re.compile("flagship-.*"), users=["*"])
    found = watch.look(slurm=Slurm(runs=[run(name="flagship-a", exit_code=1)]))
    assert found["alice/flagship-a"].status is Status.CRITICAL


def test_an_end_is_told_from_what_a_test_gives() -> None:
    """As plugins' tests use it: without names."""
    watch = Watch(check())
    watch.look(job())
    assert "exit code 5" in watch.look(ends=[ended(exit_code=5)]).summary


def young(number: str, **more: Any) -> JobRun:
    """A run that began and died in the last minute before the third look."""
    size = {"node_count": 16, "gpus": 128, "name": "llama"}
    return run(number, **{"started": NOW + 150, "ended": NOW + 170, **size, **more})


def look_at_sizes(*runs: JobRun, **settings: Any) -> tuple[dict[str, Finding], Slurm]:
    """Looks a minute apart at a cluster on which another such training runs all along; the last two
    find the runs over."""
    watch = Trainings(**{"match": None, "min_nodes": 8, "min_gpus": 64, **settings})
    other = job("20", name="other", node_count=16)
    calm, dead = Slurm(other), Slurm(other, runs=runs)
    calm._gpus = dead._gpus = {"20": 128}
    for slurm in (calm, calm, dead):
        watch.look(slurm=slurm)
    return watch.look(slurm=dead), dead


def test_a_job_of_the_size_that_is_watched_is_told_though_no_look_saw_it_run() -> None:
    """It began and died between two looks; the parts of a heterogeneous one count together."""
    parts = [
        young("31", id="31+0", node_count=4, gpus=32, name="two"),
        young("32", id="31+1", node_count=4, gpus=32, name="two"),
    ]
    found, slurm = look_at_sizes(young("30", exit_code=2), *parts)
    assert {s: f.status for s, f in found.items()} == {
        "alice/other": Status.OK,
        "alice/llama": Status.CRITICAL,
        "alice/two": Status.CRITICAL,
    }
    assert "job 30 FAILED with exit code 2" in found["alice/llama"].summary
    assert slurm.windows == [240.0, 180.0]


@pytest.mark.parametrize(
    "more",
    [
        {"node_count": 7},
        {"gpus": 8},
        {"node_count": None},
        {"gpus": None},
        {"state": "COMPLETED", "exit_code": 0},
        {"ended": NOW - 900, "started": NOW - 950},
        {"nodes": ""},
    ],
    ids=["nodes", "gpus", "no node count", "no gpu count", "completed", "old", "never began"],
)
def test_no_other_job_is_told_in_its_place(more: dict[str, Any]) -> None:
    """A smaller one, one whose size nobody tells, one that is well, one of before the first look,
    and one that never had nodes."""
    found, _ = look_at_sizes(young("30", **more))
    assert set(found) == {"alice/other"}


def test_with_a_pattern_too_while_another_one_runs() -> None:
    found, _ = look_at_sizes(young("30"), match=re.compile("llama|other"), min_gpus=0, min_nodes=0)
    assert found["alice/llama"].status is Status.CRITICAL


def test_accounting_is_believed_a_minute_after_the_end() -> None:
    """Of a job that ends at once it says `allocation` in place of the name at first (22.05)."""
    early = young("30", source="sacct", name="allocation", ended=NOW + 200)
    assert set(look_at_sizes(early)[0]) == {"alice/other"}
    late = young("30", source="sacct", ended=NOW + 120)
    assert set(look_at_sizes(late)[0]) == {"alice/other", "alice/llama"}
