"""A death between two looks is told: of who obeys the mail, and whose new job dies at once."""

import os
import pwd
import re
from collections.abc import Collection, Mapping
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan, format_iso
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import process_outcomes
from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Ack, Orders, Silence
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.channels.format.text import subject_line
from sentinel.checks.job.memory import Memory, SubmitDelay, dump_memory
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job, JobPast, JobRun, Submission
from sentinel.core.deaths import describe_deaths, find_first_end
from sentinel.core.model import (
    Alert,
    Coverage,
    Death,
    Finding,
    Key,
    Notification,
    Report,
    Status,
)  # fmt: skip
from tests.checks.job.making import NOW, Watch, check, job
from tests.checks.job.test_recall import Slurm, run

SOURCES = pytest.mark.parametrize("source", ["squeue", "sacct"])


class Told(Slurm):
    """The same, and it knows how jobs were submitted."""

    submissions: Mapping[str, Submission] = {}

    def submission(self, job_id: str) -> Submission | None:
        return self.submissions.get(job_id)


class Night:
    """A check on `train`, its alert and its messages. Each of `runs` is known to Slurm once it is
    over, from slurmctld or from accounting."""

    def __init__(self, *runs: JobRun, **settings: Any) -> None:
        self.watch, self.runs = Watch(check(**settings)), list(runs)
        self.orders = Orders()
        self.submissions: dict[str, Submission] = {}
        self.alerts: dict[Key, Alert] = {}
        self.messages: list[tuple[float, str, str]] = []
        self.notifications: list[Notification] = []
        policies = {"training": AlertPolicy(kind="job")}
        self.plan = NotificationPlan(cluster="lab", policies=policies, channels=["mail"])

    @property
    def at(self) -> float:
        """Seconds since the first look."""
        return self.watch.clock.now().wall / 1_000_000 - NOW

    def look(self, at: float) -> Finding:
        """A look so many seconds after the first one, with its messages."""
        self.watch.clock.advance(at - self.at)
        here = NOW + at
        rows: list[Job] = [
            job(one.id, submitted=one.submitted, started=one.started, user=one.user)
            for one in self.runs
            if (one.started or 0) <= here < (one.ended or 0)
        ]
        over = [one for one in self.runs if (one.ended or 0) <= here]
        slurm = Told(*rows, runs=over, accounting=True)
        slurm.submissions = self.submissions
        finding = self.watch.see(slurm)
        good = Finding(subject="", status=Status.OK, summary="")
        report = Report(findings=(finding,), coverage=Coverage(of="jobs", meant=1))
        outcome = RunOutcome(check="training", kind="job", itself=good, report=report, seconds=0)
        now = self.watch.clock.now()
        batch = process_outcomes([outcome], self.alerts, self.plan, now, self.orders)
        for key in batch.closed:
            del self.alerts[key]
        self.alerts |= {alert.key: alert for alert in batch.alerts}
        said = [one.notification for one in batch.outbox]
        self.messages += [(at, one.reason, one.summary) for one in said]
        self.notifications += said
        return finding

    def play(self, until: float, every: float = 30) -> "Night":
        """Looks at these intervals, in seconds."""
        at = self.at
        while at < until:
            self.look(at := at + every)
        return self

    @property
    def told(self) -> list[tuple[float, str]]:
        """The messages: when, and the reason."""
        return [(at, reason) for at, reason, _ in self.messages]


def dies(number: int, begins: float, after: float, source: str = "squeue", **more: Any) -> JobRun:
    """A run of job `number` that fails."""
    times: dict[str, Any] = {"submitted": int(NOW + begins), "started": int(NOW + begins)}
    ends: dict[str, Any] = {"ended": int(NOW + begins + after), "exit_code": 1, "source": source}
    return run(str(number), **{**times, **ends, **more})


def play_first_death(**settings: Any) -> Night:
    """A job runs at the first look, dies after 20 s, and that is told."""
    night = Night(dies(10, -600, 620), **settings)
    night.look(0)
    night.play(120)
    assert [reason for _, reason in night.told] == ["firing"]
    night.messages.clear()
    night.notifications.clear()
    return night


