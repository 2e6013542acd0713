"""What checks write into the ledger while a training runs, dies and goes on, and what a report makes
of it: each part is right to within one look at each of its ends."""

import getpass
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from sentinel.checks.checkpoint import CheckpointCheck
from sentinel.checks.job import JobCheck
from sentinel.checks.job.ledger_rows import find_end_cause, list_ledger_rows
from sentinel.checks.job.memory import GoneJob, SeenJob
from sentinel.checks.job.memory import Memory as JobMemory
from sentinel.checks.log import Log
from sentinel.checks.log.futile_starts import FinishedStart, find_futile_starts, limit_starts
from sentinel.checks.log.known_troubles import TROUBLE_KINDS
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.trouble_cause import _CAUSES, find_interruption_cause
from sentinel.checks.log.trouble_kind import NEW_LINE_KIND, UNKNOWN_KIND
from sentinel.core.clock import SECOND
from sentinel.core.cluster import Job, JobEnd, Reservation
from sentinel.core.hostlist import expand_hostlist
from sentinel.core.model import Finding, Report, Status
from sentinel.core.run_ledger import LedgerRow
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.report.run_account import RunAccount, account_run
from sentinel.testing import START, FixedSlurm, ManualClock, context, job
from sentinel.user_files.session import shared_reader

ME = getpass.getuser()
NOW = START.wall // SECOND
GPUS = {str(number): 8 for number in range(100)}


def running(number: str, started: float, submitted: float = -30, **more: Any) -> Job:
    """A job that has run since this minute."""
    times = {"started": NOW + int(started * 60), "submitted": NOW + int(submitted * 60)}
    return job(number, name="llm", user=ME, **times, **more)


@pytest.fixture(autouse=True)
def one_reader() -> Iterator[None]:
    """One child reads for all looks of a test."""
    with shared_reader():
        yield


class Site:
    """Checks of `llm` that look once a minute; `rows` is what the state would hold."""

    def __init__(self, folder: Path) -> None:
        self.logs = folder
        self.saves = folder / "saves"
        self.saves.mkdir()
        self.checks: dict[str, Any] = {
            "job": JobCheck(name="llm", users=[ME]),
            "log": Log(
                job="llm", users=[ME], path=FilePath(folder / "log-%j"), stale_after=Duration(600)
            ),
            "checkpoint": CheckpointCheck(path=FilePath(self.saves), job="llm", users=[ME]),
        }
        self.memory: dict[str, Mapping[str, Any]] = {}
        self.rows: dict[tuple[str, ...], LedgerRow] = {}
        self.clock, self.jobs, self.ends = ManualClock(START), list[Job](), dict[str, JobEnd]()
        self.minute, self.every = 0.0, 60.0
        self.reservations: Sequence[Reservation] | None = ()
        self.reports: dict[str, Report] = {}

    def write(self, line: str) -> None:
        """A line in the log of the job that runs."""
        with (self.logs / f"log-{self.jobs[0].job_id}").open("a") as file:
            file.write(line + "\n")

    def look(self, minute: float) -> None:
        """One pass of all checks."""
        now = self.clock.advance((minute - self.minute) * 60)
        self.minute = minute
        slurm = FixedSlurm(
            jobs=self.jobs, ends=self.ends, gpus=GPUS, reservations=self.reservations
        )
        for name, check in self.checks.items():
            memory = self.memory.get(name, {})
            self._keep(
                name,
                check.run(context(slurm, now, memory=memory, limit=30.0, every=self.every)),
            )

    def _keep(self, name: str, report: Report) -> None:
        self.reports[name] = report
        if report.memory is not None:
            self.memory[name] = msgspec.json.decode(msgspec.json.encode(report.memory))
        for row in report.ledger:
            if row.supersedes(self.rows.get(row.unique_parts, row)):
                self.rows.pop(row.unique_parts, None)
                self.rows[row.unique_parts] = row

    def train(self, began: int, ended: int, step: int, pace: int = 10) -> int:
        """Steps, a line a minute."""
        for minute in range(began, ended + 1):
            self.write(f" iteration {step:8d}/ 100000 | lm loss: 2.0E+00 |")
            self.look(minute)
            step += pace
        return step - pace

    def save(self, step: int, minute: float) -> None:
        """A checkpoint that was written in this minute."""
        place = self.saves / f"step{step}"
        place.mkdir()
        file = place / "shard.pt"
        file.write_bytes(b"x" * 1000)
        for path in (file, place):
            os.utime(path, (NOW + minute * 60,) * 2)

    def findings(self, name: str) -> list[Finding]:
        return [*self.reports[name].findings]

    def account(self) -> RunAccount:
        until = START.wall + int(self.minute * 60 * SECOND)
        return account_run("llm", self.rows.values(), START.wall - 10**10, until)

    def minutes(self) -> dict[str, float]:
        found = self.account()
        assert sum(found.parts.values()) == found.held
        return {k: round(v / SECOND / 60 / 8, 1) for k, v in found.parts.items() if v}


