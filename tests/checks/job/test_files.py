"""Files of a job: kill switch and last lines, on real files and on a mount that hangs."""

import os
import pwd
import re
import time
from pathlib import Path
from typing import Any

import pytest

from sentinel import proc
from sentinel.checks import text_child
from sentinel.checks.job.files import JobFiles
from sentinel.checks.job.settings import DoneWhen
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from sentinel.user_files.whose import Whose
from tests.checks.job.making import NOW, Watch, check, ended, glance, job, pending
from tests.lab.fuse import Fuse

ME = pwd.getpwuid(os.geteuid()).pw_name
CHOSEN = Whose(literal=True)


def test_an_output_that_takes_too_long_is_said_and_the_death_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read by the child that reads logs, with its limits, and not by the service."""
    out = tmp_path / "evil.log"
    out.write_text("RuntimeError: CUDA error\n" * 4000)
    monkeypatch.setattr(text_child, "WAIT_LIMIT_S", 0.001)
    finding = dead(out)
    monkeypatch.undo()
    text_child._resting.clear()
    assert finding.status is Status.CRITICAL
    assert f"its last lines: {out} could not be read within" in finding.details
    assert "CUDA error" in dead(out).details


def dead(path: Any, user: str = ME, *, written: bool = True) -> Finding:
    """The finding about a job of that user which wrote its output there and is gone."""
    if written:
        writes(path)
    watch = Watch(check(users=[user]))
    watch.look(job(user=user))
    return watch.look(ends=[ended(exit_code=1, stdout=str(path))])


def writes(path: Any) -> None:
    """The job does, by the clock of the test."""
    if os.path.isfile(path):
        os.utime(path, (NOW, NOW - 300))


@pytest.mark.parametrize(
    ("jobs", "there", "status"),
    [
        ([pending()], True, Status.WARNING),
        ([job(), pending()], True, Status.WARNING),
        ([job()], True, Status.OK),
        ([pending(reason="JobHeldUser"), job()], True, Status.WARNING),
        ([pending()], False, Status.OK),
    ],
)
def test_a_kill_switch_left_behind(
    tmp_path: Path, jobs: list[Job], there: bool, status: Status
) -> None:
    """While jobs are queued it would end each as it starts; with one running it is at work."""
    switch = tmp_path / "kill switch"
    if there:
        switch.touch()
    finding = glance(check(kill_switch=FilePath(switch)), *jobs).findings[0]
    assert finding.status is status
    assert ("kill switch" in finding.summary) is (status is Status.WARNING)


def test_a_kill_switch_that_cannot_be_looked_at_is_a_note(tmp_path: Path) -> None:
    """The job is seen all the same."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    finding = glance(check(kill_switch=FilePath(loop)), pending()).findings[0]
    assert finding.status is Status.OK
    assert f"kill switch: {loop} cannot be read: Too many levels" in finding.details