def moment(at: float) -> str:
    """So many seconds after the first look, as messages say it."""
    return format_iso(Instant(int((NOW + at) * SECOND)), timezone.utc)


@pytest.fixture(name="night")
def night_fixture() -> Night:
    """A training whose death was told."""
    return play_first_death()


@SOURCES
@pytest.mark.parametrize("every", [30, 60, 600])
def test_a_job_that_dies_between_two_looks_is_told_at_the_next(
    night: Night, every: float, source: str
) -> None:
    """Submitted just after a look, dead 10 s later. The service looks each 30 to 60 s, a chain and a
    crontab each 600 s."""
    night.runs.append(dies(12, 130, 10, source))
    night.play(120 + 3 * every, every)
    ((at, reason, words),) = night.messages
    assert (at, reason) == (120 + every, "again")
    assert words.startswith("job 12 died too, after 10s; it started after the last message; ")


def test_each_death_keeps_its_command_and_its_last_lines(tmp_path: Path) -> None:
    """Also of a job that came and went between two looks before another one did."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    outs = {number: tmp_path / f"{number}.out" for number in (10, 12, 13)}
    made = [dies(10, -600, 620), dies(12, 130, 10), dies(13, 160, 10)]
    runs = [replace(one, user=user, stdout=str(outs[int(one.id)])) for one in made]
    night = Night(runs[0], users=[user])
    for number, out in outs.items():
        out.write_text(f"{number} begins\nRuntimeError: {number}\n")
        os.utime(out, (NOW + 200, NOW + 200))
    night.submissions = {
        one.id: Submission(
            id=one.id, name="train", user=user, workdir="/", line=f"sbatch {one.id}.sh"
        )
        for one in runs
    }
    night.look(0)
    night.play(120)
    night.runs += runs[1:]
    night.play(720, every=600)
    (alert,) = night.alerts.values()
    kept = [(one.job, one.line, one.last_lines.splitlines()[-1]) for one in alert.deaths]
    assert kept == [(f"{n}", f"sbatch {n}.sh", f"RuntimeError: {n}") for n in outs]


def test_the_last_lines_of_a_death_begin_where_lines_begin(tmp_path: Path) -> None:
    """Three long ones do not fit: each loses its end, and none its beginning."""
    user, out = pwd.getpwuid(os.geteuid()).pw_name, tmp_path / "10.out"
    lines = [f" iteration {n} | lm loss: {'2' * 150}" for n in (1, 2, 3, 4)]
    out.write_text("\n".join([*lines, "RuntimeError: no"]) + "\n")
    os.utime(out, (NOW + 25, NOW + 25))
    night = Night(dies(10, -600, 620, user=user, stdout=str(out)), users=[user])
    night.look(0)
    night.play(120)
    (alert,) = night.alerts.values()
    third, fourth, end = alert.deaths[-1].last_lines.splitlines()
    assert (third[:15], fourth[:15], end) == (lines[2][:15], lines[3][:15], "RuntimeError: no")
    assert third.endswith("…")
    assert len(alert.deaths[-1].last_lines) <= 302


@pytest.mark.parametrize("begin", ["slurmstepd-n1:", "[2026-11-29T02:06:19.120]"])
@pytest.mark.parametrize("error", ["", "RuntimeError: NCCL timeout"])
def test_what_slurm_says_of_an_end_is_no_cause_of_it(
    tmp_path: Path, error: str, begin: str
) -> None:
    """slurmstepd writes it into the output of a job at its time limit, or under a scancel."""
    user, out = pwd.getpwuid(os.geteuid()).pw_name, tmp_path / "10.out"
    stop = f"{begin} error: *** JOB 10 ON n1 CANCELLED AT 2026-11-29T02:06:19 DUE TO TIME LIMIT ***"
    out.write_text(f"iteration 70 loss 2.1\n{error}\n{stop}\n")
    os.utime(out, (NOW + 25, NOW + 25))
    night = Night(dies(10, -600, 620, state="TIMEOUT", user=user, stdout=str(out)), users=[user])
    night.look(0)
    night.play(120)
    (alert,) = night.alerts.values()
    assert alert.values.get("cause", "") == error
    assert stop in alert.details


def test_who_cancelled_it_is_asked_why(night: Night) -> None:
    """Accounting knows who it was. Where nobody knows, the message says how to find out."""
    night.runs.append(dies(12, 130, 900, state="CANCELLED", cancelled_by="root"))
    night.play(1200)
    (alert,) = night.alerts.values()
    assert alert.guidance.todo.startswith("Ask root why it was cancelled. If that was not meant, ")


def test_a_time_limit_that_was_changed_while_it_ran_is_not_submitted_again() -> None:
    """By an administrator, before a maintenance: the next job would end as early."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    night = Night(dies(10, -600, 620, state="TIMEOUT", user=user), users=[user])
    asked = ("--job-name=train", "--time=8:00:00")
    how = Submission(id="10", name="train", user=user, workdir="/r", command="/r/t", options=asked)
    night.submissions = {"10": how}
    night.look(0)
    changed = ("--job-name=train", "--time=1:00")
    night.submissions = {"10": replace(how, options=changed, exclude="node-7")}
    night.play(120)
    (alert,) = night.alerts.values()
    line = "sbatch --job-name=train --time=8:00:00 --exclude=node-7 /r/t"
    assert [line in act for act in alert.acts] == [True]


