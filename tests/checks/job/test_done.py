"""What tells a training that has finished from one that has died."""

import os
import pwd
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sentinel.checks.job.settings import DoneWhen
from sentinel.core.cluster import JobEnd
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import clock_text
from tests.checks.job import making
from tests.checks.job.making import Watch, check, ended, glance, job, pending

OK, WARNING, CRITICAL = Status.OK, Status.WARNING, Status.CRITICAL


def by_file(path: Any) -> DoneWhen:
    return DoneWhen(file=FilePath(path))


def by_log(path: Any, pattern: str) -> DoneWhen:
    return DoneWhen(log=FilePath(path), pattern=re.compile(pattern))


BY_STATE = DoneWhen(state="completed")


def test_the_file_is_there(tmp_path: Path) -> None:
    """Without it nothing running is a death."""
    one = check(done_when=by_file(tmp_path / "DONE"))
    assert glance(one).findings[0].status is CRITICAL
    (tmp_path / "DONE").touch()
    finding = glance(one).findings[0]
    assert finding.status is OK
    assert finding.summary == f"finished: {tmp_path}/DONE is there"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("iteration 9\ntraining finished \x1b[0m\n", OK),
        ("iteration 9\n", CRITICAL),
        ("", CRITICAL),
        ("finished\n" + "x" * 2**20, CRITICAL),
        ("x" * 2**20 + "\nfinished\n", OK),
        ("finished\r", OK),
    ],
)
def test_a_line_of_the_log(tmp_path: Path, text: str, status: Status) -> None:
    """It is looked for in the last MiB: the end of a training is at the end of its log."""
    log = tmp_path / "main log.txt"
    log.write_text(text, newline="")
    finding = glance(check(done_when=by_log(log, "fini(shed)"))).findings[0]
    assert finding.status is status
    assert finding.summary.isprintable()


def test_a_log_that_is_not_there_proves_nothing(tmp_path: Path) -> None:
    """No file, no end."""
    assert glance(check(done_when=by_log(tmp_path / "no", "x"))).findings[0].status is CRITICAL


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (ended(state="COMPLETED", exit_code=0), OK),
        (ended(state="COMPLETED"), OK),
        (ended(state="COMPLETED", exit_code=0, signal=9), CRITICAL),
        (ended(state="COMPLETED", exit_code=1), CRITICAL),
        (ended(state="FAILED", exit_code=0), CRITICAL),
        (ended(state="CANCELLED", exit_code=0), CRITICAL),
        (ended(state="TIMEOUT"), CRITICAL),
    ],
)
def test_the_last_job_completed(end: JobEnd, status: Status) -> None:
    """COMPLETED with exit code 0 and no signal, and nothing less."""
    watch = Watch(check(done_when=BY_STATE))
    watch.look(job())
    assert watch.look(ends=[end]).status is status
    assert watch.look(after=7200).status is status


def test_the_last_job_is_the_one_that_began_last() -> None:
    """The end of an earlier one, or of one that never began, proves nothing."""
    watch = Watch(check(done_when=BY_STATE))
    never = ended("13", "CANCELLED", nodes="")
    watch.look(job("10"), job("12"), pending("13"))
    done = ended("10", "COMPLETED", exit_code=0, started=100)
    assert watch.look(ends=[done, ended("12", started=200), never]).status is CRITICAL
    watch = Watch(check(done_when=BY_STATE))
    watch.look(job("10"), job("12"), pending("13"))
    assert watch.look(ends=[done, ended("12", started=50), never]).status is OK


def test_a_job_that_ran_between_two_looks_was_the_last_one() -> None:
    """It was only ever seen waiting, and Slurm knows the nodes on which it has completed."""
    watch = Watch(check(done_when=BY_STATE))
    watch.look(pending("11"))
    finding = watch.look(ends=[ended("11", "COMPLETED", exit_code=0)])
    assert finding.status is OK
    assert finding.summary == "finished: job 11 COMPLETED with exit code 0"
    watch = Watch(check(done_when=BY_STATE))
    watch.look(pending("11"))
    dead = watch.look(ends=[ended("11", exit_code=1)])
    assert dead.status is CRITICAL
    assert (
        f"job 11 FAILED with exit code 1 on node-[0-3] {clock_text(making.NOW - 300, making.NOW)} after running for 1h"
        in dead.summary
    )


