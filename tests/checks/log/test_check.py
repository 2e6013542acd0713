"""Rules of the log check on real files, and on real jobs in the lab."""

import getpass
import os
import pickle
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sentinel.actions.requeue import RequeueAction
from sentinel.checks.checkpoint import CheckpointPlace
from sentinel.checks.log import Log
from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.gather import MAX_JOB_FILES
from sentinel.checks.log.judge import LogVerdict
from sentinel.checks.log.log_findings import WatchedLog
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.memory import MAX_KEPT_SIZES
from sentinel.checks.log.requests import (
    MAX_WAITING_JOBS,
    find_culprit_node,
    make_multiline_regex,
)
from sentinel.checks.log.witness import Testimony
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.cluster import Job, JobEnd
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import ActionRequest, Finding, Report, Status
from sentinel.core.node_answers import Answered, Unreachable
from sentinel.core.patterns import compile_pattern
from sentinel.core.settings import FilePath, SlurmSettings
from sentinel.core.values import Duration, duration_text
from sentinel.nodes.settings import RemoteSettings
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job_change import WorkingHands
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.stacks import StacksLooker
from sentinel.stacks.evidence import make_evidence_taker
from sentinel.testing import START, FixedSlurm, ManualClock, context
from sentinel.user_files.session import shared_reader
from sentinel.user_files.whose import Whose
from tests.checks.log.jobs import job
from tests.kinds import looks
from tests.lab.cluster import Lab
from tests.lab.fuse import Fuse
from tests.stacks.parse.recorded import away, waiting

ME = getpass.getuser()
ITERATION = re.compile(r"iteration\s+(\d+)")


class Watch:
    """A log check run again and again, its memory sent through JSON as a store would."""

    def __init__(
        self, *jobs: Job, ends: Any = None, submissions: Any = None, **settings: Any
    ) -> None:
        self.check = Log(**{"stale_after": Duration(600), "startup": Duration(600), **settings})
        self.jobs, self.ends, self.submissions = jobs, ends, submissions
        self.clock, self.memory = ManualClock(START), {}  # type: ignore[var-annotated]

    def report(self, minutes: float = 0, **more: Any) -> Report:
        now = self.clock.advance(minutes * 60)
        slurm = FixedSlurm(jobs=self.jobs, ends=self.ends, submissions=self.submissions)
        with shared_reader():  # as the runner does
            report = self.check.run(context(slurm, now=now, memory=self.memory, **more))
        if report.memory is not None:
            self.memory = msgspec.json.decode(msgspec.json.encode(report.memory))
        return report

    def look(self, minutes: float = 0, **more: Any) -> Finding:
        (finding,) = self.report(minutes, **more).findings
        return finding


def mine(**fields: Any) -> Job:
    return job(**{"user": ME, "started": START.wall // SECOND - 3600, **fields})


def test_a_file_that_stops_growing_is_stale_and_quoted(tmp_path: Path) -> None:
    """The finding carries the last lines and what to run next."""
    log = tmp_path / "log"
    log.write_text("one\ntwo\n")
    watch = Watch(path=FilePath(log))
    assert watch.look().status is Status.OK
    with log.open("a") as file:
        file.write("three \x1b[31m\x1b]0;evil\x07\n")
    assert watch.look(10).summary == f"grows ({log})"
    stale = watch.look(10)
    assert (stale.status, stale.summary) == (
        Status.CRITICAL,
        "has not grown for 10m (limit 10m)",
    )
    assert stale.details == "one\ntwo\nthree \\x1b]0;evil\\x07"
    assert looks(stale) == (f"tail -c 5000 {log} | cat -v", f"ls -l {log} | cat -v")
    assert (stale.subject, type(stale.subject)) == (str(log), str)


@pytest.mark.parametrize(("written", "before_look"), [(15, 45), (-3600, 0)])
def test_a_standstill_begins_when_the_log_was_written_last(
    tmp_path: Path, written: int, before_look: int
) -> None:
    """Not when a look noticed it; a time of before the look before is one of a clock that is behind."""
    log = tmp_path / "log"
    log.write_text("one\n")
    watch = Watch(path=FilePath(log))
    watch.look()
    log.write_text("one\ntwo\n")
    os.utime(log, (START.wall / SECOND + written,) * 2)
    watch.look(1)
    stale = watch.look(20)
    assert stale.began == START.wall // SECOND + 60 - before_look
    assert stale.values["quiet_seconds"] == 20 * 60 + before_look
    assert stale.summary.startswith(f"has not grown for {duration_text(20 * 60 + before_look)}")


def test_a_number_that_stops_is_stale_though_the_file_grows(tmp_path: Path) -> None:
    """The training hangs; only the watchdog's own lines are new."""
    log = tmp_path / "log"
    log.write_text("iteration 5\n")
    watch = Watch(path=FilePath(log), progress=ITERATION)
    assert watch.look().values["progress"] == 5
    with log.open("a") as file:
        file.write("PULSE still there\n")
    assert watch.look(10).summary == "no progress for 10m, still at progress 5 (limit 10m)"
    with log.open("a") as file:
        file.write("iteration 6\n")
    report = watch.report(1)
    assert report.findings[0].status is Status.OK
    assert {(s.name, s.value) for s in report.samples} >= {("progress", 6.0)}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("iteration 6 | lm loss: 2.31E+00 | loss scale: 1.0 | grad norm: 1.23 |", (2.31, 1.23)),
        ("iteration 6\n validation loss at iteration 6 | lm loss value: 9.0 |", (None, None)),
        ("iteration 6 loss: 2.5, aux_loss: 0.1, grad_norm: inf", (2.5, None)),
        ("iteration 6 {'loss': 1.5, 'grad_norm': '0.5', 'eval_loss': 3.0}", (1.5, 0.5)),
        ("iteration 6 loss: 3.5\niteration 7 loss: nan", (3.5, None)),
        ("iteration 6", (None, None)),
    ],
)
def test_the_loss_and_the_gradient_norm_have_a_history(
    tmp_path: Path, line: str, found: tuple[float | None, float | None]
) -> None:
    """The last that the new lines tell; none while they tell none, so that a curve ends there."""
    log = tmp_path / "log"
    log.write_text("iteration 5 loss: 9.0 grad_norm: 9.0\n")
    watch = Watch(path=FilePath(log), progress=ITERATION)
    watch.look()
    with log.open("a") as file:
        file.write(f"{line}\n")
    told = {s.name: s.value for s in watch.report(1).samples}
    assert (told.get("loss"), told.get("grad_norm")) == found
    assert {s.name for s in watch.report(1).samples} == {"progress", "size_bytes"}


