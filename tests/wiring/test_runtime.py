"""What an engine is told of the place where it runs."""

import os
import pwd

import pytest

from sentinel.homes import describe_setup_place


def test_people_are_told_where_the_commands_of_sentinel_are_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job of a chain runs on another node every hour: nobody logs in there."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    host = os.uname().nodename.partition(".")[0]
    assert describe_setup_place() == f"on {host}, as {user}"
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert describe_setup_place() == f"on a login node, as {user}"
