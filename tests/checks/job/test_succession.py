"""A death is told at once and a gap is not: what has followed such an end before says which it is."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sentinel.alerting.state_machine import AlertPolicy, advance_alert
from sentinel.core.clock import SECOND
from sentinel.core.cluster import JobRun, Reservation
from sentinel.core.model import Alert, Key, Status
from sentinel.testing import START, FixedSlurm
from tests.checks.job.making import Watch, check, job

KEY, POLICY = Key("lab", "training", "train"), AlertPolicy(kind="job")
MIN_JOB_AGE = 300
DEATHS = ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL")
Row = tuple[float, str, float, str, str]


class Slurm:
    """Slurm's answers about one name: a job is in the queue from its submission to its end, and
    remembered for MinJobAge after that, or by accounting for ever."""

    def __init__(self, *, accounting: bool = False) -> None:
        self.rows: list[Row] = []
        self.accounting = accounting
        self.planned: tuple[Reservation, ...] = ()

    def submit(self, at: float, state: str, length: float, *, user: str = "alice", by: str = ""):  # type: ignore[no-untyped-def]
        """A job that begins at once and ends in that state after so many seconds."""
        self.rows.append((at, state, length, user, by))

    def at(self, now: float) -> FixedSlurm:
        jobs, ends = [], {}
        for number, (begin, state, length, user, by) in enumerate(self.rows, 100):
            end, ident = int(begin + length), str(number)
            if begin <= now < end:
                more = {"submitted": int(begin), "started": int(begin), "ends": end + 60}
                jobs.append(job(ident, user=user, **more))
            elif end <= now and (self.accounting or now - end < MIN_JOB_AGE):
                ends[ident] = JobRun(
                    job_id=ident, id=ident, array_id=ident, name="train", user=user, state=state,
                    partition="prod", nodes="node-[0-3]", submitted=int(begin), started=int(begin),
                    ended=end, cancelled_by=by if self.accounting else "", source="squeue",
                )  # fmt: skip
        return FixedSlurm(jobs=jobs, ends=ends, reservations=self.planned)


def mails(
    slurm: Slurm, until: float, *, every: float = 60, policy: AlertPolicy = POLICY, **settings: Any
) -> list[float]:
    """The moments at which somebody is told that it does not run, with looks as the engine takes
    them: one each `every` seconds, and a second one soon where that decides something."""
    watch, alert, told = Watch(check(**settings)), None, list[float]()
    start = watch.clock.now().wall / SECOND
    moments = [0.0]
    while moments[-1] < until:
        now = moments[-1]
        finding = watch.see(slurm.at(start + now))
        key = Key("lab", "training", finding.subject)
        done = advance_alert(key, alert, finding, policy, watch.clock.now())
        alert = done.alert
        if done.transition and done.transition.status is Status.CRITICAL:
            told.append(now)
        soon = _soon(alert, finding.patience, now, watch) if finding.status.bad else None
        following = (now // every + 1) * every
        moments.append(min(following, soon or following))
        watch.clock.advance(moments[-1] - now)
    return told


def _soon(alert: Alert | None, patience: float, now: float, watch: Watch) -> float | None:
    if alert is None or alert.firing or alert.rose is None:
        return None
    left = patience - (watch.clock.now().wall - alert.rose.wall) / SECOND
    return now + left if 0 < left <= 60 else None


def chain(
    count: int, states: Callable[[int], str], gap: Callable[[int], float], **more: Any
) -> tuple[Slurm, list[float], float]:
    """So many jobs, one after another; the moments of their ends and of the whole end."""
    slurm = Slurm(accounting=more.pop("accounting", False))
    drawn, at, ends = random.Random(7), START.wall / SECOND - 30, []
    for number in range(count):
        length = drawn.uniform(300, 4000)
        slurm.submit(at, states(number), length, **more)
        ends.append(at + length - START.wall / SECOND)
        at += length + gap(number)
    return slurm, ends, at - START.wall / SECOND


@pytest.mark.parametrize("state", DEATHS)
def test_a_death_is_told_within_two_minutes(state: str) -> None:
    """A minute to the next look, half a minute to the second one."""
    slurm, (end,), _ = chain(1, lambda _: state, lambda _: 0)
    (told,) = mails(slurm, end + 3600)
    assert 30 <= told - end <= 90


def test_a_link_of_a_chain_tells_it_within_one_pass() -> None:
    """However far apart passes are, the second look is part of the first that finds it dead."""
    slurm, (end,), _ = chain(1, lambda _: "FAILED", lambda _: 0)
    (told,) = mails(slurm, end + 7200, every=600)
    assert told - end <= 630


def test_what_is_submitted_within_half_a_minute_is_no_death() -> None:
    """A trap or an epilog that submits late."""
    slurm, ends, over = chain(2, lambda _: "TIMEOUT", lambda _: 25)
    assert mails(slurm, over - 1) == []
    assert ends[1] < over


def gaps(seed: int, median: float, sigma: float = 0.08) -> Callable[[int], float]:
    """Lengths as a launcher's that sleeps so long; with a larger sigma as of people."""
    drawn = random.Random(seed)
    return lambda _: median * drawn.lognormvariate(0, sigma)


CASES: Sequence[tuple[str, Callable[[int], str]]] = (
    ("a chain whose jobs end in TIMEOUT", lambda _: "TIMEOUT"),
    ("a launcher that resubmits FAILED", lambda _: "FAILED"),
)