def wait(site: Site, began: int, ended: int) -> None:
    for minute in range(began, ended + 1):
        site.look(minute)


def test_a_life_with_a_crash_and_a_hang(tmp_path: Path) -> None:
    """It starts for 6 minutes, makes steps for an hour, dies; a person submits it again, it redoes
    the 100 steps since the checkpoint, and then hangs until somebody cancels it."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    wait(site, 0, 5)
    assert site.train(6, 56, 0) == 500
    site.save(500, 56)
    assert site.train(57, 66, 510) == 600
    site.jobs = []
    site.ends = {
        "10": JobEnd(
            job_id="10", state="FAILED", exit_code=1, started=NOW, ended=NOW + 66 * 60 + 30,
            nodes="node-[0-3]",
        )
    }  # fmt: skip
    wait(site, 67, 69)
    site.jobs = [running("11", 70, submitted=68)]
    wait(site, 70, 74)
    assert site.train(75, 105, 510) == 810
    wait(site, 106, 135)
    site.jobs = []
    site.ends["11"] = JobEnd(
        job_id="11", state="CANCELLED", started=NOW + 70 * 60, ended=NOW + 135 * 60,
        cancelled_by=ME, nodes="node-[0-3]",
    )  # fmt: skip
    wait(site, 136, 140)
    found = site.minutes()
    right = {
        "startup": 11,
        "useful": 50,
        "redone": 10,
        "crashed": 0.5,
        "provisional": 30,
        "hung": 30,
    }
    assert found == pytest.approx(right, abs=1.1)
    account = site.account()
    assert account.held / SECOND / 60 / 8 == pytest.approx(66.5 + 65)
    first, second = account.interruptions
    assert (first.cause, first.ended_by, first.job) == ("software", "person", "10")
    assert (second.cause, second.ended_by) == ("person", "")
    assert account.calendar.queued / SECOND / 60 == pytest.approx(2 + 30, abs=1)
    assert len(site.rows) < 20


def test_an_ordinary_pass_writes_nothing(tmp_path: Path) -> None:
    """What goes on is written every five minutes, in one row that grows."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 20, 0)
    count = 0
    for minute in range(21, 31):
        before = dict(site.rows)
        site.train(minute, minute, minute * 10)
        count += site.rows != before
    assert count == 2
    assert sorted(row.kind for row in site.rows.values()) == ["held", "queued", "startup", "steps"]


