"""The rules: one row each."""

import re
from typing import Any

import pytest

from sentinel.checks.job.rules import MAX_PAUSED_S
from sentinel.checks.job.words import describe_stuck
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.values import Duration
from sentinel.testing import FixedSlurm, context
from tests.checks.job.making import DAY, HOUR, NOW, Watch, check, glance, job, pending
from tests.kinds import looks

OK, WARNING, CRITICAL, UNKNOWN = Status.OK, Status.WARNING, Status.CRITICAL, Status.UNKNOWN


@pytest.mark.parametrize(
    ("jobs", "status", "words"),
    [
        ([job()], OK, "running: job 10 on 4 nodes (node-[0-3]) for 1h, at most 19h more"),
        ([job(node_count=1, nodes="node-2")], OK, "running: job 10 on node-2 for 1h"),
        ([job(ends=None)], OK, "running: job 10 on 4 nodes (node-[0-3]) for 1h"),
        ([job(), job("12")], OK, "running 2 jobs: job 10 on"),
        ([job(), pending("11_[4-9%1]", elements=6)], OK, "6 queued behind it"),
        ([job(), pending(reason="JobHeldUser")], OK, "1 more will not start: job 11 (JobHeldUser"),
        ([pending()], OK, "pending: job 11 waits 2h for 4 nodes (Priority: jobs of higher"),
        ([pending(started=NOW + 3 * HOUR)], OK, "expected start in 3h"),
        ([pending(reason="SomethingNew")], OK, "SomethingNew: a reason that sentinel does not"),
        ([pending(reason="JobArrayTaskLimit")], OK, "as many tasks of its array run"),
        ([pending(reason="JobHeldUser"), pending("12")], OK, "1 more will not start: job 11"),
        ([job(state="COMPLETING")], OK, "ending: job 10 is COMPLETING on 4 nodes"),
        ([job(state="COMPLETING"), pending("12")], OK, "pending: job 12"),
        ([job(state="CONFIGURING")], OK, "starting: job 10 (CONFIGURING)"),
        ([job(state="SUSPENDED")], WARNING, "not running: job 10 is SUSPENDED on 4 nodes"),
        ([job(state="SUSPENDED"), job("12")], OK, "running: job 12"),
        ([], CRITICAL, "not running and nothing is queued; no such job has been seen"),
        (
            [pending(reason="DependencyNeverSatisfied")],
            CRITICAL,
            "waits for a person: job 11 (Depend",
        ),
        ([pending(reason="JobHeldUser", elements=3)], CRITICAL, "is queued waits for a person"),
        ([job(state="REQUEUE_HOLD", reason="job requeued in held state")], CRITICAL, "was requ"),
        ([job(name="train-2")], CRITICAL, "no such job"),
        ([job(user="bob")], CRITICAL, "no such job"),
    ],
)
def test_what_one_look_says(jobs: list[Job], status: Status, words: str) -> None:
    """Running or waiting is ok; nothing that runs and nothing that will is critical."""
    finding = glance(check(), *jobs).findings[0]
    assert finding.status is status
    assert words in finding.summary
    assert finding.subject == "train"


