"""Whole trainings replayed at accelerated time; the full table is benchmarks/bench_log_replay."""

import re
from pathlib import Path
from random import Random

import pytest

from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Share
from tests.checks.log.test_check import Watch
from tests.replay.shapes import SHAPES, Shape, habits, job
from tests.replay.simulate import EVERY, HOUR, training


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_training_that_is_well_raises_no_alarm_and_its_hangs_all_do(shape: Shape) -> None:
    """Restarts, checkpoints, evaluations that nobody announces, buffers, slow file servers and
    wall clocks that jump included; what was learned finds a hang sooner than 20 minutes do.
    """
    found = training(shape, days=2, hang_share=0.5, seed=1)
    assert found.false == {}
    told = [*found.hangs, *found.paused, *found.young]
    assert told
    assert all(value is not None for one in told for value in one.values())
    assert all(one["auto"] < one["20m"] for one in found.hangs)  # type: ignore[operator]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_check_itself_agrees_on_a_real_file(shape: Shape, tmp_path: Path) -> None:
    """An hour of each trainer, written to a disk and looked at once a minute, then a hang."""
    log, random = tmp_path / "log", Random(2)
    lines = job(shape, habits(shape, random), 0, 1.5 * HOUR, random)
    pattern = re.compile(shape.progress)
    watch = Watch(path=FilePath(log), progress=pattern, slower_than=Share(50), stale_after=900.0)
    log.touch()
    upcoming = next(lines, None)
    worst: list[Status] = []
    for minute in range(0, int(HOUR / EVERY), 3):
        with log.open("a") as file:
            while upcoming and upcoming[0] <= minute * EVERY:
                file.write(upcoming[1])
                upcoming = next(lines, None)
        worst.append(watch.report(3).status)
    assert set(worst[8:]) == {Status.OK}
    statuses = [watch.report(3).status for _ in range(11)]
    assert statuses[3] is Status.OK
    assert statuses[-1] is Status.CRITICAL
