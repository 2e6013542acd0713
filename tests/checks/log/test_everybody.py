"""Many trainings in one check, by one name of many users, a pattern or a size: each is judged and
told by itself."""

import os
import pwd
import re
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.log import Log
from sentinel.checks.trainings import UNSEEN_FOR_TIME
from sentinel.core.cluster import JobRun
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from sentinel.testing import START, FixedSlurm, context
from tests.checks.log.jobs import job
from tests.checks.log.test_check import Watch

ANN, BOB = pwd.getpwuid(os.geteuid()).pw_name, str(os.geteuid())
"""Two names of who runs the tests: a log is read with the rights of its job's user."""

OK, CRITICAL, UNKNOWN = Status.OK, Status.CRITICAL, Status.UNKNOWN


def look(watch: Watch, minutes: float = 0, limit: float = 10.0) -> dict[str, Finding]:
    return {f.subject: f for f in watch.report(minutes, limit=limit).findings}


def both(folder: Path) -> Watch:
    """ANN's and BOB's `train`, each with a log of its own."""
    for user in (ANN, BOB):
        (folder / f"{user}.log").write_text("begins\n")
    jobs = (job(user=ANN), job(id="8", job_id="8", user=BOB))
    path = FilePath(folder / "%u.log")
    return Watch(*jobs, path=path, job="train", users=["*"], ask_nodes=False)


def test_a_hang_of_one_is_told_beside_the_progress_of_another(tmp_path: Path) -> None:
    """One name, two subjects, each with its user."""
    watch = both(tmp_path)
    look(watch)
    with (tmp_path / f"{BOB}.log").open("a") as log:
        log.write("goes on\n")
    found = look(watch, 20)
    assert {s: f.status for s, f in found.items()} == {f"{ANN}/train": CRITICAL, f"{BOB}/train": OK}
    assert found[f"{ANN}/train"].labels["user"] == ANN


def test_whose_job_has_ended_is_said_once_and_then_not_spoken_of(tmp_path: Path) -> None:
    """What was learned of it stays."""
    watch = both(tmp_path)
    look(watch)
    watch.jobs = watch.jobs[:1]
    found = look(watch, 1)
    assert found[f"{BOB}/train"].summary.startswith("no job of exactly this name runs")
    assert [*look(watch, 1)] == [f"{ANN}/train"]
    assert watch.memory["trainings"][f"{BOB}/train"]["places"]
    watch.jobs = ()
    look(watch, 1)
    assert {s: f.status for s, f in look(watch, 1).items()} == {"train": OK}


def test_whose_logs_there_was_no_time_for_is_unknown(tmp_path: Path) -> None:
    """Its alert stays as it was, and the next run begins anew."""
    watch = both(tmp_path)
    look(watch)
    found = look(watch, 20, limit=1.1)
    assert {s: f.summary for s, f in found.items()} == dict.fromkeys(
        (f"{ANN}/train", f"{BOB}/train"), UNSEEN_FOR_TIME
    )
    assert {f.status for f in found.values()} == {UNKNOWN}
    assert {f.status for f in look(watch).values()} == {CRITICAL}


def two(folder: Path, **settings: Any) -> Watch:
    """`flag-a` and `flag-b` of one user, each with a log of its own, and a third with another name."""
    names = ("flag-a", "flag-b", "other")
    for name in names:
        (folder / f"{name}.log").write_text("begins\n")
    jobs = (
        job(id=n, job_id=n, name=name, user=ANN, node_count=int(n))
        for n, name in zip("789", names, strict=True)
    )
    return Watch(*jobs, path=FilePath(folder / "%x.log"), ask_nodes=False, **settings)


def test_each_training_that_fits_a_pattern_is_a_subject(tmp_path: Path) -> None:
    """One hangs beside one that goes on; the name that does not fit is not looked at."""
    watch = two(tmp_path, match=re.compile("flag-.*"), users=[ANN])
    look(watch)
    with (tmp_path / "flag-b.log").open("a") as log:
        log.write("goes on\n")
    found = look(watch, 20)
    assert {s: f.status for s, f in found.items()} == {"flag-a": CRITICAL, "flag-b": OK}
    watch.jobs = ()
    assert all("no job of exactly this name runs" in f.summary for f in look(watch, 1).values())
    assert [(one, f.summary[:21]) for one, f in look(watch, 1).items()] == [
        ("flag-.*", "no job that fits runs")
    ]


