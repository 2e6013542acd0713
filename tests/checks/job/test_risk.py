"""A death says what it costs, where the settings say where checkpoints lie."""

import os
from pathlib import Path

import pytest

from sentinel.checks.checkpoint import CheckpointPlace
from sentinel.core.cluster import JobEnd
from sentinel.core.settings import FilePath
from tests.checks.job.making import NOW, Watch, check, ended, glance, job, pending


@pytest.fixture
def saves(tmp_path: Path) -> Path:
    """A folder with one checkpoint, written 25 minutes ago: 20 before the death."""
    shard = tmp_path / "saves" / "step_5" / "shard"
    shard.parent.mkdir(parents=True)
    shard.write_text("x")
    os.utime(shard, (0, NOW - 1500))
    return tmp_path / "saves"


@pytest.mark.parametrize(
    ("end", "cost"),
    [
        (ended(), "20m of work since checkpoint step_5 at risk"),
        (ended(started=NOW - 900, ended=NOW - 300), "10m of work since checkpoint step_5 at risk"),
        (ended(ended=None), "25m of work since checkpoint step_5 at risk"),
    ],
    ids=["counted until its end", "never more than it ran", "until it was noticed"],
)
def test_a_death_says_what_it_costs(saves: Path, end: JobEnd, cost: str) -> None:
    """From the newest complete checkpoint; days later it is still the same."""
    watch = Watch(check(checkpoints=CheckpointPlace(path=FilePath(saves))))
    watch.look(job())
    first = watch.look(ends=[end])
    assert first.summary.endswith(f"; {cost}")
    assert watch.look(after=7200, ends=[end]).summary.endswith(f"; {cost}")


def test_what_lives_or_was_never_seen_costs_nothing(saves: Path) -> None:
    """A queue that is short, a job that waits, a name that is wrong."""
    one = check(checkpoints=CheckpointPlace(path=FilePath(saves)), queued=1)
    for jobs in ([job()], [pending()], []):
        assert "at risk" not in glance(one, *jobs).findings[0].summary


def test_a_folder_that_cannot_be_read_is_told_beside_the_death(tmp_path: Path) -> None:
    """It hides nothing."""
    watch = Watch(check(checkpoints=CheckpointPlace(path=FilePath(tmp_path / "none"))))
    watch.look(job())
    said = watch.look(ends=[ended()]).summary
    assert said.startswith("job 10 FAILED")
    assert "; work at risk is not known: " in said