@pytest.mark.parametrize(("named", "told"), [("", False), ("east", True)])
def test_a_job_that_nobody_has_seen_may_be_on_the_cluster_that_the_shell_names(
    named: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CLUSTERS", named)
    summary = glance(check()).findings[0].summary
    assert (f"SLURM_CLUSTERS={named} is set here and not followed" in summary) is told
    assert "SLURM_CLUSTERS" not in glance(check(), job()).findings[0].summary


@pytest.mark.parametrize(
    ("beside", "status"),
    [([], UNKNOWN), ([job("12")], OK), ([pending("12")], OK), ([job("12", "COMPLETING")], OK)],
)
def test_a_state_that_nobody_knows_matters_where_nothing_else_will_run(
    beside: list[Job], status: Status
) -> None:
    assert glance(check(), job("11", "TELEPORTING"), *beside).findings[0].status is status


def test_a_short_suspension_wakes_nobody() -> None:
    """Gang scheduling suspends jobs in turns. What else is wrong with it is told at once."""
    paused = job(state="SUSPENDED")
    assert glance(check(), paused).findings[0].patience == MAX_PAUSED_S
    killed = check(kill_switch="/")
    assert glance(killed, paused, pending()).findings[0].patience == 0
    assert glance(check(starts_within=Duration(60)), pending()).findings[0].patience == 0


@pytest.mark.parametrize(
    ("ends", "tail"),
    [
        (NOW + 19 * HOUR, ", at most 19h more"),
        (NOW + 300 * DAY - HOUR, ", at most 299d 23h more"),
        (NOW + 300 * DAY, ""),
        (NOW + 364 * DAY, ""),
        (NOW - 1, ""),
        (None, ""),
    ],
)
def test_how_long_a_job_may_still_run_is_told_where_it_has_a_limit(
    ends: int | None, tail: str
) -> None:
    """Slurm 22.05 gives a job without a limit an end in a year."""
    (finding,) = glance(check(), job(ends=ends)).findings
    assert finding.summary == f"running: job 10 on 4 nodes (node-[0-3]) for 1h{tail}"


@pytest.mark.parametrize(
    ("settings", "jobs", "meant"),
    [
        ({"users": ["*"]}, [job(user="bob")], True),
        ({"users": ["bob", "alice"]}, [job()], True),
        ({"partition": "prod"}, [job()], True),
        ({"partition": "prod"}, [pending(partition="test,prod")], True),
        ({"partition": "prod"}, [job(partition="production")], False),
        ({"name": None, "match": re.compile("tr.*n")}, [job()], True),
        ({"name": None, "match": re.compile("tr")}, [job()], False),
        ({"name": "größer 10B ☃"}, [job(name="größer 10B ☃")], True),
    ],
)
def test_which_jobs_are_meant(settings: dict[str, Any], jobs: list[Job], meant: bool) -> None:
    """Name, users and partition all have to fit; a pattern that fits nothing waits for its first job."""
    missing = UNKNOWN if settings.get("match") else CRITICAL
    assert glance(check(**settings), *jobs).findings[0].status is (OK if meant else missing)


def test_a_queue_that_cannot_be_read_is_never_an_empty_one() -> None:
    """CannotTell goes on to the runner: nobody is told that the job does not run."""
    with pytest.raises(CannotTell):
        check().run(context(FixedSlurm()))


@pytest.mark.parametrize(
    ("queued", "waiting", "status"),
    [
        (0, [], OK),
        (1, [], WARNING),
        (1, [pending()], OK),
        (1, [pending(elements=0)], OK),
        (2, [pending()], WARNING),
        (6, [pending("11_[4-9%1]", "JobArrayTaskLimit", elements=6)], OK),
        (7, [pending("11_[4-9%1]", "JobArrayTaskLimit", elements=6)], WARNING),
        (1, [pending(reason="JobHeldUser")], WARNING),
        (1, [pending(reason="SomethingNew")], OK),
        (1, [pending(name="other")], WARNING),
    ],
)
def test_how_many_are_queued_behind_the_running_one(
    queued: int, waiting: list[Job], status: Status
) -> None:
    """Array elements are counted; those that only a person can start are not."""
    finding = glance(check(queued=queued), job(), *waiting).findings[0]
    assert finding.status is status
    assert finding.summary.startswith("only ") is (status is WARNING)


def test_queued_is_about_what_is_behind_a_running_job() -> None:
    """A single job that waits has nothing to be behind of."""
    assert glance(check(queued=1), pending()).findings[0].status is OK


LIMIT = Duration(12 * HOUR)


@pytest.mark.parametrize(
    ("jobs", "status"),
    [
        ([pending(started=NOW + 12 * HOUR)], OK),
        ([pending(started=NOW + 12 * HOUR + 1)], WARNING),
        ([pending(started=NOW - 60)], OK),
        ([pending(started=NOW + 3 * DAY), pending("12", started=NOW + HOUR)], OK),
        ([pending(started=NOW + 3 * DAY), job("12", ends=NOW + 3 * DAY)], OK),
        ([pending(submitted=NOW - 12 * HOUR)], OK),
        ([pending(submitted=NOW - 12 * HOUR - 1)], WARNING),
        ([pending(reason="Dependency", submitted=NOW - 13 * HOUR), job("12")], OK),
        ([pending(reason="SomethingNew", started=NOW + 3 * DAY)], WARNING),
        ([pending(reason="BeginTime", started=NOW + 3 * DAY)], WARNING),
        ([pending(started=NOW - 600, submitted=NOW - 3 * DAY)], OK),
        ([pending(started=NOW - 601, submitted=NOW - 3 * DAY)], WARNING),
        ([pending(started=NOW - 601)], OK),
    ],
)
def test_how_late_it_may_start(jobs: list[Job], status: Status) -> None:
    """By Slurm's estimate, without one by the time it has waited; not while one runs."""
    assert glance(check(starts_within=LIMIT), *jobs).findings[0].status is status


def test_without_starts_within_any_wait_is_fine() -> None:
    """How long is too long is the user's to say."""
    assert glance(check(), pending(started=NOW + 30 * DAY)).findings[0].status is OK


def test_a_dependent_has_not_waited_while_its_predecessor_ran() -> None:
    """Submitted three days ago and without an estimate, it is next since five minutes."""
    watch = Watch(check(starts_within=LIMIT))
    dependent = pending(reason="Dependency", submitted=NOW - 3 * DAY)
    assert watch.look(job(), dependent).status is OK
    assert watch.look(dependent, after=300).status is OK
    assert watch.look(dependent, after=LIMIT - 300).status is OK
    assert watch.look(dependent, after=1).status is WARNING


def test_a_clock_that_jumps_does_not_make_a_job_wait_longer() -> None:
    """The time between looks is taken from the boot's own clock."""
    watch = Watch(check(starts_within=LIMIT))
    waiting = pending(submitted=NOW - 11 * HOUR)
    assert watch.look(waiting).status is OK
    watch.clock.jump(5 * HOUR)
    assert watch.look(waiting, after=60).status is OK
    watch.clock.jump(-9 * HOUR)
    assert watch.look(waiting, after=HOUR).status is WARNING


@pytest.mark.parametrize(
    ("waiting", "status"),
    [
        ([pending(started=NOW + 19 * HOUR + 600)], OK),
        ([pending(started=NOW + 19 * HOUR + 601)], WARNING),
        ([pending(started=NOW + 25 * HOUR), pending("12", started=NOW + 19 * HOUR)], OK),
        ([pending(started=NOW + 25 * HOUR), pending("12")], OK),
        ([pending(reason="Dependency", dependency="afterany:10(unfulfilled)")], OK),
        ([pending(reason="Dependency", dependency="afterok:77(unfulfilled)")], WARNING),
        ([pending(reason="Dependency", dependency="after:77(unfulfilled)")], OK),
        ([pending(reason="Dependency", dependency="afterok:99(unfulfilled)")], OK),
        ([pending(reason="JobHeldUser", started=NOW + 25 * HOUR)], OK),
        ([], OK),
    ],
)
def test_the_time_limit_comes_before_the_successor(waiting: list[Job], status: Status) -> None:
    """Ten minutes between two jobs are a change; hours without a training are a warning."""
    other = job("77", name="other", ends=NOW + 30 * HOUR)
    finding = glance(check(), job(), other, *waiting).findings[0]
    assert finding.status is status
    assert ("its time limit comes" in finding.summary) is (status is WARNING)


def test_the_last_running_job_counts_for_the_hand_over() -> None:
    """While another one of the training runs on, there is no gap."""
    late = pending(started=NOW + 25 * HOUR)
    assert glance(check(), job(), job("12", ends=NOW + 25 * HOUR), late).status is OK
    assert glance(check(), job(), job("12", ends=None), late).status is OK


@pytest.mark.parametrize(
    ("state", "seconds", "status"),
    [
        ("COMPLETING", 600, OK),
        ("COMPLETING", 601, CRITICAL),
        ("CONFIGURING", 1800, OK),
        ("CONFIGURING", 1801, WARNING),
        ("EXPEDITING", 600, OK),
        ("EXPEDITING", 601, CRITICAL),
        ("RUNNING", 30 * DAY, OK),
    ],
)
def test_a_state_that_should_pass_soon(state: str, seconds: float, status: Status) -> None:
    """Ending and getting ready take minutes; longer, something hangs, and a training that ends with
    nothing behind it is over."""
    watch = Watch(check())
    watch.look(job(state=state))
    assert watch.look(job(state=state), after=seconds).status is status


def test_an_end_that_hangs_is_no_death_while_something_comes() -> None:
    """The node is in trouble, the training is not."""
    watch = Watch(check())
    ending, behind = job(state="COMPLETING"), pending("12")
    watch.look(ending, behind)
    assert watch.look(ending, behind, after=601).status is WARNING


def test_a_partition_that_is_down_is_believed_for_a_day() -> None:
    """Then it needs a person; another reason in between starts the day anew."""
    watch = Watch(check())
    down = pending(reason="PartitionDown")
    assert watch.look(down).status is OK
    assert watch.look(down, after=DAY).status is OK
    assert watch.look(down, after=1).status is CRITICAL
    assert watch.look(pending(), after=1).status is OK
    assert watch.look(down, after=1).status is OK


def test_between_two_jobs_of_a_train_it_says_what_went_before() -> None:
    """The gap is no death while the next one waits."""
    watch = Watch(check())
    train = pending("15_[4-9%1]", "JobArrayTaskLimit", elements=6)
    assert watch.look(job("15_3", job_id="18"), train).status is OK
    finding = watch.look(train, after=60)
    assert finding.status is OK
    assert finding.summary.startswith("job 15_3 is gone")
    assert "next is pending: job 15_[4-9%1]" in finding.summary


def test_a_gap_with_nothing_queued_resolves_when_the_next_job_comes() -> None:
    """A chain whose jobs submit one another: `for` is what bridges this."""
    watch = Watch(check())
    assert watch.look(job()).status is OK
    assert watch.look(after=60).status is CRITICAL
    assert watch.look(pending("11"), after=60).status is OK


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (job(user="bob"), "job 10 of bob in prod has that name; `users`"),
        (job(name="Train"), "has nearly that name: 'Train'"),
        (job(name="\uff54rain"), "has nearly that name"),
        (pending(reason="JobHeldUser"), ""),
        (job(name=" train"), "has nearly that name: ' train'"),
        (job(name="tr\u00e4in"), ""),
    ],
)
def test_a_job_that_is_nearly_the_one_is_pointed_out(other: Job, words: str) -> None:
    """The usual mistakes: another user, another spelling."""
    details = glance(check(), other).findings[0].details
    assert words in details if words else details == ""