@pytest.mark.parametrize(("started", "after"), [(99, False), (100, True), (101, True)])
def test_a_job_that_started_in_the_second_of_the_message_started_after_it(
    started: int, after: bool
) -> None:
    """Slurm knows starts to the second (job_info_t.start_time), sentinel its messages to the
    microsecond: 100 may be later than 100.7."""
    told = Instant(int(100.7 * SECOND))
    one = Death(job="12", started=started, ended=started + 4, end="FAILED", exit=4, noticed=told)
    words = "job 12 died too, after 4s; it started after the last message"
    assert describe_deaths([one], told) == (words if after else "job 12 died too, after 4s")


def test_nobody_is_told_while_nothing_more_dies(night: Night) -> None:
    """The healthy control: the message of the first death stays the only one."""
    assert night.play(3600).messages == []


@pytest.mark.parametrize(
    ("state", "more"),
    [
        ("CANCELLED", {"cancelled_by": "alice"}),
        ("PREEMPTED", {}),
        ("COMPLETED", {"exit_code": 0}),
    ],
)
def test_what_is_no_death_is_no_event(night: Night, state: str, more: dict[str, Any]) -> None:
    """Its owner's scancel, a preemption and a good end are not told as a death."""
    night.runs.append(dies(12, 130, 10, state=state, **more))
    night.play(600)
    assert not [words for _, _, words in night.messages if "died too" in words]


@SOURCES
def test_a_requeued_job_that_dies_again_is_told(night: Night, source: str) -> None:
    """It keeps its number, and has a later start."""
    night.runs.append(dies(10, 130, 7, source))
    night.play(400)
    assert night.told == [(150, "again")]
    assert "job 10 died too, after 7s; it started after the last message" in night.messages[0][2]


def test_an_array_is_one_event(night: Night) -> None:
    """All its elements die between two looks, and one message tells it."""
    night.runs += [dies(20 + n, 130 + n, 5, id=f"20_{n}", array_id="20") for n in range(1, 4)]
    night.play(400)
    assert night.told == [(150, "again")]
    assert night.messages[0][2].startswith("job 20")


def test_a_crash_loop_is_three_messages_an_hour_and_a_digest(night: Night) -> None:
    """Nobody is called for each of ten; the fourth message tells what the rest share."""
    drawn = [130, 185, 271, 406, 601, 872, 1217, 1662, 2227, 2932]  # no rhythm
    night.runs += [dies(30 + n, at, 5) for n, at in enumerate(drawn)]
    night.play(3600 * 2)
    assert [reason for _, reason in night.told] == ["again"] * 4
    at, _, words = night.messages[-1]
    assert 3600 <= at - night.messages[0][0] <= 3630
    assert words.startswith("died 7 more times (jobs 33, 34, 35, 36, 37, 38, 39)")
    assert ", each FAILED with exit code 1; " in words