def test_one_look_uses_the_modification_time_and_keeps_nothing(tmp_path: Path) -> None:
    """`sentinel check log --path F` needs no state."""
    log = tmp_path / "log"
    log.write_text("x")
    os.utime(log, (0, START.wall // SECOND - 601))
    watch = Watch(path=FilePath(log))
    assert watch.look(one_shot=True).summary.startswith("last written 10m 01s ago (one look")
    assert watch.report(one_shot=True).memory is None
    log.write_text("iteration 900 loss 2.1\n")
    os.utime(log, (0, START.wall // SECOND - 1201))
    told = watch.look(one_shot=True).summary
    assert told.index("(limit 10m") < told.index("; log of an unknown trainer")


@pytest.mark.parametrize("state", ["SIGNALING", "RESIZING"])
def test_a_job_that_is_signalled_or_resized_runs_on(tmp_path: Path, state: str) -> None:
    """squeue shows such a flag in place of RUNNING; the clock of a hang goes on."""
    log = tmp_path / "log"
    log.write_text("iteration 5\n")
    watch = Watch(mine(), job="train", path=FilePath(log))
    watch.look()
    watch.jobs = (mine(state=state),)
    assert watch.look(5).status is Status.OK
    watch.jobs = (mine(),)
    assert watch.look(5).status is Status.CRITICAL


def test_of_a_heterogeneous_job_the_first_part_writes_the_log(tmp_path: Path) -> None:
    """The others have none: no batch script runs there."""
    (tmp_path / "7.out").write_text("x")
    parts = [mine(id="7+0"), mine(id="7+1", job_id="8")]
    watch = Watch(*parts, job="train", path=FilePath(f"{tmp_path}/%j.out"))
    assert watch.look(0).status is Status.OK


def special(folder: Path) -> dict[str, tuple[Path, str]]:
    fifo, loop = folder / "fifo", folder / "loop"
    os.mkfifo(fifo)
    loop.symlink_to(loop)
    return {
        "directory": (folder, f"{folder} is a directory, not a log; name a regular file"),
        "fifo": (fifo, f"{fifo} is a fifo, not a log; name a regular file"),
        "device": (Path("/dev/null"), "/dev/null is a character device, not a log"),
        "loop": (loop, f"{loop} cannot be read: Too many levels of symbolic links"),
        "missing": (folder / "none", f"{folder}/none does not exist; check the path"),
        "unreadable": (Path("/proc/self/mem"), "/proc/self/mem cannot be read: Input/output"),
    }


@pytest.mark.parametrize("kind", ["directory", "fifo", "device", "loop", "missing", "unreadable"])
def test_what_is_no_log_is_told_in_one_line(tmp_path: Path, kind: str) -> None:
    """And nothing hangs on it."""
    path, summary = special(tmp_path)[kind]
    finding = Watch(path=FilePath(path), progress=ITERATION).look()
    assert finding.status is Status.UNKNOWN
    assert finding.summary.startswith(summary)


def test_a_log_that_its_owner_threw_away_is_unknown_until_the_job_ends() -> None:
    """What is said of `/dev/null` ends by itself, and nobody has to silence it."""
    end = JobEnd(job_id="7", state="RUNNING", stdout="/dev/null")
    watch = Watch(mine(), ends={"7": end}, match=re.compile("train"))
    watch.look()
    report = watch.report(5)
    assert [f.status for f in report.findings] == [Status.UNKNOWN]
    assert report.coverage.unseen
    watch.jobs, watch.ends = (), {"7": replace(end, state="COMPLETED")}
    report = watch.report(5)
    assert [f.status for f in report.findings] == [Status.OK]
    assert not report.coverage.unseen


def test_the_path_may_depend_on_the_job(tmp_path: Path) -> None:
    """Slurm's symbols, filled in from the running job."""
    (tmp_path / "train-7.out").write_text("iteration 1\n")
    watch = Watch(mine(), job="train", path=FilePath(f"{tmp_path}/%x-%j.out"), progress=ITERATION)
    finding = watch.look()
    assert (finding.subject, finding.status) == ("train", Status.OK)
    assert finding.values["path"] == f"{tmp_path}/train-7.out"
    assert finding.labels == {"job": "train", "user": ME, "partition": "p"}


def test_without_a_path_the_jobs_own_output_is_watched(tmp_path: Path) -> None:
    """Slurm is asked for it once per run of a job."""
    log = tmp_path / "7.out"
    log.write_text("x")
    end = JobEnd(job_id="7", state="RUNNING", stdout=f"{tmp_path}/%j.out")
    watch = Watch(mine(), ends={"7": end}, job="train")
    assert watch.look().values["path"] == str(log)
    watch.ends = {}
    assert watch.look(1).values["path"] == str(log)
    watch.jobs = (mine(started=START.wall // SECOND),)
    assert watch.look(1).summary == ("Slurm does not tell where job 7 writes; give the `path`")


def test_output_that_belongs_to_somebody_else_is_not_read(tmp_path: Path) -> None:
    """A job names its output itself: a link to a secret must not be mailed around."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    (tmp_path / "out").symlink_to(secret)
    end = JobEnd(job_id="7", state="RUNNING", stdout=f"{tmp_path}/out")
    other = mine(user="nobody")
    finding = Watch(other, ends={"7": end}, job="train", users=["nobody"]).look(60)
    assert finding.status is Status.UNKNOWN
    if os.geteuid():
        assert f"belongs to {ME}, not to nobody" in finding.summary
    else:
        assert "cannot be read as nobody: Permission denied" in finding.summary
    assert "s3cret" not in finding.details


def test_output_that_becomes_somebody_elses_is_not_quoted(tmp_path: Path) -> None:
    """The link may be turned between the look and the quotation."""
    secret, out = tmp_path / "secret", tmp_path / "out"
    secret.write_text("s3cret\n")
    out.symlink_to(secret)
    assert LogFiles(5, 20, {}).read_tail(str(out), 99, Whose(user=ME, owned=True)) == "s3cret\n"
    with pytest.raises(CannotTell, match=r"not to nobody|as nobody: Permission denied"):
        LogFiles(5, 20, {}).read_tail(str(out), 99, Whose(user="nobody", owned=True))


def test_only_running_jobs_of_that_very_name_and_user_are_watched(tmp_path: Path) -> None:
    """Nothing runs, nothing to watch: that alarm is the job check's."""
    others = [mine(name="train2"), mine(state="PENDING"), mine(user="somebody")]
    finding = Watch(*others, job="train", path=FilePath(tmp_path / "log")).look()
    assert (finding.status, finding.summary) == (
        Status.OK,
        "no job of exactly this name runs, so there is no log to watch",
    )


def test_a_job_without_a_log_after_its_startup_is_critical(tmp_path: Path) -> None:
    """Honestly: it runs and writes nothing."""
    watch = Watch(mine(), job="train", path=FilePath(tmp_path / "log"))
    finding = watch.look()
    assert finding.status is Status.CRITICAL
    assert "but there is no log at" in finding.summary


def test_the_worst_of_several_jobs_speaks(tmp_path: Path) -> None:
    """One subject, however many elements of an array run."""
    for number in (7, 8, 9):
        (tmp_path / f"{number}.out").write_text("x")
    jobs = [mine(id=str(n), job_id=str(n)) for n in (7, 8, 9)]
    watch = Watch(*jobs, job="train", path=FilePath(f"{tmp_path}/%j.out"))
    assert watch.look().status is Status.OK
    (tmp_path / "8.out").write_text("more")
    finding = watch.look(10)
    assert finding.status is Status.CRITICAL
    assert finding.summary.endswith("; 1 more of 3 running jobs likewise")
    assert finding.values["job"] in ("7", "9")


def test_a_queue_that_cannot_be_read_is_no_answer() -> None:
    """It is not `no such job`."""
    with pytest.raises(CannotTell):
        Log(job="train").run(context(FixedSlurm()))


def test_damaged_memory_is_as_good_as_none(tmp_path: Path) -> None:
    """The next look is the first one again."""
    log = tmp_path / "log"
    log.touch()
    watch = Watch(path=FilePath(log))
    watch.memory = {"logs": "?"}
    assert watch.look().status is Status.OK


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs a `path`, or a `job`"),
        ({"path": FilePath("/l/%x.out")}, "'/l/%x.out' depends on a job; name the `job`"),
        ({"path": FilePath("log")}, "'log' is no absolute path"),
        ({"job": "j", "progress": re.compile("iteration")}, "captures nothing; put the number in"),
        ({"job": "j", "stale_after": Duration(0)}, "must be longer than 0s"),
        ({"job": "j", "floor": Duration(9), "ceiling": Duration(8)}, "no longer than `ceiling`"),
        ({"job": "j", "nan_after": 0}, "has to be 1 or more"),
        ({"job": "j", "loss": re.compile("loss")}, "captures nothing; put the loss in a group"),
        ({"path": FilePath("/l"), "on_stale": ["stacks"]}, "acts on a job; name the `job`"),
        ({"job": "j", "on_stale": ["killswitch"]}, "names the file that a hang makes"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], message: str) -> None:
    """Each with the remedy."""
    with pytest.raises(Invalid, match=re.escape(message)):
        Log(**settings)


class Nodes:
    """A Remote whose nodes all print the same, and that counts how often it was asked."""

    def __init__(self, out: str) -> None:
        self.out, self.asked = out.encode(), 0

    def run(self, nodes: Any, argv: Any, *, limit: float, stdin: bytes = b"") -> Any:
        self.asked += 1
        return {node: Answered(code=0, out=self.out) for node in nodes}

    def probe(self, nodes: Any, wants: Any, *, limit: float) -> Any:
        raise AssertionError("nobody asks for a probe")


WAITING = "gpu 100, 110, 700\n"
WORKING = "gpu 99, 650, 700\n"


def hung(tmp_path: Path, **settings: Any) -> Watch:
    """A watch whose job has advanced and then stood still for just less than its limit."""
    log = tmp_path / "7.out"
    log.write_text("iteration 1\n")
    path = FilePath(f"{tmp_path}/%j.out")
    watch = Watch(mine(), job="train", path=path, progress=ITERATION, **settings)
    watch.look()
    log.write_text("iteration 1\niteration 2\n")
    watch.look(1)
    return watch


def test_second_witnesses_are_asked_only_when_it_seems_to_hang(tmp_path: Path) -> None:
    """Their words are in the message."""
    watch, nodes = hung(tmp_path), Nodes(WAITING)
    assert watch.look(9.9, remote=nodes).status is Status.OK
    assert nodes.asked == 0
    found = watch.look(0.1, remote=nodes)
    assert (found.status, found.summary) == (
        Status.CRITICAL,
        "no progress for 10m, still at progress 2 (limit 10m); GPUs 100% busy at 110 of 700 W: "
        "they wait, and compute nothing",
    )
    assert hung(tmp_path, ask_nodes=False).look(10, remote=nodes).status is Status.CRITICAL
    assert nodes.asked == 1


@pytest.mark.parametrize("minutes", [5, 0.5])
def test_dumps_beside_the_log_name_the_rank_for_which_the_others_wait(
    tmp_path: Path, minutes: float
) -> None:
    """Those of the flight recorder that were written since the number stands: a minute in."""
    watch, at = hung(tmp_path), START.wall / SECOND + 60 * minutes
    for rank in range(4):
        path = tmp_path / f"nccl_trace_rank_{rank}"
        path.write_bytes(pickle.dumps(away() if rank == 2 else waiting(), 2))
        os.utime(path, (at, at))
    found = watch.look(10)
    assert found.status is Status.CRITICAL
    said = (
        "rank 2 is not in the all_reduce (train.py:88) number 5 of default_pg, "
        "in which 3 others wait; "
    )
    assert (
        found.summary
        == said * (minutes > 1) + "no progress for 10m, still at progress 2 (limit 10m)"
    )


def test_gpus_at_full_power_make_a_warning_of_it_for_a_while(tmp_path: Path) -> None:
    """A log may be buffered; after twice the limit it is a hang whatever they do."""
    watch, nodes = hung(tmp_path), Nodes(WORKING)
    found = watch.look(10, remote=nodes)
    assert found.status is Status.WARNING
    assert found.summary.endswith("so only a warning until 20m: is the log buffered?")
    assert watch.look(9.9, remote=nodes).status is Status.WARNING
    assert watch.look(0.1, remote=nodes).status is Status.CRITICAL


def test_a_hang_asks_for_its_actions_once_and_again_after_half_an_hour(tmp_path: Path) -> None:
    """Stacks come first; what was seen goes along, to be read again before anything is done."""
    watch = hung(tmp_path, on_stale=["requeue", "stacks"])
    assert watch.report(9.9).requests == ()
    first = watch.report(0.1).requests
    assert [(r.action, r.target) for r in first] == [("stacks", "7"), ("requeue", "7")]
    assert dict(first[0].params) == {
        "path": f"{tmp_path}/7.out",
        "size": "24",
        "pattern": r"(?m)iteration\s+(\d+)",
        "number": "2.0",
        "started": str(START.wall // SECOND - 3600),
        "user": ME,
    }
    assert {r.subject for r in first} == {"train"}
    assert first[0].evidence["last lines"] == "iteration 1\niteration 2"
    assert first[0].evidence["finding"] == "no progress for 10m, still at progress 2 (limit 10m)"
    assert watch.report(29.9).requests == ()
    assert len(watch.report(0.1).requests) == 2


@pytest.mark.parametrize("line", ["step 1/100", "iteration 0\nalive since {}"])
def test_a_wrong_pattern_ends_no_job_that_still_writes(tmp_path: Path, line: str) -> None:
    """A number that was never seen, or never to advance, is an alarm; stacks do no harm."""
    log = tmp_path / "log"
    log.write_text("loading\n")
    watch = Watch(
        mine(),
        job="train",
        path=FilePath(log),
        progress=ITERATION,
        on_stale=["stacks", "requeue", "cancel"],
        ask_nodes=False,
    )
    watch.look()
    asked: list[ActionRequest] = []
    for minute in range(4, 61, 4):
        with log.open("a") as file:
            file.write(line.format(minute) + "\n")
        asked += watch.report(4).requests
    assert {r.action for r in asked} == {"stacks"}
    asked = [r for _ in range(15) for r in watch.report(4).requests]
    assert {r.action for r in asked} == {"stacks", "requeue", "cancel"}


def test_after_a_time_of_blindness_nothing_is_ended_at_once(tmp_path: Path) -> None:
    """A file system that hung for sentinel hung for the job too: it may go on just now."""
    watch = hung(tmp_path, on_stale=["stacks", "requeue"], ask_nodes=False)
    folder = tmp_path.rename(tmp_path.with_name("away"))
    tmp_path.symlink_to(tmp_path)
    for _ in range(5):
        assert watch.look(4).status is Status.UNKNOWN
    tmp_path.unlink()
    folder.rename(tmp_path)
    report = watch.report(1)
    assert report.findings[0].status is Status.CRITICAL
    assert [r.action for r in report.requests] == ["stacks"]
    later = [r.action for _ in range(31) for r in watch.report(1).requests]
    assert later == ["stacks", "requeue"]


class AsItRuns(WorkingHands):
    """Hands that know the job, and look at real files."""

    def __init__(self, *jobs: Job) -> None:
        snapshot = SlurmSnapshot(SlurmClient(), SystemClock(), users=None, max_age=1.0)
        looker = StacksLooker(snapshot.client, SlurmSettings(), RemoteSettings())
        evidence = make_evidence_taker(looker, snapshot.client, "")
        super().__init__(snapshot, (), None, evidence=evidence)
        self.known = jobs

    def jobs(self, job_id: str) -> Sequence[Job]:
        return [one for one in self.known if one.job_id == job_id]


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"step 8\nstep 9\nWARNING nobody answers\n", id="plain"),
        pytest.param(b"step 8\r\nstep 9\r\n", id="lines of Windows"),
        pytest.param(b"step 8\rstep 9\rstep 1", id="a progress bar"),
        pytest.param(b"\x1b[31mstep 8\n\x1b[31mstep 9\n", id="colours"),
        pytest.param("step 8\nstep 9\n".encode("utf-16-le"), id="UTF-16"),
        pytest.param(b"\0" * 5000 + b"step 9\n", id="a hole that copytruncate left"),
    ],
)
def test_what_an_action_reads_again_is_what_the_check_has_read(tmp_path: Path, tail: bytes) -> None:
    """Else a hang would be taken for one that has moved, and nothing would ever be done."""
    log = tmp_path / "log"
    log.write_bytes(tail)
    watch = Watch(
        mine(),
        job="train",
        path=FilePath(log),
        progress=re.compile(r"^step (\d+)$"),
        on_stale=["requeue"],
    )
    watch.look()
    (request,) = watch.report(10).requests
    assert dict(request.params)["number"] == "9.0"
    look = RequeueAction().look(request, AsItRuns(mine()))
    assert (look.unneeded, look.not_ready) == ("", "")
    log.write_bytes(tail.replace(b"9", b"7"))
    assert (
        "its progress went from 9 to 7" in RequeueAction().look(request, AsItRuns(mine())).not_ready
    )


def test_actions_are_told_what_they_need(tmp_path: Path) -> None:
    """The file to make, the signal to send; other actions' params they do not get."""
    settings = {"killswitch": FilePath(f"{tmp_path}/kill-%j"), "signal": "USR1"}
    watch = hung(tmp_path, on_stale=["cancel", "killswitch", "requeue"], **settings)
    made = {r.action: dict(r.params) for r in watch.report(10).requests}
    assert made["killswitch"]["file"] == f"{tmp_path}/kill-7"
    assert "literal" not in made["killswitch"]  # the job decides its name
    assert made["cancel"]["signal"] == "USR1"
    assert not {"file", "signal"} & {*made["requeue"]}
    watch = hung(tmp_path, on_stale=["killswitch"], killswitch=FilePath(f"{tmp_path}/stop"))
    (stop,) = (r for r in watch.report(10).requests if r.action == "killswitch")
    assert stop.params["literal"] == "yes"


def test_the_hang_of_one_user_makes_no_file_of_roots_that_stops_all(tmp_path: Path) -> None:
    """One file for the trainings of several users is made with the rights of whose job hangs: who may
    not write there stops nobody else. A job that is named is one training, whoever of a team runs it."""
    settings = {"on_stale": ["killswitch"], "killswitch": FilePath(f"{tmp_path}/stop")}
    (stop,) = hung(tmp_path, users=["*"], **settings).report(10).requests
    assert (stop.params["user"], "literal" in stop.params) == (ME, False)
    for users in ([ME], [ME, "bob"]):
        (stop,) = hung(tmp_path, users=users, **settings).report(10).requests
        assert stop.params["literal"] == "yes"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^at (1)$", "(?m)^at (1)$"), ("(?im)^at (1)", "(?mi)^at (1)")],
)
def test_what_is_read_again_is_read_by_lines_too(pattern: str, text: str) -> None:
    """With the flags that the pattern had."""
    assert make_multiline_regex(pattern) == text
    assert re.search(text, "noise\nat 1")


def test_a_pattern_without_an_end_blinds_the_check_and_is_named(tmp_path: Path) -> None:
    """As it would stop all checks of the service."""
    (tmp_path / "log").write_text("a" * 100 + "c\n")
    evil = compile_pattern("(a|aa)+$(1)", where="sentinel.yaml:7")
    watch = Watch(mine(), job="train", path=FilePath(tmp_path / "log"), progress=evil)
    finding = watch.look(limit=60.0)
    assert finding.status is Status.UNKNOWN
    assert "'(a|aa)+$(1)' (sentinel.yaml:7) found no end" in finding.summary


def test_a_job_that_works_according_to_a_witness_is_not_touched(tmp_path: Path) -> None:
    """Looking at it does no harm."""
    watch = hung(tmp_path, on_stale=["requeue", "stacks"])
    assert [r.action for r in watch.report(10, remote=Nodes(WORKING)).requests] == ["stacks"]


def lost(tmp_path: Path, text: str, remote: Any = None, **fields: Any) -> dict[str, Any]:
    """The requests of a hang on two nodes, a successor waiting; by action and target."""
    job = mine(nodes="node-[0-1]", node_count=2)
    successor = mine(id="8_[1-9]", job_id="8", array_id="8", state="PENDING", **fields)
    watch = hung(tmp_path, on_stale=["requeue", "exclude", "stacks"])
    watch.jobs = (job, successor)
    with (tmp_path / "7.out").open("a") as file:
        file.write(text)
    watch.report(1)
    return {f"{r.action} {r.target}": r for r in watch.report(10, remote=remote).requests}


class Silent(Nodes):
    """As Nodes, but that one of them does not answer."""

    def __init__(self, *silent: str) -> None:
        super().__init__("tasks 0 root 2 0 100 0 0 100 3 100\n")
        self.silent = silent

    def run(self, nodes: Any, argv: Any, *, limit: float, stdin: bytes = b"") -> Any:
        answers = super().run(nodes, argv, limit=limit, stdin=stdin)
        return answers | {node: Unreachable("no route") for node in self.silent}


def test_a_successor_is_kept_from_the_one_node_that_is_named(tmp_path: Path) -> None:
    """After the look, and before anything lets the successor start."""
    asked = lost(tmp_path, "", Silent("node-1"), exclude="node-7")
    assert [*asked] == ["stacks 7", "exclude 8", "requeue 7"]
    assert dict(asked["exclude 8"].params) == {
        "node": "node-1",
        "exclude": "node-7",
        "user": ME,
        "started": str(START.wall // SECOND - 3600),
    }
    assert asked["exclude 8"].subject == "train"


@pytest.mark.parametrize("more", [0, 1])
def test_waiting_jobs_beyond_those_that_are_kept_from_a_node_are_counted(
    tmp_path: Path, more: int
) -> None:
    """Each of those that are has it in its evidence; nothing else is about them."""
    watch = hung(tmp_path, on_stale=["requeue", "exclude"])
    waiting = [str(8 + n) for n in range(MAX_WAITING_JOBS + more)]
    others = (mine(id=n, job_id=n, state="PENDING") for n in waiting)
    watch.jobs = (mine(nodes="node-[0-1]", node_count=2), *others)
    watch.report(1)
    asked = watch.report(10, remote=Silent("node-1")).requests
    kept = [r for r in asked if r.action == "exclude"]
    assert [r.target for r in kept] == waiting[:MAX_WAITING_JOBS]
    told = {r.action: r.evidence.get("other waiting jobs", "") for r in asked}
    assert told == {"exclude": "1 more may start on the node" if more else "", "requeue": ""}


@pytest.mark.parametrize(
    "silent",
    [
        pytest.param((), id="nobody names a node"),
        pytest.param(("node-0", "node-1"), id="several are named: no node is to blame"),
        pytest.param(("other-1",), id="the node is none of the job's"),
    ],
)
def test_without_one_culprit_no_node_is_excluded(tmp_path: Path, silent: tuple[str, ...]) -> None:
    """The rest of what was wished for is done."""
    assert [*lost(tmp_path, "", Silent(*silent))] == ["stacks 7", "requeue 7"]


@pytest.mark.parametrize("field", ["user", "name", "state"])
def test_only_jobs_of_that_name_and_user_that_wait_are_kept_from_it(
    tmp_path: Path, field: str
) -> None:
    """Somebody else's jobs are none of its business."""
    watch = hung(tmp_path, on_stale=["exclude"])
    other = {"state": "PENDING", field: "COMPLETING" if field == "state" else "other"}
    watch.jobs = (mine(nodes="node-[0-1]", node_count=2), mine(id="8", job_id="8", **other))
    assert watch.report(10, remote=Silent("node-1")).requests == ()


def test_the_peer_in_an_error_of_nccl_is_a_culprit(tmp_path: Path) -> None:
    """Whoever complains is not."""
    text = "node-0:1:2 [0] NCCL WARN Connect to 127.0.0.1<4242> failed : timed out\n"
    peer = LogTrouble(kind="NCCL connection", line=text, host="node-0", peer="127.0.0.1")
    job = mine(nodes="node-[0-1]", node_count=2)
    seen = LogState(path="", first=START, looked=START, grown=START, troubles=(peer,))
    hang = LogVerdict(status=Status.CRITICAL, summary="hangs", hung=True)
    watched = WatchedLog(
        sight=LogObservation(path="", at=START, job=job),
        seen=seen,
        verdict=hang,
        peers={"127.0.0.1": "node-1"},
    )
    assert find_culprit_node(watched) == "node-1"
    other = replace(seen, troubles=(replace(peer, kind="NCCL timeout"),))
    assert find_culprit_node(replace(watched, seen=other)) == ""
    doubtful = replace(watched, testimony=Testimony(nodes=("node-0",)))
    assert find_culprit_node(doubtful) == ""


def test_a_hang_says_what_it_costs_and_nothing_else_does(tmp_path: Path) -> None:
    """Counted until it stood still; what cannot be told is said, and hides nothing."""
    saves = tmp_path / "saves"
    (saves / "step_5").mkdir(parents=True)
    shard = saves / "step_5" / "shard"
    shard.write_text("x")
    os.utime(shard, (0, START.wall // SECOND - 1800))
    watch = hung(tmp_path, checkpoints=CheckpointPlace(path=FilePath(saves)))
    assert "at risk" not in watch.look(9.9).summary
    found = watch.look(0.1)
    assert found.summary == (
        "no progress for 10m, still at progress 2 (limit 10m); 31m of work since checkpoint step_5 at risk"
    )
    shutil.rmtree(saves)
    found = watch.look(1)
    assert found.status is Status.CRITICAL
    assert f"; work at risk is not known: {saves} cannot be read: No such file" in found.summary


def test_a_one_shot_asks_for_nothing(tmp_path: Path) -> None:
    """It changes nothing."""
    watch = hung(tmp_path, on_stale=["stacks"])
    os.utime(tmp_path / "7.out", (0, 0))
    report = watch.report(one_shot=True)
    assert (report.findings[0].status, report.requests) == (Status.CRITICAL, ())


def test_actions_that_are_named_are_granted_and_no_others() -> None:
    """Within their own limits."""
    assert Log(job="train", on_stale=["stacks"]).grants() == {"stacks": None}
    assert Log(job="train").grants() == {}
    assert (Log(job="t", on_stale=["stacks"]).may_ask, Log(job="t").may_ask) == (True, False)


def test_one_file_per_node_tells_which_node_complains(tmp_path: Path) -> None:
    """Progress in any of them is progress."""
    many = mine(nodes="node-[0-1]", node_count=2)
    watch = Watch(many, job="train", path=FilePath(f"{tmp_path}/%x-%N.log"), progress=ITERATION)
    (tmp_path / "train-node-0.log").write_text("iteration 1\n")
    (tmp_path / "train-node-1.log").write_text("Bus error\n")
    first, errors = watch.report().findings
    assert first.status is Status.OK
    assert (errors.subject, errors.status) == ("train errors", Status.WARNING)
    assert errors.summary == "bus error on node-1, and no progress since"
    with (tmp_path / "train-node-0.log").open("a") as file:
        file.write("iteration 2\niteration 3\n")
    first, errors = watch.report(11).findings
    assert (first.status, errors.status) == (Status.OK, Status.OK)


@pytest.mark.parametrize(
    ("line", "wait"),
    [
        ("slurmstepd-node-1: error: *** JOB 7 ON node-1 CANCELLED AT 2026-11-29T22:22:38 ***", 60),
        (
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-29T22:07:15 DUE TO TIME LIMIT ***",
            60,
        ),
        ("node-1: Bus error", 0),
    ],
)
def test_what_slurm_ends_has_a_minute_to_end(tmp_path: Path, line: str, wait: float) -> None:
    """Slurm 22.05 as played: its owner cancelled it while the log was read, and the warning said that the
    job does not go on by itself, and to cancel it."""
    watch = Watch(mine(), job="train", path=FilePath(f"{tmp_path}/log"), progress=ITERATION)
    (tmp_path / "log").write_text(f"iteration 1\n{line}\n")
    errors = watch.report().findings[1]
    assert (errors.status, errors.patience) == (Status.WARNING, wait)


def test_of_one_file_per_node_those_that_are_missing_are_named(tmp_path: Path) -> None:
    """Where one is there; %N of Slurm's own output is the first node alone, so that this may be
    right. Those beyond the cap are named too."""
    many = mine(nodes=f"node-[0-{MAX_JOB_FILES}]", node_count=MAX_JOB_FILES + 1)
    watch = Watch(many, job="train", path=FilePath(f"{tmp_path}/%x-%N.log"))
    for number in range(MAX_JOB_FILES + 1):
        (tmp_path / f"train-node-{number}.log").write_text("step\n")
    (tmp_path / "train-node-7.log").unlink()
    seen = watch.report().coverage
    last = f"{tmp_path}/train-node-{MAX_JOB_FILES}.log"
    assert seen.unseen == (f"{tmp_path}/train-node-7.log", last)
    assert (seen.meant, seen.status) == (MAX_JOB_FILES + 1, Status.OK)
    assert "not there, or beyond the 256 files" in seen.words


def test_a_log_that_cannot_be_seen_is_not_covered_by_the_worst_of_the_others(
    tmp_path: Path,
) -> None:
    """One stands still, which is told; that nobody sees the other is, too."""
    (tmp_path / "7.out").write_text("x")
    (tmp_path / "8.out").mkdir()
    jobs = [mine(id=str(n), job_id=str(n)) for n in (7, 8)]
    watch = Watch(*jobs, job="train", path=FilePath(f"{tmp_path}/%j.out"))
    watch.report()
    report = watch.report(60)
    assert report.findings[0].status is Status.CRITICAL
    assert (report.coverage.words, report.coverage.status) == (
        "saw 1 of 2 logs: not 8",
        Status.UNKNOWN,
    )


def test_further_topics_have_their_own_subjects_from_the_first_time_on(tmp_path: Path) -> None:
    """So that each comes and goes by itself, and a hang is told beside a lost loss."""
    log = tmp_path / "log"
    log.write_text("iteration 1 loss: 2.0\n")
    watch = Watch(path=FilePath(log), progress=ITERATION)
    assert len(watch.report().findings) == 1
    with log.open("a") as file:
        file.write("iteration 2 loss: nan\niteration 3 loss: nan\niteration 4 loss: nan\n")
    subjects = {f.subject: f.status for f in watch.report(1).findings}
    assert subjects == {str(log): Status.OK, f"{log} loss": Status.CRITICAL}
    with log.open("a") as file:
        file.write("iteration 5 loss: 1.9\n")
    subjects = {f.subject: f.status for f in watch.report(1).findings}
    assert subjects == {str(log): Status.OK, f"{log} loss": Status.OK}


def test_the_newest_file_that_fits_is_the_log_and_no_compressed_one(tmp_path: Path) -> None:
    """A new file for each run, leftovers of logrotate beside it."""
    for name, age in {"run-1.log": 300, "run-2.log": 100, "run-3.log.gz": 10}.items():
        (tmp_path / name).write_text("iteration 1\n")
        os.utime(tmp_path / name, (START.wall // SECOND - age,) * 2)
    watch = Watch(path=FilePath(f"{tmp_path}/run-*"), progress=ITERATION)
    assert watch.look().values["path"] == f"{tmp_path}/run-2.log"
    assert Watch(path=FilePath(f"{tmp_path}/none-*")).look().status is Status.UNKNOWN


def test_a_pattern_is_one_log_whichever_file_is_newest(tmp_path: Path) -> None:
    """Two writers that take turns do not begin anew each time; when both stop it is stale."""
    watch = Watch(path=FilePath(f"{tmp_path}/*.log"), progress=ITERATION)
    for turn in range(4):
        log = tmp_path / f"{turn % 2}.log"
        log.write_text(f"iteration {turn}\n")
        os.utime(log, (START.wall // SECOND + turn,) * 2)
        assert watch.look(1).status is Status.OK
    assert watch.look(9.9).status is Status.OK
    assert watch.look(0.1).summary == "no progress for 10m, still at progress 3 (limit 10m)"


def test_a_look_that_fails_forgets_nothing(tmp_path: Path) -> None:
    """The folder may not be listed for a moment."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text("iteration 1\n")
    watch = Watch(path=FilePath(f"{folder}/*.log"), progress=ITERATION)
    watch.look()
    folder.rename(tmp_path / "away")
    folder.write_text("no folder")
    assert watch.look(9).status is not Status.CRITICAL
    folder.unlink()
    (tmp_path / "away").rename(folder)
    assert watch.look(1).status is Status.CRITICAL


def test_a_compressed_log_is_named_as_such(tmp_path: Path) -> None:
    """Nothing in it could ever advance."""
    log = tmp_path / "log.gz"
    log.write_bytes(b"\x1f\x8b\x08rest")
    finding = Watch(path=FilePath(log), progress=ITERATION).look()
    assert finding.status is Status.UNKNOWN
    assert finding.summary == f"{log} is compressed; name the log that is written now"


def test_a_link_that_is_moved_to_a_new_log_has_moved(tmp_path: Path) -> None:
    """latest.log -> run-7.log, as many launchers make it."""
    link = tmp_path / "latest"
    for name in ("1", "2"):
        (tmp_path / name).write_text("iteration 5\n")
    link.symlink_to("1")
    watch = Watch(path=FilePath(link))
    watch.look()
    link.unlink()
    link.symlink_to("2")
    assert watch.look(10).status is Status.OK


def test_a_log_that_may_not_be_read_can_still_be_seen_to_grow(tmp_path: Path) -> None:
    """And the message says what goes unseen."""
    log = Path("/proc/self/mem")
    finding = Watch(path=FilePath(log)).look()
    assert finding.status is Status.OK
    assert finding.summary == (
        "grows (/proc/self/mem); /proc/self/mem cannot be read: Input/output error, "
        "so errors in it go unseen"
    )


def test_the_next_jobs_log_begins_where_the_last_ones_ended(tmp_path: Path) -> None:
    """Both write into one file: the old job's error is not the new one's."""
    log = tmp_path / "log"
    log.write_text("iteration 1\nBus error\n")
    watch = Watch(mine(), job="train", path=FilePath(log), progress=ITERATION)
    assert len(watch.report().findings) == 2
    watch.jobs = ()
    watch.look(1)
    with log.open("a") as file:
        file.write("loading\n")
    watch.jobs = (mine(id="8", job_id="8"),)
    report = watch.report(1)
    assert [f.subject for f in report.findings] == ["train"]
    assert report.findings[0].summary.startswith("no line matches")


def test_what_was_learned_outlives_the_job(tmp_path: Path) -> None:
    """The next job of the chain is the same training."""
    watch = hung(tmp_path, stale_after="auto")
    watch.jobs = ()
    watch.look(1)
    assert watch.memory["learned"]["1"]["quiets"]["progress"]["total"] == 60
    assert watch.memory["logs"] == {}


def test_a_heartbeat_is_a_witness(tmp_path: Path) -> None:
    """It moves while the log is silent: perhaps the log is buffered."""
    beat = tmp_path / "beat-7"
    beat.write_text("step 1\n")
    watch = hung(tmp_path, heartbeat=FilePath(f"{tmp_path}/beat-%j"))
    beat.write_text("step 22\n")
    found = watch.look(10)
    assert (found.status, "heartbeat moved 0s ago" in found.summary) == (Status.WARNING, True)
    found = watch.look(10)
    assert found.status is Status.CRITICAL
    assert "heartbeat stands still for 10m" in found.summary


def test_a_heartbeat_file_may_be_the_log(tmp_path: Path) -> None:
    """Replaced or rewritten at each step, it never grows, and its number advances."""
    beat = tmp_path / "beat"
    beat.write_text("iteration 1")
    watch = Watch(path=FilePath(beat), progress=ITERATION)
    watch.look()
    for number in (2, 3):
        (tmp_path / "new").write_text(f"iteration {number}")
        (tmp_path / "new").rename(beat)
        assert watch.look(10).values["progress"] == number
    assert watch.look(10).status is Status.CRITICAL


def test_the_cause_in_the_log_is_told_with_the_hang(tmp_path: Path) -> None:
    """With the rank that printed it."""
    watch = hung(tmp_path)
    with (tmp_path / "7.out").open("a") as file:
        file.write("[rank3]: Watchdog caught collective operation timeout: WorkNCCL(\n")
    found, errors = watch.report(10).findings
    assert errors.status is Status.WARNING
    assert found.summary.endswith("(limit 10m); before that: NCCL timeout of rank 3")
    assert found.details.startswith("[rank 3] [rank3]: Watchdog caught")


def test_it_says_which_paths_count_by_growth() -> None:
    """A pulse must not be written there, with `progress` neither: it could match, and it spoils
    the log for people."""
    path = FilePath("/l/%x.out")
    assert Log(job="j", path=path).watched_logs() == [path]
    assert Log(job="j", path=path, progress=ITERATION).watched_logs() == [path]
    assert Log(job="j").watched_logs() == []


def test_it_asks_slurm_only_for_the_users_it_watches() -> None:
    """And for nobody where only a path is watched."""
    assert Log(path=FilePath("/l")).jobs_of() == frozenset()
    assert Log(job="j", users=["alice"]).jobs_of() == frozenset(["alice"])
    assert Log(job="j", users=["*"]).jobs_of() is None


def test_a_log_on_a_mount_that_hangs_is_unknown_and_not_asked_twice(fuse: Fuse) -> None:
    """One child waits there, however often the check runs."""
    fuse.hold("lookup")
    watch = Watch(path=FilePath(fuse.point / "data"))
    first = watch.look(limit=8.0)
    assert first.status is Status.UNKNOWN
    assert first.summary.startswith(f"{fuse.point}/data hangs: no answer within")
    assert "still waits for it" in watch.look(1, limit=8.0).summary
    assert fuse.withheld() <= 1
    fuse.release()


@pytest.mark.parametrize(
    ("told", "file"),
    [({"output": "%x-%A_%4a.out"}, "train me-{}_0003.out"), ({}, "slurm-{}_3.out")],
)
def test_a_real_jobs_output_is_found_and_followed(
    fresh: Lab, told: dict[str, Any], file: str
) -> None:
    """stdout with symbols or without any, of an array element, as Slurm itself named the file."""
    script = "for i in $(seq 1 1000); do echo iteration $i; sleep 0.1; done"
    number = fresh.sbatch(script, name="train me", array="3", **told)
    fresh.wait_state(number, "RUNNING")
    slurm = SlurmSnapshot(SlurmClient(environ=fresh.env), SystemClock(), users=None, max_age=0.0)
    check = Log(job="train me", users=["*"], progress=ITERATION)
    memory: Any = {}
    numbers: list[float] = []
    for minute in range(200):
        ctx = context(slurm, memory=memory, now=shift_instant(START, minute))  # type: ignore[arg-type]
        report = check.run(ctx)
        memory = report.memory
        progress = report.findings[0].values.get("progress")
        numbers += [progress] if isinstance(progress, float) and progress not in numbers else []
        if len(numbers) > 2:
            break
    assert report.findings[0].values["path"] == f"{fresh.work}/{file.format(number)}"
    assert len(numbers) > 2
    assert numbers == sorted(numbers)


TITAN = (
    "[titan] - root - INFO - step: {:2d}  loss:  7.1  grad_norm:  1.2  memory:  9.46GiB(64.99%)\n"
)
MEGATRON = (
    " iteration {:8d}/  250000 | consumed samples: 1 | elapsed time per iteration (ms): 5.1 |\n"
)


def test_without_progress_the_trainers_own_number_has_to_advance(tmp_path: Path) -> None:
    """A log that only grows is none of a training that makes progress."""
    log = tmp_path / "log"
    log.write_text(TITAN.format(7))
    watch = Watch(path=FilePath(log))
    assert watch.look().values["trainer"] == "torchtitan"
    log.write_text(log.read_text() + TITAN.format(8))
    assert watch.look(1).values["step"] == 8
    log.write_text(log.read_text() + "waiting for rank 3\n")
    finding = watch.look(10)
    assert (finding.status, finding.values["unseen"]) == (Status.CRITICAL, "no step time")
    assert finding.summary == "no progress for 10m, still at step 8 (limit 10m)"


@pytest.mark.parametrize(
    ("line", "encoding", "name"),
    [
        pytest.param(
            " {0:>2}%|##   | {0}/90 [00:10<01:20,  1.1s/it]\r", "utf-8", "count", id="bar"
        ),
        pytest.param(TITAN, "utf-16-le", "step", id="UTF-16"),
    ],
)
def test_a_log_that_is_only_a_bar_or_in_utf_16_hangs_like_any_other(
    tmp_path: Path, line: str, encoding: str, name: str
) -> None:
    """A bar never ends its line, and every other byte is nothing."""
    log = tmp_path / "log"
    log.write_bytes("".join(line.format(n) for n in range(9)).encode(encoding))
    watch = Watch(path=FilePath(log))
    watch.look()
    with log.open("ab") as file:
        file.write(line.format(9).encode(encoding))
    assert watch.look(1).values[name] == 9
    assert watch.look(9).status is Status.OK
    finding = watch.look(1)
    assert finding.status is Status.CRITICAL
    assert f"still at {name} 9 (" in finding.summary


def test_growth_alone_counts_where_that_is_asked_for(tmp_path: Path) -> None:
    """Or where nobody knows the log."""
    for progress, line in [("growth", TITAN.format(7)), ("auto", "hello\n")]:
        log = tmp_path / "log"
        log.write_text(line)
        watch = Watch(path=FilePath(log), progress=progress)
        watch.look()
        log.write_text(log.read_text() + "waiting\n")
        assert watch.look(10).status is Status.OK
        assert watch.look(10).summary == "has not grown for 10m (limit 10m)"


def test_a_log_that_changes_its_trainer_is_judged_by_the_new_one(tmp_path: Path) -> None:
    """What the former one counted is no obligation."""
    log = tmp_path / "log"
    log.write_text(MEGATRON.format(7))
    watch = Watch(path=FilePath(log))
    watch.look()
    for minute in range(15):
        log.write_text(log.read_text() + TITAN.format(minute))
        assert watch.look(1).status is Status.OK
    assert watch.look(10).summary == "no progress for 10m, still at step 14 (limit 10m)"
    assert watch.memory["logs"][""]["reading"]["changed"] == "Megatron-LM"


def test_two_trainers_that_take_turns_in_one_file_only_have_to_write(tmp_path: Path) -> None:
    """Which of the two numbers is the job's cannot be told."""
    log = tmp_path / "log"
    log.write_text("")
    watch = Watch(path=FilePath(log))
    for minute in range(6):
        line = (TITAN if minute % 2 else MEGATRON).format(minute)
        log.write_text(log.read_text() + line)
        finding = watch.look(1)
        assert finding.status is Status.OK
    assert finding.values["unseen"] == "no number that advances, no step time"
    assert watch.look(10).status is Status.CRITICAL


def test_an_unknown_log_is_read_again_when_there_is_more_of_it(tmp_path: Path) -> None:
    """A line a minute shows no number that advances; an hour of them does."""
    log = tmp_path / "log"
    log.write_text("begin\n")
    watch = Watch(path=FilePath(log))
    watch.look()
    for n in range(20):
        log.write_text(log.read_text() + f"fold 3: round {n} of 900\n")
        finding = watch.look(1)
    assert (finding.values["trainer"], finding.values["round"]) == ("unknown", 19)


def test_one_look_says_whose_log_it_is_and_what_cannot_be_seen_in_it(tmp_path: Path) -> None:
    """The way to try a log before it is watched."""
    log = tmp_path / "log"
    log.write_text(TITAN.format(7))
    finding = Watch(path=FilePath(log)).look(one_shot=True)
    assert "log of torchtitan, its progress is step; no step time in it" in finding.summary


def test_a_line_of_a_hundred_megabytes_is_a_log_like_any_other(tmp_path: Path) -> None:
    """Its end is read."""
    log = tmp_path / "log"
    with log.open("w") as file:
        file.truncate(100 * 2**20)
    with log.open("a") as file:
        file.write("x" * 2**20 + "\n" + TITAN.format(7))
    assert Watch(path=FilePath(log)).look().values["step"] == 7


def test_what_was_learned_of_a_size_that_runs_is_kept_however_many_there_are(
    tmp_path: Path,
) -> None:
    """Else `auto` begins anew at each look: a job's limit would be that of an unknown training."""
    jobs = [
        mine(id=str(n), job_id=str(n), node_count=n, nodes=f"n[1-{n}]")
        for n in range(1, MAX_KEPT_SIZES + 2)
    ]
    for each in jobs:
        (tmp_path / f"{each.job_id}.log").write_text("begins\n")
    path = FilePath(tmp_path / "%j.log")
    watch = Watch(*jobs, path=path, job="train", stale_after="auto", ask_nodes=False)
    watch.report()
    assert set(watch.memory["learned"]) == {each.job_id for each in jobs}
    watch.jobs = (mine(id="99", job_id="99", node_count=99, nodes="n[1-99]"),)
    watch.report(1)
    assert len(watch.memory["learned"]) == MAX_KEPT_SIZES + 1