def test_a_renamed_job_is_pointed_out() -> None:
    """It runs on under another name; the alert says so."""
    watch = Watch(check())
    watch.look(job())
    finding = watch.look(job(name="renamed"))
    assert finding.status is CRITICAL
    assert "job 10 of alice in prod is still there, now named 'renamed'" in finding.details


def test_numbers_are_given_as_values() -> None:
    """For the page, for scripts, for graphs."""
    jobs = [job(), pending(elements=6), pending("12", "JobHeldUser")]
    report = glance(check(), *jobs)
    assert report.findings[0].values == {
        "running": 1,
        "pending": 7,
        "queued": 6,
        "needs_person": 1,
        "nodes": 4,
        "restarts": 0,
    }
    assert {(s.subject, s.name, s.value) for s in report.samples} == {
        ("train", "running", 1.0),
        ("train", "queued", 6.0),
    }


def test_what_to_run_next_about_jobs_in_the_queue() -> None:
    """Release only what is held: a dependency that never comes is not released. No command releases
    when all are pasted: its owner is asked first."""
    for reason, release in (
        ("JobHeldUser", True),
        ("launch failed requeued held", True),
        ("DependencyNeverSatisfied", False),
    ):
        found = glance(check(), pending(reason=reason)).findings[0]
        assert looks(found) == ("scontrol show job 11 | cat -v",)
        assert ("`scontrol release 11`" in found.guidance.todo) is release