def test_no_row_of_steps_is_longer_than_an_hour(tmp_path: Path) -> None:
    """So a slow hour can be told from its neighbours."""
    site = Site(tmp_path)
    site.every = 600.0
    site.jobs = [running("10", 0)]
    for minute in range(0, 131, 10):
        site.train(minute, minute, minute)
    rows = [row for row in site.rows.values() if row.kind == "steps"]
    assert [(row.ended - row.began) // SECOND for row in rows] == [3600, 2400]


def test_a_night_without_sentinel_is_unknown(tmp_path: Path) -> None:
    """The steps that were made meanwhile are not guessed."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 30, 0)
    site.minute, site.clock = 90, ManualClock(START)
    site.clock.advance(90 * 60)
    site.train(91, 120, 900)
    site.save(1190, 120)
    wait(site, 121, 123)
    assert site.minutes() == pytest.approx({"useful": 59, "unknown": 61}, abs=2)


@pytest.mark.parametrize(
    ("hours", "until"),
    [(0, 65), (24, 65), (-2, 65), (1, 1000), (-1, 1000)],
    ids=["healthy", "a day ahead", "two hours behind", "ahead for good", "behind for good"],
)
@pytest.mark.long
def test_a_clock_that_jumps_costs_nothing(hours: int, until: int, tmp_path: Path) -> None:
    """For five minutes or for good. Looks go on, so nothing was blind, and what the job held is what
    Slurm says."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    for minute in range(120):
        site.clock.jump(3600 * {60: hours, until: -hours}.get(minute, 0))
        site.train(minute, minute, 10 * minute)
        if minute in (30, 90):
            site.save(10 * minute, minute)
    site.jobs, site.ends = [], {"10": end_job("10", "FAILED", 0, 120)}
    wait(site, 120, 180)
    assert "blind" not in {row.kind for row in site.rows.values()}
    told = site.account()
    assert (told.held, [one.cause for one in told.interruptions]) == (120 * 60 * 8e6, ["software"])
    assert site.minutes().get("unknown", 0) <= 1
    assert site.minutes()["useful"] == pytest.approx(90, abs=2)


def end_job(number: str, state: str, started: float, ended: float, **more: Any) -> JobEnd:
    """How Slurm says that a job ended, in minutes."""
    return JobEnd(
        job_id=number, state=state, exit_code=int(state == "FAILED"), nodes="node-[0-3]",
        started=NOW + int(started * 60), ended=NOW + int(ended * 60), **more,
    )  # fmt: skip


@pytest.mark.parametrize(("missed", "unknown"), [(1, 0), (20, 20)])
def test_a_standstill_before_a_gap_is_not_known_to_have_gone_on(
    missed: int, unknown: int, tmp_path: Path
) -> None:
    """It hung, sentinel did not look for 20 minutes, and then it makes steps again. One look that is
    left out is no gap."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 30, 0)
    wait(site, 31, 45)
    site.look(45 + missed)
    site.train(46 + missed, 80, 310)
    site.save(310 + 10 * (34 - missed), 80)
    wait(site, 81, 83)
    right = {"useful": 65 - missed, "hung": 15 + missed - unknown}
    right |= {"unknown": unknown} if unknown else {}
    assert site.minutes() == pytest.approx(right, abs=2.1)


def test_the_end_of_a_job_that_nobody_saw_is_unknown(tmp_path: Path) -> None:
    """It crashed somewhere in the 25 minutes in which sentinel did not look."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 30, 0)
    site.save(300, 30)
    site.jobs, site.ends = [], {"10": end_job("10", "FAILED", 0, 54)}
    wait(site, 55, 57)
    assert site.minutes() == pytest.approx({"useful": 30, "unknown": 24}, abs=1.1)


@pytest.mark.parametrize(("every", "parts"), [(600, {"startup": 30, "unknown": 60}), (60, None)])
def test_what_counts_as_a_gap_follows_from_the_time_between_two_passes(
    every: float, parts: dict[str, float] | None, tmp_path: Path
) -> None:
    """A check that looks every ten minutes misses nothing; one that looks every minute has not seen
    what was between."""
    site = Site(tmp_path)
    site.every = every
    site.jobs = [running("10", 0)]
    for minute in range(0, 91, 10):
        for step in range(minute - 39, minute - 29) if minute > 30 else ():
            site.write(f" iteration {step:8d}/ 100000 | lm loss: 2.0E+00 |")
        site.look(minute)
    kinds = {row.kind for row in site.rows.values()}
    assert ("blind" in kinds) == (parts is None)
    if parts:
        assert site.minutes() == pytest.approx(parts, abs=10)


@pytest.mark.parametrize("state", ["FAILED", "COMPLETED"])
def test_a_job_that_ends_before_its_first_step_was_in_its_start(state: str, tmp_path: Path) -> None:
    """All of its time, and not what was written of it last."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0.5)]
    wait(site, 1, 13)
    site.jobs, site.ends = [], {"10": end_job("10", state, 0.5, 13.9)}
    wait(site, 14, 16)
    assert site.minutes() == {"startup": 13.4}


def test_a_crash_that_held_its_gpus_is_no_hang_when_the_job_ends(tmp_path: Path) -> None:
    """The log says why it stands still, and so it stays. A hang without such a line stays a hang."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 30, 0)
    site.write("RuntimeError: CUDA error: uncorrectable ECC error encountered")
    wait(site, 31, 50)
    site.jobs, site.ends = [], {"10": end_job("10", "CANCELLED", 0, 50, cancelled_by=ME)}
    wait(site, 51, 53)
    found = site.minutes()
    assert found["crashed"] == pytest.approx(20, abs=1.1)
    assert "hung" not in found


def reservation(nodes: str = "node-[0-3]", *flags: str) -> Reservation:
    """It holds the nodes from minute 20 to minute 63."""
    return Reservation(
        name="work", starts=NOW + 20 * 60, ends=NOW + 63 * 60,
        nodes=frozenset(expand_hostlist(nodes)), flags=frozenset(flags),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("planned", "minutes"),
    [
        (reservation("node-[0-3]", "MAINT"), 43),
        (reservation("node-9", "MAINT", "ALL_NODES"), 43),
        (reservation("node-[0-9]", "MAINT"), 43),
        (reservation("node-[0-3]"), 0),
        (reservation("node-[0-2]", "MAINT"), 0),
        (reservation("node-9", "MAINT"), 0),
        (reservation("node-[0-3]", "MAINT", "TIME_FLOAT"), 0),
    ],
)
def test_an_announced_maintenance_of_its_nodes_is_named(
    planned: Reservation, minutes: int, tmp_path: Path
) -> None:
    """The job is cancelled for it, and the next one comes ten minutes after it."""
    site = Site(tmp_path)
    del site.checks["log"], site.checks["checkpoint"]
    site.reservations = [planned]
    site.jobs = [running("10", 0)]
    wait(site, 0, 19)
    site.jobs, site.ends = [], {"10": end_job("10", "CANCELLED", 0, 20, cancelled_by="root")}
    wait(site, 20, 63)
    site.reservations = []
    wait(site, 64, 72)
    site.jobs = [running("11", 73, submitted=73)]
    wait(site, 73, 80)
    calendar = site.account().calendar
    assert calendar.maintenance / SECOND / 60 == minutes
    assert calendar.not_submitted / SECOND / 60 == 53 - minutes


@pytest.mark.parametrize(
    ("reason", "minutes"),
    [("ReqNodeNotAvail, Reserved for maintenance", 40), ("Priority", 0)],
)
def test_a_job_that_waits_for_a_maintenance(reason: str, minutes: int, tmp_path: Path) -> None:
    """By Slurm's own word; what waits for something else is in the queue."""
    site = Site(tmp_path)
    del site.checks["log"], site.checks["checkpoint"]
    site.reservations = [reservation("node-[0-3]", "MAINT")]
    waiting = {"state": "PENDING", "reason": reason, "user": ME, "name": "llm"}
    site.jobs = [job("10", submitted=NOW + 23 * 60, started=None, **waiting)]
    wait(site, 23, 63)
    site.reservations, site.jobs = [], [running("10", 64, submitted=23)]
    wait(site, 64, 70)
    calendar = site.account().calendar
    assert calendar.maintenance / SECOND / 60 == minutes
    assert calendar.queued / SECOND / 60 == 41 - minutes


def test_slurm_that_tells_no_reservations_leaves_the_time_without_a_job(tmp_path: Path) -> None:
    """It is not guessed that there was a maintenance."""
    site = Site(tmp_path)
    del site.checks["log"], site.checks["checkpoint"]
    site.reservations = None
    site.jobs = [running("10", 0)]
    wait(site, 0, 19)
    site.jobs, site.ends = [], {"10": end_job("10", "CANCELLED", 0, 20, cancelled_by="root")}
    wait(site, 20, 40)
    assert {row.kind for row in site.rows.values()} == {"held", "queued"}


@pytest.mark.parametrize(("minute", "counts"), [(2**55, [10.0]), (9, [9.0]), (-20_000, [])])
def test_the_time_of_a_checkpoint_is_what_its_owner_writes(
    tmp_path: Path, minute: int, counts: list[float]
) -> None:
    """tmpfs and FUSE keep any time, and no database does. One that lies in the future counts as
    now. Old ones have no rows, or a user could write rows without end."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    with TemporaryDirectory(dir="/dev/shm") as name:
        site.saves = Path(name)
        site.checks["checkpoint"] = CheckpointCheck(path=FilePath(name), job="llm", users=[ME])
        wait(site, 0, 5)
        site.save(50, minute)
        wait(site, 6, 10)
    rows = [row for row in site.rows.values() if row.kind == "saved"]
    assert [(row.ended - START.wall) / SECOND / 60 for row in rows] == pytest.approx(counts, abs=4)


def test_a_restart_inside_the_job(tmp_path: Path) -> None:
    """The launcher begins again at the last checkpoint: nothing but the log tells it."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 40, 0)
    site.write("RuntimeError: CUDA error: uncorrectable ECC error encountered")
    wait(site, 41, 44)
    site.train(45, 60, 300)
    found = site.account()
    (one,) = found.interruptions
    assert (one.cause, one.ended_by) == ("gpu", "automatic")
    assert site.minutes()["redone"] == pytest.approx(10, abs=1)
    assert site.minutes()["startup"] == pytest.approx(5, abs=1)


def test_a_number_that_begins_anew_in_each_epoch_says_nothing_about_lost_steps(
    tmp_path: Path,
) -> None:
    """It is no restart, and the report says what to do."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 30, 0)
    site.train(31, 60, 0)
    found = site.account()
    assert found.interruptions == ()
    assert found.parts["redone"] == 0
    assert any("each epoch" in doubt for doubt in found.doubts)


def test_starts_that_get_nowhere_are_told_with_what_they_share(tmp_path: Path) -> None:
    """Four jobs die at the same step, one of them ten steps before it; the fifth gets further."""
    site = Site(tmp_path)
    found = dict[int, list[Finding]]()
    for number in range(5):
        began = number * 20
        site.jobs = [running(str(number), began, nodes=f"node-[0,{number + 3}]")]
        last = site.train(began, began + 12 - (number == 2), 100)
        assert last <= 220
        found[number] = site.findings("log")
        site.write("RuntimeError: CUDA error: uncorrectable ECC error encountered")
        site.look(began + 13)
        site.jobs = []
        wait(site, began + 14, began + 16)
    told = {n: [f for f in several if f.subject == "llm restarts"] for n, several in found.items()}
    assert [len(told[n]) for n in range(4)] == [0] * 4
    (one,) = told[4]
    assert one.status is Status.CRITICAL
    assert "3 starts in a row did not get beyond step 220" in one.summary
    assert "all of them had node-0" in one.summary
    site.jobs = [running("9", 100)]
    site.train(100, 120, 100)
    (over,) = (f for f in site.findings("log") if f.subject == "llm restarts")
    assert over.status is Status.OK


@pytest.mark.parametrize(
    ("starts", "futile", "reached"),
    [
        ([], 0, -1),
        ([(0, 100), (90, 150), (140, 200)], 0, 200),
        ([(0, 100), (90, 100), (90, 95), (90, None)], 3, 100),
        ([(0, 100), (90, 101), (90, 95), (90, None)], 2, 101),
        ([(50, 1000), (0, 100), (90, 150), (140, 200)], 0, 200),
        ([(0, 50), (0, 40), (0, 50), (0, 30)], 3, 50),
        ([(None, None)] * 5, 0, -1),
    ],
)
def test_which_starts_get_nowhere(
    starts: list[tuple[float | None, float | None]], futile: int, reached: float
) -> None:
    """Those behind the one that got furthest, unless somebody began anew below all of them."""
    several = [FinishedStart(first=first, highest=highest) for first, highest in starts]
    assert (len(find_futile_starts(several)[0]), find_futile_starts(several)[1]) == (
        futile,
        reached,
    )


def test_the_start_that_got_furthest_is_remembered() -> None:
    """However many have failed since."""
    starts = [FinishedStart(first=0, highest=900), *[FinishedStart(first=800, highest=850)] * 20]
    kept = list[FinishedStart]()
    for one in starts:
        kept = [*limit_starts([*kept, one])]
    assert len(kept) == 8
    assert find_futile_starts(kept)[1] == 900


def test_the_checkpoint_that_a_job_saved_at_its_end_is_seen(tmp_path: Path) -> None:
    """The check looks a few times more when no job runs, then no more."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 20, 0)
    site.jobs = []
    site.ends["10"] = JobEnd(
        job_id="10", state="COMPLETED", exit_code=0, started=NOW, ended=NOW + 20 * 60
    )
    site.save(200, 20)
    wait(site, 21, 22)
    assert [row.last_step for row in site.rows.values() if row.kind == "saved"] == [200]
    assert site.minutes()["useful"] == pytest.approx(20, abs=1.1)
    wait(site, 23, 25)
    site.save(300, 40)
    wait(site, 41, 44)
    assert [row.last_step for row in site.rows.values() if row.kind == "saved"] == [200]


def test_accounting_that_differs_by_a_second_makes_no_second_job(tmp_path: Path) -> None:
    """What the job held is one row."""
    site = Site(tmp_path)
    site.jobs = [running("10", 0)]
    site.train(0, 10, 0)
    site.jobs = []
    site.ends["10"] = JobEnd(
        job_id="10", state="COMPLETED", exit_code=0, started=NOW + 1, ended=NOW + 630
    )
    wait(site, 11, 13)
    (row,) = (row for row in site.rows.values() if row.kind == "held")
    assert (row.attempt, row.cause) == (NOW, "completed")


def gone(state: str = "FAILED", tail: str = "", **more: Any) -> GoneJob:
    seen = SeenJob(
        id="1", job_id="1", name="llm", user="a", partition="p", nodes="n1", state="RUNNING",
        reason="", started=NOW, first=START, since=START, waited=0.0,
    )  # fmt: skip
    end = JobEnd(job_id="1", state=state, exit_code=1)
    return GoneJob(seen=seen, at=START, **{"asked": True, "end": end, "tail": tail, **more})


def test_an_end_that_slurm_tells_only_later_is_written_then() -> None:
    """The queue is as it was, and no row is due."""
    silent, told = gone(asked=False, end=None), gone(end=end_job("1", "NODE_FAIL", 0, 5))
    before, after = (JobMemory(looked=START, gone=(one,)) for one in (silent, told))
    rows = list_ledger_rows(context(FixedSlurm(), START, limit=30.0), "llm", before, after)
    assert [row.cause for row in rows if row.kind == "held"] == ["node"]


@pytest.mark.parametrize(
    ("job_that_ended", "cause"),
    [
        (gone("COMPLETED", end=JobEnd(job_id="1", state="COMPLETED", exit_code=0)), "completed"),
        (gone("TIMEOUT"), "time_limit"),
        (gone("NODE_FAIL"), "node"),
        (gone("OUT_OF_MEMORY"), "memory"),
        (gone("PREEMPTED"), "preemption"),
        (gone("CANCELLED by 1000"), "person"),
        (gone(tail="CUDA error: uncorrectable ECC error encountered"), "gpu"),
        (gone(tail="OSError: [Errno 28] No space left on device"), "file_system"),
        (gone(tail="torch.OutOfMemoryError: CUDA out of memory."), "software"),
        (gone(), "software"),
        (gone(end=None), "unknown"),
        (gone(end=None, asked=False), ""),
        (gone(lost=NOW), "slurm"),
    ],
)
def test_why_a_job_ended(job_that_ended: GoneJob, cause: str) -> None:
    """By Slurm's word, and for a failure by the last lines of the job."""
    assert find_end_cause(job_that_ended) == cause


def test_the_cause_is_found_behind_what_others_say_of_it() -> None:
    """A rank that waits names no cause; every name in the table is a known error."""
    waits, lost = (LogTrouble(kind=k, line="") for k in ("NCCL timeout", "GPU lost"))
    assert find_interruption_cause([waits, lost]) == "gpu"
    assert find_interruption_cause([waits]) == "unknown"
    assert find_interruption_cause([]) is None
    known = {kind.name for kind in TROUBLE_KINDS} | {UNKNOWN_KIND, NEW_LINE_KIND}
    assert set(_CAUSES) <= known