def test_the_last_job_is_not_the_one_that_left_last() -> None:
    """One that began earlier may leave the queue later."""
    watch = Watch(check(done_when=BY_STATE))
    watch.look(job("10", started=100), job("12", started=200))
    second = ended("12", "COMPLETED", exit_code=0, started=200)
    watch.look(job("10", started=100), ends=[second])
    assert watch.look(ends=[ended("10", started=100)]).status is OK


def test_a_job_that_completed_is_not_the_end_while_another_runs() -> None:
    """In a train the first has completed and nothing is behind the second."""
    watch = Watch(check(done_when=BY_STATE, queued=1))
    watch.look(job("10"), pending("11"))
    finding = watch.look(job("11"), ends=[ended("10", "COMPLETED", exit_code=0)])
    assert finding.status is WARNING


def test_a_single_look_cannot_know_how_the_last_job_ended() -> None:
    """Neither finished nor dead: it was not there to see it."""
    with pytest.raises(CannotTell, match="single look"):
        glance(check(done_when=BY_STATE))


def test_the_service_that_has_never_seen_a_job_says_so() -> None:
    """A wrong name must not be silent for ever."""
    assert "no such job" in Watch(check(done_when=BY_STATE)).look().summary


def test_an_end_that_slurm_cannot_tell_yet_is_neither() -> None:
    """Unknown, and the next run asks again; what was seen is remembered, so it is not unknown for
    ever."""
    watch = Watch(check(done_when=BY_STATE))
    watch.look(job())
    finding = watch.look(ends=[ended(state="COMPLETING")])
    assert finding.status is Status.UNKNOWN
    assert "does not say yet how job 10 ended" in finding.summary


def test_who_has_finished_needs_nothing_queued(tmp_path: Path) -> None:
    """The last job of a finished training has nobody behind it, and held rests are no alarm."""
    (tmp_path / "DONE").touch()
    one = check(done_when=by_file(tmp_path / "DONE"), queued=1)
    assert glance(one, job()).findings[0].status is OK
    rest = glance(one, pending(reason="JobHeldUser")).findings[0]
    assert rest.status is OK
    assert "still queued: job 11 (JobHeldUser" in rest.summary


def test_a_file_that_cannot_be_looked_at_decides_nothing(tmp_path: Path) -> None:
    """Nothing runs: neither finished nor dead. While one runs it is a note."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    one = check(done_when=by_file(loop), queued=1)
    with pytest.raises(CannotTell, match="Too many levels"):
        glance(one)
    finding = glance(one, job()).findings[0]
    assert finding.status is WARNING
    assert "Too many levels" in finding.details


PROGRESS = "iteration 299 loss 2.2\niteration 300 loss 2.1\n"


def write_output(path: Path, said: str, at: int) -> None:
    """As a job that ended `at` (epoch seconds) left it: older output is not its own."""
    path.write_text(said)
    os.utime(path, (at, at))


def completed_job(folder: Path, said: str | None, before: list[JobEnd], **settings: Any) -> Finding:
    """Job 11 of this user, COMPLETED with exit code 0 after it said this, and the jobs `before` it."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    watch, out = Watch(check(users=[me], **settings)), folder / "out"
    now = watch.clock.now().wall // 10**6
    watch.look(*(job(one.job_id, user=me, started=one.started) for one in before))
    watch.look(job("11", user=me, started=now - 100, submitted=now - 9000), after=60, ends=before)
    if said is not None:
        write_output(out, said, now + 50)
    end = ended("11", "COMPLETED", exit_code=0, stdout=str(out), started=now - 100, ended=now + 50)
    return watch.look(after=60, ends=[end])


def an_end(state: str, **more: Any) -> JobEnd:
    """Job 10 ended an hour before job 11 did."""
    return ended("10", state, started=1000, ended=2000, **more)