def test_a_launcher_whose_rhythm_is_known_tells_nobody(night: Night) -> None:
    """It submits 40 s after each end, as it always did. When it stops, its last job is told."""
    delays = tuple(SubmitDelay(40, NOW - 86400 * n - 977 * n * n) for n in (3, 2, 1))
    night.watch.memory = dict(night.watch.memory) | {
        "delays": dump_memory(Memory(delays={"FAILED": delays}))["delays"]
    }
    night.runs += [dies(40 + n, 130 + 45 * n, 5) for n in range(5)]
    night.play(300)
    assert night.messages == []
    night.play(900)
    assert [reason for _, reason in night.told] == ["again"]


def obeys_each_mail(count: int) -> Night:
    """Each job runs for two minutes and dies. The next one is submitted after its mail, in no rhythm."""
    begins = [-600]
    for delay in (65, 160, 90, 230, 120, 300, 75, 185)[: count - 1]:
        begins.append(max(begins[-1], -100) + 120 + delay)
    night = Night(*[dies(50 + n, at, max(120, 20 - at)) for n, at in enumerate(begins)])
    night.look(0)
    return night.play(begins[-1] + 240)


def test_a_death_is_told_however_often_the_alert_has_come_and_gone() -> None:
    """Who obeys each mail makes the alert flap. Then deaths are told as further ones of one alert:
    three by themselves, and the others when the hour is over."""
    night = obeys_each_mail(9)
    told = [(at, one) for at, one, _ in night.messages if one != "resolved"]
    assert [reason for _, reason in told] == ["firing"] * 3 + ["flapping"] + ["again"] * 3
    ends = [one.ended - NOW for one in night.runs if one.ended]
    assert all(at - end <= 60 for (at, _), end in zip(told, ends, strict=False))
    night.play(night.at + 3600)
    (words,) = [one for at, reason, one in night.messages if reason == "again" and at > told[-1][0]]
    assert words.startswith("died 2 more times (jobs 57, 58), each FAILED")
    notes = {one.reason: one.note for one in night.notifications}
    assert notes["flapping"] == (
        "it dies again and again: each death is told, a recovery only once it lasts"
    )
    (fourth,) = (one for one in night.notifications if one.reason == "flapping")
    assert subject_line([fourth]).startswith("DIED (again) ")
    assert notes["firing"] == notes["resolved"] == ""


@pytest.mark.parametrize("prompted", [True, False])
def test_who_obeys_each_mail_is_not_told_how_fast(*, prompted: bool) -> None:
    """`why now` is about launchers: jobs that nobody was asked for."""
    drawn = [(3, 65), (2, 160)]  # no rhythm
    delays = tuple(SubmitDelay(s, NOW - 86400 * n, prompted=prompted) for n, s in drawn)
    night = Night(dies(10, -600, 620))
    night.look(0)
    night.watch.memory = dict(night.watch.memory) | {
        "delays": dump_memory(Memory(delays={"FAILED": delays}))["delays"]
    }
    night.play(120)
    (alert,) = night.alerts.values()
    assert ("why_now" in alert.values) is not prompted


def test_deaths_that_were_told_under_an_earlier_alert_stay_told() -> None:
    """A new alert lists them. `explain` says of none of them that nobody was told."""
    night = obeys_each_mail(3)
    (alert,) = night.alerts.values()
    assert [(one.job, one.told is not None) for one in alert.deaths] == [
        ("50", True), ("51", True), ("52", True)
    ]  # fmt: skip
    first, second, third = (one.told.wall for one in alert.deaths if one.told)
    assert first < second < third


def test_what_has_died_again_was_not_noticed_before_it_began(night: Night) -> None:
    """The message is about the new death. Its end counts from the first one."""
    night.runs += [dies(12, 130, 10), dies(13, 200, 900)]
    night.play(300)
    again, end = night.notifications
    assert again.since == moment(140)
    assert again.noticed == moment(150)
    assert end.since == moment(20)


def test_an_alert_of_an_older_state_tells_what_died_since_its_message(night: Night) -> None:
    """It has no deaths stored. What its message told is not told again."""
    ((key, alert),) = night.alerts.items()
    import msgspec

    night.alerts[key] = msgspec.structs.replace(alert, deaths=())
    night.play(300)
    assert night.messages == []
    night.runs.append(dies(12, 310, 10))
    night.play(600)
    assert night.told == [(330, "again")]