def test_the_last_lines_of_a_dead_job(tmp_path: Path) -> None:
    """Twenty of them, at most 300 characters each, inert; others' bytes come out as escapes."""
    out = tmp_path / "-my log.out"
    lines = [b"line %c%c" % (65 + n // 10, 65 + n % 10) for n in range(30)]
    out.write_bytes(b"\n".join([*lines, b"x" * 999, b"\x1b[31mred\x07\xff\n"]))
    details = dead(out).details.splitlines()
    assert details[0] == f"last lines of {out}:"
    assert details[1] == "line BC"
    assert len(details) == 21
    assert len(details[-2]) == 300
    assert details[-1] == "red\\x07\\xff"


def test_the_last_lines_of_another_job_are_not_told_in_its_place(tmp_path: Path) -> None:
    """A fixed output path holds those of the job before; this one has written nothing."""
    out = tmp_path / "out"
    out.write_text("CUDA error: of the job of last week\n")
    began = ended().started
    assert began is not None
    os.utime(out, (began, began - 86400))
    details = dead(out, written=False).details
    assert "last week" not in details
    assert details.endswith("no output since it started: last written 1d before that")
    os.utime(out, (began, began))
    assert "last week" in dead(out, written=False).details


def test_of_a_progress_bar_the_last_lines_are_its_last(tmp_path: Path) -> None:
    """tqdm ends each by a return."""
    out = tmp_path / "out"
    out.write_bytes(b"".join(b"\r%3d%%|####| 1.2it/s" % n for n in range(99)) + b"\nKilled\n")
    assert dead(out).details.splitlines()[-2:] == [" 98%|####| 1.2it/s", "Killed"]


def test_the_last_lines_are_kept_with_the_alert(tmp_path: Path) -> None:
    """The file may be rotated or removed before somebody reads the mail."""
    out = tmp_path / "out"
    out.write_text("Traceback\n")
    writes(out)
    watch = Watch(check(users=[ME]))
    watch.look(job(user=ME))
    assert "Traceback" in watch.look(ends=[ended(stdout=str(out))]).details
    out.unlink()
    assert "Traceback" in watch.look(after=60).details


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "somebody's"])
def test_what_is_not_the_users_own_file_is_not_read(tmp_path: Path, kind: str) -> None:
    """A pipe would hang; a link to another's file would be mailed around by root."""
    path = tmp_path / kind
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_text("secret")
    finding = dead(path, "nobody" if kind == "somebody's" else ME)
    assert finding.status is Status.CRITICAL
    why = (
        "not to nobody|as nobody: Permission denied"
        if kind == "somebody's"
        else "not a regular file"
    )
    assert re.search(why, finding.details)
    assert "secret" not in finding.details


@pytest.mark.parametrize(
    ("pattern", "row"),
    [
        ("{folder}/%x-%j-%u.out", {"number": "10"}),
        ("%x-%j-%u.out", {"number": "10"}),
        ("slurm-18.out", {"number": "15_3", "job_id": "18", "array_id": "15"}),
    ],
)
def test_where_slurm_gives_the_pattern_the_file_is_found(
    tmp_path: Path, pattern: str, row: dict[str, Any]
) -> None:
    """As the user wrote it, from the working directory, and with an array's default name."""
    for name in (f"train-10-{ME}.out", "slurm-15_3.out"):
        (tmp_path / name).write_text("Traceback\n")
        writes(tmp_path / name)
    watch = Watch(check(users=[ME]))
    one = job(user=ME, workdir=str(tmp_path), **row)
    watch.look(one)
    end = ended(one.job_id, exit_code=1, stdout=pattern.format(folder=tmp_path))
    assert "Traceback" in watch.look(ends=[end]).details


@pytest.mark.parametrize("path", ["", "relative.out", "/no/such/file"])
def test_without_a_file_the_alert_has_no_last_lines(path: Any) -> None:
    """Nothing to read is nothing wrong."""
    assert dead(path).details == ""


def test_a_path_is_never_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it begins with."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "--version").write_text("of the training\n")
    files = JobFiles(5.0, 60.0, {})
    assert files.path_exists("--version", CHOSEN)
    assert not files.path_exists("--help", CHOSEN)
    assert files.read_tail("--version", 9, CHOSEN) == "training\n"
    assert files.read_tail("--version", 9, Whose(user=ME, owned=True)) == "training\n"
    assert files.read_tail("--help", 9, Whose(user=ME, owned=True)) is None


def test_a_mount_that_hangs_costs_one_child_and_no_more(fuse: Fuse) -> None:
    """The limit holds; while the child is stuck none is added; after that it is asked again."""
    path = str(fuse.point / "data")
    fuse.hold("lookup", "getattr")
    files = JobFiles(0.3, 60.0, {})
    with pytest.raises(CannotTell, match="does not answer"):
        files.path_exists(path, CHOSEN)
    with pytest.raises(CannotTell, match="still waits for it"):
        JobFiles(0.3, 60.0, files.hanging_by_path).path_exists(path, CHOSEN)
    (child,) = files.hanging_by_path.values()
    fuse.release()
    assert wait_gone(child)
    again = JobFiles(5.0, 60.0, files.hanging_by_path)
    assert again.path_exists(path, CHOSEN)
    assert again.hanging_by_path == {}


