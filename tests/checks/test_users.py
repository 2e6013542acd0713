"""Whose jobs are watched."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from sentinel.checks.users import watched
from sentinel.core.errors import CannotTell
from tests.checks.job.making import check, glance

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
    assert watched(users, 5.0) == names
    assert check(users=users).jobs_of() == names


def test_a_group_includes_those_whose_primary_group_it_is() -> None:
    """They are in no list of members: getent group omits them."""
    found = watched([f"group:{MY_GROUP}", "alice"], 5.0)
    assert found is not None
    assert {ME, "alice", *grp.getgrnam(MY_GROUP).gr_mem} <= found


def test_a_group_that_does_not_exist_is_no_empty_group() -> None:
    """An empty one would say that the job does not run."""
    with pytest.raises(CannotTell, match="no group 'no-such-group'"):
        glance(check(users=["group:no-such-group"]))


def test_a_directory_service_that_hangs_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """getent runs in a child with a limit."""
    slow = tmp_path / "getent"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(CannotTell):
        watched(["group:six"], 0.2)


def test_a_directory_service_that_fails_is_no_empty_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only exit code 2 of getent says that there is no such entry."""
    broken = tmp_path / "getent"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(CannotTell, match="exit code 3"):
        watched(["group:six"], 5.0)