class BookedSlurm(Slurm):
    """A Slurm whose accounting may not answer, and looks back no further than it is asked to."""

    def __init__(self, now: float, *runs: JobRun, answers: bool) -> None:
        super().__init__(runs=runs)
        self.now, self.answers = now, answers

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        if not self.answers:
            return JobPast(runs=(), unasked="slurmdbd is down")
        found = [one for one in self.told.runs if (one.ended or 0) >= self.now - since]
        return JobPast(runs=tuple(found), accounting=True)


def test_a_look_asks_what_happened_since_accounting_last_answered() -> None:
    """It did not answer for half an hour, and the job died in its first minute."""
    watch, first = Watch(check()), dies(10, -600, 620)
    watch.look(job("10", started=NOW - 600))
    watch.clock.advance(60)
    watch.see(Slurm(runs=[first]))
    for minute in range(30):
        watch.clock.advance(60)
        watch.see(BookedSlurm(NOW + 120 + 60 * minute, first, answers=False))
    watch.clock.advance(60)
    found = watch.see(BookedSlurm(NOW + 1920, first, dies(12, 70, 10, "sacct"), answers=True))
    assert [one.job for one in found.deaths] == ["12", "10"]


def test_a_check_on_many_trainings_tells_it_too() -> None:
    """Each training has its own alert."""
    night = play_first_death(name=None, match=re.compile("tr.*"))
    night.runs.append(dies(12, 130, 10))
    night.play(600)
    assert night.told == [(150, "again")]


@pytest.mark.parametrize(("looks_first", "told"), [(True, ["ack", "again"]), (False, ["again"])])
def test_who_has_acknowledged_the_first_death_hears_of_the_next(
    night: Night, looks_first: bool, told: list[str]
) -> None:
    """An acknowledgement stops repeats of what is known. A further death is not known, and no message
    says that somebody has it: neither a note, nor that of an acknowledgement that a chain sees late."""
    (alert,) = night.alerts.values()
    ack = Ack(alert=alert.id, who="alice", note="", at=night.watch.clock.now())
    night.orders = Orders(acks={alert.id: ack})
    night.play(240 if looks_first else night.at)
    night.runs.append(dies(12, 250, 10))
    night.look(270)
    night.play(600)
    assert [reason for _, reason in night.told] == told
    assert [one.note for one in night.notifications[:-1]] == ["acknowledged by alice"] * (
        len(told) - 1
    )
    assert night.notifications[-1].note == "acknowledged before this by alice"


def test_what_dies_under_a_silence_is_told_after_it(night: Night) -> None:
    """Nothing is told while it lasts, and nothing is lost."""
    now = night.watch.clock.now()
    ends = now.wall + 600_000_000
    silence = Silence(id="s", match=Match(), starts=0, ends=ends)
    night.orders = Orders(silences=(silence,))
    night.runs += [dies(12, 130, 10), dies(13, 190, 10)]
    night.play(690)
    assert night.messages == []
    night.play(900)
    assert [reason for _, reason in night.told] == ["again"]
    assert night.messages[0][2].startswith("died 2 more times (jobs 12, 13), each FAILED")


def test_an_alert_began_with_its_first_death_also_if_that_was_seen_before_the_pass() -> None:
    """squeue is asked before the alert is made, so the death was noticed a moment earlier. One that an
    earlier alert told is not this alert's."""
    since, later = Instant(100 * SECOND), Instant(500 * SECOND)
    other, first, second = (
        Death(
            job=number,
            started=None,
            ended=ended,
            end="FAILED",
            exit=1,
            noticed=Instant(noticed),
            told=Instant(told * SECOND),
        )
        for number, ended, noticed, told in (
            ("9", 40, 50 * SECOND, 60),
            ("10", 90, 100 * SECOND - 1, 101),
            ("12", 490, 500 * SECOND, 501),
        )
    )
    alert = Alert(
        key=Key(cluster="lab", check="training", subject="train"), id="1", kind="job",
        status=Status.CRITICAL, summary="", since=since, last=later, began=later,
        deaths=(other, first, second),
    )  # fmt: skip
    assert find_first_end(alert) == Instant(90 * SECOND)
    assert find_first_end(replace(alert, deaths=(other, second))) == Instant(490 * SECOND)