def test_a_heterogeneous_job_is_one_job() -> None:
    """Slurm lists its parts; all start, end and are requeued together with the first."""
    parts = [("12+0", "12"), ("12+1", "13"), ("12+10", "22")]
    waiting = [pending(number, job_id=job_id) for number, job_id in parts]
    finding = glance(check(queued=2), job(), *waiting).findings[0]
    assert (finding.status, finding.values["queued"]) == (WARNING, 1)
    watch = Watch(check(restarts="1 in 1h"))
    for started in (NOW - 500, NOW):
        rows = [job(number, job_id=job_id, started=started) for number, job_id in parts]
        finding = watch.look(*rows, after=60)
    assert (finding.values["running"], finding.values["restarts"]) == (1, 1)


def test_many_jobs_are_counted_not_listed() -> None:
    """Three by name are enough for a message."""
    finding = glance(check(), *(job(str(n)) for n in range(10, 20))).findings[0]
    assert "running 10 jobs" in finding.summary
    assert "and 7 more" in finding.summary


def test_reasons_and_nodes_of_others_are_inert_in_the_summary() -> None:
    """They come from Slurm as somebody wrote them."""
    evil = pending(reason="x\n\x1b[31mforged" * 50)
    summary = glance(check(), evil).findings[0].summary
    assert summary.isprintable()
    assert len(summary) < 500