@pytest.mark.parametrize(("name", "states"), CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize(("median", "every"), [(5, 60), (45, 600), (240, 120), (600, 300)])
@pytest.mark.long
def test_a_hundred_gaps_of_a_launcher_are_three_mails_at_most(
    name: str, states: Callable[[int], str], median: float, every: float
) -> None:
    """Each of the first three may be a death for all that is known; then it is a rhythm."""
    slurm, _, over = chain(101, states, gaps(11, median))
    told = mails(slurm, over - 400, every=every)
    assert len(told) <= 3


def test_a_scancel_of_nobody_known_is_a_plan() -> None:
    """Its owner cancels, edits and submits again, a hundred times: one mail at most."""
    slurm, ends, over = chain(101, lambda _: "CANCELLED", gaps(11, 900, 0.8), by="alice")
    told = mails(slurm, over - 400, every=300)
    assert len(told) <= 1
    assert all(at < ends[1] for at in told)


def test_an_owners_scancel_is_a_note_where_accounting_says_so() -> None:
    """No mail at all; somebody else's is told."""
    slurm, _, over = chain(
        3, lambda _: "CANCELLED", lambda _: 7200, by="alice", accounting=True
    )  # fmt: skip
    assert mails(slurm, over) == []
    slurm, (end,), _ = chain(1, lambda _: "CANCELLED", lambda _: 0, by="root", accounting=True)
    (told,) = mails(slurm, end + 3600)
    assert told - end <= 90


def test_a_death_of_another_kind_is_told_at_once_in_a_chain() -> None:
    """TIMEOUT was followed; that says nothing of NODE_FAIL."""
    states = [*["TIMEOUT"] * 12, "NODE_FAIL"]
    slurm, ends, _ = chain(13, lambda n: states[n], lambda _: 45)
    told = mails(slurm, ends[-1] + 3600)
    assert [at for at in told if at > ends[1]] == [told[-1]]
    assert told[-1] - ends[-1] <= 90


def test_a_chain_that_stops_is_told_after_its_rhythm() -> None:
    """Gaps of 45 s are known: after twice that it is none."""
    slurm, ends, _ = chain(14, lambda _: "TIMEOUT", lambda _: 45)
    told = mails(slurm, ends[-1] + 7200)
    assert 90 <= told[-1] - ends[-1] <= 180


def test_what_was_queued_all_along_says_nothing_of_resubmission() -> None:
    """A chain submitted at once: its last link that dies is a death."""
    slurm = Slurm()
    at = START.wall / SECOND + 10
    watch = Watch(check())
    first = job("10", submitted=int(at) - 900)
    second = job("11", "PENDING", "Dependency", submitted=int(at) - 890, started=None)
    watch.see(FixedSlurm(jobs=[first, second]))
    watch.clock.advance(60)
    now = watch.clock.now().wall // SECOND
    gone = JobRun(job_id="10", id="10", name="train", user="alice", state="FAILED", nodes="n1",
               started=now - 900, ended=now - 5, source="squeue")  # fmt: skip
    started = job("11", submitted=int(at) - 890, started=now - 3)
    watch.see(FixedSlurm(jobs=[started], ends={"10": gone}))
    watch.clock.advance(60)
    dead = JobRun(job_id="11", id="11", name="train", user="alice", state="FAILED", nodes="n1",
               started=now - 3, ended=now + 50, source="squeue")  # fmt: skip
    found = watch.see(FixedSlurm(jobs=[], ends={"11": dead}, reservations=slurm.planned))
    assert (found.status, found.patience) == (Status.CRITICAL, 30)


def test_what_came_and_went_between_two_looks_is_one_death_with_it() -> None:
    """The job in between was in no list of jobs: one mail, for both died within a minute."""
    slurm, start = Slurm(), START.wall / SECOND
    slurm.submit(start - 30, "FAILED", 600)
    slurm.submit(start + 605, "FAILED", 5)
    slurm.submit(start + 640, "FAILED", 4000)
    assert mails(slurm, 4600) == [630]


def test_what_came_while_nobody_looked_says_nothing_of_the_gap() -> None:
    """Slurm has forgotten whatever came between: fifty minutes are no gap to wait for."""
    slurm, start = Slurm(), START.wall / SECOND
    slurm.submit(start - 30, "FAILED", 600)
    slurm.submit(start + 3400, "FAILED", 5)
    assert mails(slurm, 3700, every=3600) == [3630]


def test_a_death_in_a_maintenance_is_told_with_its_name() -> None:
    """At once, for it is nobody's plan; a reservation of other nodes is not named."""
    slurm, (end,), _ = chain(1, lambda _: "NODE_FAIL", lambda _: 0)
    start = START.wall // SECOND
    ours = Reservation(name="m", starts=start, ends=start + int(end) + 7200,
                       nodes=frozenset({"node-2"}), flags=frozenset({"MAINT"}))  # fmt: skip
    slurm.planned = (ours,)
    (told,) = mails(slurm, end + 3600)
    assert told - end <= 90
    other = Reservation(name="m", starts=start, ends=start + int(end) + 7200,
                        nodes=frozenset({"node-9"}), flags=frozenset({"MAINT"}))  # fmt: skip
    slurm.planned = (other,)
    (told,) = mails(slurm, end + 3600)
    assert told - end <= 90


@pytest.mark.parametrize("settings", [{}, {"name": None, "match": None, "users": ["alice"]}])
def test_it_is_learned_of_each_training_by_itself(settings: dict[str, Any]) -> None:
    """With one name, and with many trainings in one check."""
    slurm, ends, over = chain(30, lambda _: "TIMEOUT", gaps(3, 200))
    told = mails(slurm, over - 400, **settings)
    assert all(at < ends[3] for at in told)


def test_an_explicit_for_is_never_shortened() -> None:
    """What the file says holds, however plain the death is."""
    slurm, (end,), _ = chain(1, lambda _: "FAILED", lambda _: 0)
    (told,) = mails(slurm, end + 7200, policy=AlertPolicy(kind="job", for_=1800))
    assert told - end >= 1800