@pytest.mark.parametrize(
    ("said", "before", "settings", "status"),
    [
        (PROGRESS, [], {}, WARNING),
        (PROGRESS + "early stopping: no better loss for 3 epochs\n", [], {}, WARNING),
        (PROGRESS, [an_end("FAILED", exit_code=1)], {}, WARNING),
        (PROGRESS, [an_end("COMPLETED", exit_code=0)], {}, CRITICAL),
        (PROGRESS, [], {"queued": 1}, CRITICAL),
        (PROGRESS, [], {"done_when": DoneWhen(file=FilePath("/nowhere/DONE"))}, CRITICAL),
        (PROGRESS + "stopping: kill switch /scratch/STOP is there\n", [], {}, CRITICAL),
        (PROGRESS + "[rank0] INFO stopping: got SIGUSR1\nsaved\n", [], {}, CRITICAL),
        (PROGRESS + "RuntimeError: NCCL communicator was aborted\n", [], {}, CRITICAL),
        (PROGRESS + "srun: error: node-2: task 9: Exited with exit code 1\n", [], {}, CRITICAL),
        (PROGRESS + "UserWarning: 2 workers failed to close\nsaved\n", [], {}, WARNING),
        ("ok\n", [], {}, CRITICAL),
        ("", [], {}, CRITICAL),
        (None, [], {}, CRITICAL),
    ],
    ids=[
        "clean",
        "early stopping",
        "the one before failed",
        "the one before ended so, too",
        "another has to follow",
        "what finishes it is said",
        "stopped by the guard",
        "stopped by the guard of a rank",
        "an error, and exit code 0",
        "a word of the launcher",
        "a warning",
        "its log is elsewhere",
        "no output",
        "output that is not there",
    ],
)
def test_exit_code_0_with_clean_output_is_information(
    tmp_path: Path, said: str | None, before: list[JobEnd], settings: Any, status: Status
) -> None:
    """It is no alarm where all of it was seen; anything else may be a lost night."""
    finding = completed_job(tmp_path, said, before, **settings)
    assert finding.status is status
    assert finding.tell_once is (status is WARNING)
    assert finding.patience == 600.0
    if status is WARNING:
        assert finding.summary.startswith("it may have finished, and nothing is queued: job 11")
        assert "`done_when: {state: completed}`" in finding.details


def test_a_step_that_failed_is_no_clean_end(tmp_path: Path) -> None:
    """DerivedExitCode: the script went on after srun had failed, and ended with 0."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    write_output(tmp_path / "out", PROGRESS, making.NOW)
    watch = Watch(check(users=[me]))
    watch.look(job(user=me))
    end = ended(state="COMPLETED", exit_code=0, step_failed="1:0", stdout=f"{tmp_path}/out")
    finding = watch.look(ends=[end])
    assert (finding.status, finding.values["last_step"]) == (CRITICAL, "iteration 300")


def test_a_gap_that_was_followed_once_is_told_as_one(tmp_path: Path) -> None:
    """A chain whose jobs end with 0: the one that nothing follows is a broken chain."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    watch, out = Watch(check(users=[me])), tmp_path / "out"
    now = watch.clock.now().wall // 10**6
    write_output(out, PROGRESS, now + 200)

    def over(number: str, at: int) -> JobEnd:
        return ended(
            number, "COMPLETED", exit_code=0, stdout=str(out), started=now - 60, ended=now + at
        )

    watch.look(job("10", user=me, started=now - 60, submitted=now - 900))
    assert watch.look(after=60, ends=[over("10", 50)]).status is WARNING
    watch.look(job("11", user=me, started=now + 100, submitted=now + 90), after=60)
    last = structs.replace(over("11", 170), started=now + 100)
    assert watch.look(after=60, ends=[last]).status is CRITICAL


def test_a_job_that_was_queued_all_along_followed_it_too(tmp_path: Path) -> None:
    """Jobs of a chain that is submitted at once tell no delay; the last one may be one too few."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    watch, out = Watch(check(users=[me])), tmp_path / "out"
    now = watch.clock.now().wall // 10**6
    write_output(out, PROGRESS, now + 200)
    times = {"submitted": now - 9000}
    watch.look(job("10", user=me, started=now - 60, **times), pending("11", user=me, **times))
    first = ended("10", "COMPLETED", exit_code=0, started=now - 60, ended=now + 50)
    watch.look(job("11", user=me, started=now + 55, **times), after=60, ends=[first])
    last = ended("11", "COMPLETED", exit_code=0, stdout=str(out), started=now + 55, ended=now + 110)
    assert watch.look(after=60, ends=[first, last]).status is CRITICAL
