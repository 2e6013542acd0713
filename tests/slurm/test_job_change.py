"""What the name of a job leads to is made with the rights of the job's user."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.clock import SystemClock
from sentinel.core.actions import Answer, Reply
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job_change import WorkingHands
from sentinel.slurm.snapshot import SlurmSnapshot


@pytest.fixture
def folder_of_root() -> Iterator[Path]:
    """Nobody else may write on the way to it, as to a folder that an administrator made."""
    with tempfile.TemporaryDirectory(dir="/opt") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.root
@pytest.mark.parametrize(("literal", "made"), [(True, True), (False, False)])
def test_a_file_that_a_jobs_name_decides_is_made_with_the_users_rights(
    folder_of_root: Path, literal: bool, made: bool
) -> None:
    """`killswitch: /opt/stop/%x.stop`: a job of mallory's with the name of alice's training would stop
    hers. The control is a path that the operator wrote out."""
    snapshot = SlurmSnapshot(SlurmClient(), SystemClock(), users=(), max_age=5.0)
    hands = WorkingHands(snapshot, (), None, evidence=lambda job: Reply(Answer.ACCEPTED))
    file = folder_of_root / "alice-train.stop"
    reply = hands.create(str(file), "sentinel: job 7: hang", "nobody", literal=literal)
    assert file.exists() is made
    assert (reply.answer is Answer.ACCEPTED) is made
    assert made or "Permission denied" in reply.text
