"""Whose jobs are watched."""

import grp
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.checkpoint import CheckpointCheck
from sentinel.checks.log import Log
from sentinel.checks.users import running_jobs, watched_users
from sentinel.core.cluster import JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.testing import FixedSlurm, context
from tests.checks.job.making import check, glance
from tests.checks.job.making import job as made

ME = pwd.getpwuid(os.geteuid()).pw_name
MY_GROUP = grp.getgrgid(pwd.getpwnam(ME).pw_gid).gr_name


@pytest.mark.parametrize(
    ("users", "names"),
    [
        ([], {ME}),
        (["alice"], {"alice"}),
        (["alice", "bob"], {"alice", "bob"}),
        (["*"], None),
        (["alice", "*"], None),
    ],
)
def test_names(users: list[str], names: set[str] | None) -> None:
    """Nobody named: who runs sentinel. A star: everybody."""
    assert watched_users(users, 5.0) == names
    assert check(users=users).jobs_of() == names


def test_a_group_includes_those_whose_primary_group_it_is() -> None:
    """They are in no list of members: getent group omits them."""
    found = watched_users([f"group:{MY_GROUP}", "alice"], 5.0)
    assert found is not None
    assert {ME, "alice", *grp.getgrnam(MY_GROUP).gr_mem} <= found


def test_a_group_that_does_not_exist_is_no_empty_group() -> None:
    """An empty one would say that the job does not run."""
    with pytest.raises(CannotTell, match="no group 'no-such-group'"):
        glance(check(users=["group:no-such-group"]))


def test_a_name_in_full_forges_no_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody may choose it (chfn); only a newline ends a row of getent."""
    fake = tmp_path / "getent"
    fake.write_text(
        "#!/bin/sh\n"
        'case $1 in group) echo "team:x:900:alice" ;;\n'
        "*) printf 'alice:x:1:900:A:/:/\\nmallory:x:2:2:M\\342\\200\\250bob:x:3:900:B:/:/\\n' ;; esac\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert watched_users(["group:team"], 5.0) == {"alice"}


def test_a_directory_service_that_hangs_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """getent runs in a child with a limit."""
    slow = tmp_path / "getent"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(CannotTell):
        watched_users(["group:six"], 0.2)


def test_a_directory_service_that_fails_is_no_empty_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only exit code 2 of getent says that there is no such entry."""
    broken = tmp_path / "getent"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(CannotTell, match="exit code 3"):
        watched_users(["group:six"], 5.0)


@pytest.mark.parametrize(("before", "one_shot"), [(True, False), (False, True)])
def test_a_list_that_lacks_a_job_is_not_believed_the_first_time(
    before: bool, one_shot: bool
) -> None:
    """What slurmctld remembers is asked; after a look without it, and for others' jobs, it is not."""
    there = JobRun(job_id="7", id="7", state="RUNNING", name="train", user=ME)
    slurm = FixedSlurm(jobs=[], ends={"7": there})
    ctx = context(slurm, one_shot=one_shot)
    with pytest.raises(CannotTell, match="job 7 runs and is not in the list"):
        running_jobs(ctx, "train", [], before=before)
    assert running_jobs(context(slurm), "train", []) == []
    assert running_jobs(ctx, "train", ["eve"], before=before) == []
    assert running_jobs(ctx, "other", [], before=before) == []


def test_a_state_that_is_not_known_is_no_end() -> None:
    """Unless another one of the name runs."""
    odd = made("7", "HIBERNATING", user=ME)
    runs = made("8", user=ME)
    with pytest.raises(
        CannotTell, match="job 7 is HIBERNATING, a state that sentinel does not know"
    ):
        running_jobs(context(FixedSlurm(jobs=[odd])), "train", [])
    assert running_jobs(context(FixedSlurm(jobs=[odd, runs])), "train", []) == [runs]


@pytest.mark.parametrize(
    "watching",
    [
        Log(job="train", users=["root"], path=FilePath("/nowhere/log")),
        CheckpointCheck(job="train", users=["root"], path=FilePath("/nowhere")),
    ],
)
def test_a_list_without_the_training_is_not_believed_at_the_first_look(watching: Any) -> None:
    """It may be cut at a whole record. Once Slurm has said twice that none runs, it is asked once."""
    run = JobRun(job_id="7", id="7", name="train", user="root", state="RUNNING", source="squeue")
    with pytest.raises(CannotTell, match="the list is not whole"):
        watching.run(context(FixedSlurm(jobs=[], ends={"7": run})))
    idle = watching.run(context(FixedSlurm(jobs=[])))
    again = watching.run(context(FixedSlurm(jobs=[], ends={"7": run}), memory=idle.memory))
    assert (idle.status, again.status) == (Status.OK, Status.OK)