def test_a_proof_on_a_mount_that_hangs_costs_one_child_and_no_more(fuse: Fuse) -> None:
    """Neither finished nor dead can be said; the child that waits is remembered all the same."""
    fuse.hold("lookup", "getattr")
    watch = Watch(check(done_when=DoneWhen(file=FilePath(fuse.point / "data"))))
    watch.limit = 2.0
    said = [watch.look(after=60) for _ in range(2)]
    assert [finding.status for finding in said] == [Status.UNKNOWN] * 2
    assert "does not answer" in said[0].summary
    assert "still waits for it" in said[1].summary
    fuse.release()


def wait_gone(child: proc.StuckProcess) -> bool:
    deadline = time.monotonic() + 10
    while proc.still_stuck(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not proc.still_stuck(child)


def test_a_log_that_hangs_does_not_hold_up_the_news(fuse: Fuse) -> None:
    """The death is told without the last lines, and the stuck child is remembered."""
    fuse.hold("lookup", "getattr")
    watch = Watch(check(users=[ME]))
    watch.look(job(user=ME))
    finding = watch.look(ends=[ended(exit_code=1, stdout=str(fuse.point / "data"))])
    assert finding.status is Status.CRITICAL
    assert "does not answer" in finding.details
    assert list(watch.memory["stuck"]) == [str(fuse.point / "data")]
    assert "still waits" in watch.look(after=60).details
    fuse.release()


def test_followers_are_counted_and_not_shown(tmp_path: Path) -> None:
    """One rank fails and thousands say so: the first of them, and the last of what went well."""
    out = tmp_path / "out"
    steps = [f"iteration {n} loss 2.{n}" for n in range(400)]
    cause = "[rank17]: RuntimeError: CUDA error: an illegal memory access"
    follow = [
        f"[rank{n}]: torch.distributed.DistBackendError: NCCL error, aborted" for n in range(900)
    ]
    out.write_text("\n".join([*steps, cause, *follow, "srun: error: node-3: task 17: Exited"]))
    finding = dead(out)
    tail = finding.details.splitlines()[1:]
    assert tail == [*steps[-5:], cause, f"{follow[0]}   (and 899 more like it)", tail[-1]]
    assert finding.values["last_step"] == "iteration 399"


def test_the_cause_is_the_first_line_that_names_an_error(tmp_path: Path) -> None:
    """Not the progress before it, and not what follows."""
    out = tmp_path / "out"
    out.write_text("iteration 3 error rate 0.1\n[rank2]: ValueError: bad batch\nRuntimeError: x\n")
    assert dead(out).values["cause"] == "[rank2]: ValueError: bad batch"


@pytest.mark.parametrize(
    ("path", "pattern", "same"),
    [
        ("/logs/a-7.log", "/logs/a-%j.log", True),
        ("/logs/a-7-3.log", "/logs/%x-%j-%4t.log", True),
        ("/logs/./a.log", "/logs/a.log", True),
        ("/logs/7/a.log", "/logs/%j/a.log", True),
        ("/logs/a/7.log", "/logs/%x.log", False),
        ("/logs/aba", "/logs/ab%xba", False),
        ("/logs/abba", "/logs/ab%xba", True),
        ("/logs/a-7.err", "/logs/a-%j.log", False),
        ("/logs/b", "/logs/a", False),
        ("/" + "a" * 4000 + "b", "/" + "a%x" * 30 + "c", False),
    ],
)
def test_a_path_is_what_a_pattern_stands_for(path: str, pattern: str, same: bool) -> None:
    """The last one, as a regular expression, found no end."""
    from sentinel.checks.job.pulse import _may_be_same_path

    assert _may_be_same_path(path, pattern) is same