def test_a_size_alone_watches_everybody_s_large_jobs(tmp_path: Path) -> None:
    """By user and name; where none is large, nothing is said, for that is no trouble."""
    watch = two(tmp_path, min_nodes=8)
    assert watch.check.jobs_of() is None
    assert {*look(watch)} == {f"{ANN}/flag-b", f"{ANN}/other"}
    watch = two(tmp_path, min_nodes=99)
    assert look(watch) == {}
    gpus = FixedSlurm(jobs=watch.jobs, gpus={"7": 64, "8": 63, "9": 8})
    check = Log(path=watch.check.path, min_gpus=64, ask_nodes=False)
    assert [f.subject for f in check.run(context(gpus)).findings] == [f"{ANN}/flag-a"]


def test_a_list_that_leaves_out_one_that_runs_is_not_believed(tmp_path: Path) -> None:
    """The other is there, so the list is not empty: Slurm is asked once more for the one missing."""
    watch = two(tmp_path, match=re.compile("flag-.*"), users=[ANN])
    look(watch)
    runs = {"7": JobRun(id="7", job_id="7", name="flag-a", user=ANN, state="RUNNING", exit_code=0)}
    cut = FixedSlurm(jobs=watch.jobs[1:], ends=runs)
    with pytest.raises(CannotTell, match="job 7 runs and is not in the list"):
        watch.check.run(context(cut, now=START, memory=watch.memory))


@pytest.mark.parametrize("found", [{"job": "flag"}, {"match": re.compile("flag")}])
def test_another_job_of_that_name_does_not_make_the_list_whole(
    tmp_path: Path, found: dict[str, Any]
) -> None:
    """Two jobs of one training ran, and one of them is cut off; one that has ended is believed."""
    watch = two(tmp_path, users=[ANN], **found)
    (tmp_path / "flag.log").write_text("begins\n")
    watch.jobs = tuple(replace(job, name="flag") for job in watch.jobs)
    look(watch)
    for state in ("RUNNING", "COMPLETED"):
        run = JobRun(id="7", job_id="7", name="flag", user=ANN, state=state, exit_code=0)
        slurm = FixedSlurm(jobs=watch.jobs[1:], ends={"7": run})
        seen = context(slurm, now=START, memory=watch.memory)
        if state == "RUNNING":
            with pytest.raises(CannotTell, match="job 7 runs and is not in the list"):
                watch.check.run(seen)
        else:
            assert watch.check.run(seen).findings[0].status is OK


def test_a_named_job_that_is_too_small_is_no_hole_in_the_list(tmp_path: Path) -> None:
    """Slurm says that it runs, and so does the list: it is only not meant."""
    watch = two(tmp_path, job="flag-a", min_nodes=8, users=[ANN])
    runs = {"7": JobRun(id="7", job_id="7", name="flag-a", user=ANN, state="RUNNING")}
    report = watch.check.run(context(FixedSlurm(jobs=watch.jobs, ends=runs)))
    assert [(f.subject, f.status) for f in report.findings] == [("flag-a", OK)]


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    """A log for each training, and one way to say which."""
    with pytest.raises(Invalid, match="exclude each other"):
        Log(job="a", match=re.compile("b"))
    with pytest.raises(Invalid, match="one log of many trainings; write %x or %j in it"):
        Log(match=re.compile("b"), path=FilePath("/x/log"))
    with pytest.raises(Invalid, match="cannot be negative"):
        Log(job="a", min_gpus=-1)
    with pytest.raises(Invalid, match="name the `job`, or `match` it"):
        Log(min_gpus=64, on_stale=["cancel"])


@pytest.mark.long
def test_many_logs_of_one_user_cost_another_user_no_look(tmp_path: Path) -> None:
    """One subject for the jobs of a team: forty of BOB's with 256 KiB each stand before ANN's, and there
    is time for some of them. The next run goes on with those that nobody has looked at."""
    line = "[rank1]: iteration 12/1000 | loss: 1.0 | grad norm: 0.1 | Error: x CUDA error: y\n"
    jobs = [job(id=str(n), job_id=str(n), user=BOB) for n in range(100, 140)]
    for one in jobs:
        (tmp_path / f"{one.id}.log").write_text(line * (2**18 // len(line)))
    (tmp_path / "99.log").write_text("iteration 1\n")
    mine = job(id="99", job_id="99", user=ANN)
    path = FilePath(tmp_path / "%j.log")
    watch = Watch(*jobs, mine, path=path, job="train", users=[ANN, BOB], ask_nodes=False)
    began = time.monotonic()
    Watch(*jobs[:4], path=path, job="train", users=[BOB], ask_nodes=False).report(0, limit=60)
    limit = 5 * (time.monotonic() - began)  # for twenty of forty, however busy the machine is
    first = watch.report(0, limit=limit)
    assert 0 < len(first.coverage.unseen) < 40
    assert "99" not in first.coverage.unseen
    second = watch.report(1, limit=limit)
    assert "99" not in second.coverage.unseen
    assert set(first.coverage.unseen) - set(second.coverage.unseen)