@pytest.mark.parametrize(
    ("dependency", "more", "waits_for_a_person"),
    [
        ("afterany:12(unfulfilled)", {}, True),
        ("afterok:12_*(unfulfilled)", {}, True),
        ("after:12+30(unfulfilled)", {}, True),
        ("afterany:14(unfulfilled),afterany:12(unfulfilled)", {}, True),
        ("afterany:12(unfulfilled)?afterany:14(unfulfilled)", {}, False),
        ("afterany:12(unfulfilled)?afterany:13(unfulfilled)", {}, True),
        ("afterany:12(fulfilled),afterany:14(unfulfilled)", {}, False),
        ("afterany:120(unfulfilled)", {}, False),
        ("aftercorr:12_*(unfulfilled)", {}, False),
        ("afterany:13(unfulfilled)", {}, True),
        ("singleton(unfulfilled)", {}, True),
        ("singleton(unfulfilled)", {"number": "11"}, False),
        ("afterany:12(unfulfilled)", {"reason": "Priority"}, False),
    ],
)
def test_who_waits_for_a_job_that_is_held_waits_for_a_person(
    dependency: str, more: dict[str, Any], waits_for_a_person: bool
) -> None:
    """Slurm calls it Dependency all the same; at any remove, and whatever that job's name is."""
    held = pending("12", "JobHeldUser", name="train" if "single" in dependency else "data")
    between = pending("13", "Dependency", name="prepare", dependency="afterok:12(unfulfilled)")
    waiting = pending(**{"number": "20", "reason": "Dependency", "dependency": dependency, **more})
    finding = glance(check(), waiting, between, held, pending("14", name="free")).findings[0]
    assert finding.values["queued"] == (0 if waits_for_a_person else 1)
    assert finding.status is (CRITICAL if waits_for_a_person else OK)
    if waits_for_a_person:
        assert f"waits for a job that needs a person: {dependency}" in finding.summary


def test_a_predecessor_that_was_requeued_and_held_is_held_too() -> None:
    """Its state says so; and a singleton without an older one that is held just waits."""
    before = job("12", "REQUEUE_HOLD", "BeginTime", name="data")
    after = pending("20", "Dependency", dependency="afterany:12(unfulfilled)")
    assert glance(check(), before, after).findings[0].status is CRITICAL
    alone = pending("20", "Dependency", dependency="singleton(unfulfilled)")
    assert glance(check(), before, alone, job("11", name="other")).findings[0].status is OK


def test_a_train_whose_second_job_is_held_ends_with_the_first() -> None:
    """What depends on the held one is not queued behind the running one."""
    train = [
        job(),
        pending("11", "JobHeldUser", dependency="afterany:10(unfulfilled)"),
        *(
            pending(str(n), "Dependency", dependency=f"afterany:{n - 1}(unfulfilled)")
            for n in range(2000, 11, -1)
        ),
    ]
    finding = glance(check(queued=1), *train).findings[0]
    assert finding.status is WARNING
    assert "only 0 queued behind the running job" in finding.summary


def test_jobs_that_wait_for_each_other_are_not_waited_for_for_ever() -> None:
    """No Slurm makes such a ring; a damaged answer must not hang the check."""
    ring = [
        pending("11", "Dependency", dependency="afterany:12(unfulfilled)"),
        pending("12", "Dependency", dependency="afterany:11(unfulfilled)"),
    ]
    assert glance(check(), *ring).findings[0].status is OK


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Licenses", "it may ask for more licences than there are"),
        ("AssocGrpGRES", "nothing of its account runs"),
    ],
)
def test_what_waits_for_a_day_is_said_to_ask_for_too_much_of_what_it_waits_for(
    reason: str, words: str
) -> None:
    """Licences are the cluster's: an account has nothing to do with them."""
    assert words in describe_stuck([pending(reason=reason)])
