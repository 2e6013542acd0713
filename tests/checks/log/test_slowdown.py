"""Rules of telling that a training has become a little slower."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from sentinel.checks.log.scan import scan_text
from sentinel.checks.log.slowdown import (
    BATCH_STEPS,
    MAX_KEPT_BATCHES,
    MIN_KNOWN_BATCHES,
    StepTimeTrend,
    add_step_times,
    describe_slowdown,
)
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.testing import START
from tests.checks.log.test_check import ITERATION, Watch, mine
from tests.checks.log.test_scan import patterns

REFERENCE = (MIN_KNOWN_BATCHES + 1) * BATCH_STEPS


def steps(seconds: float, count: int, noise: float = 0.01, seed: int = 1) -> list[float]:
    """So many step times; every twentieth is a straggler or a checkpoint."""
    random = Random(seed)
    return [
        seconds * (5 if random.random() < 0.05 else random.gauss(1, noise)) for _ in range(count)
    ]


def run(
    pace: StepTimeTrend, seconds: list[float], job: str = "1", nodes: str = "n[1-4]"
) -> StepTimeTrend:
    """One step time a second."""
    for count, one in enumerate(seconds):
        pace = add_step_times(pace, [one], shift_instant(START, count), job, nodes)
    return pace


@pytest.mark.parametrize(
    ("noise", "share", "told"),
    [
        pytest.param(0.01, 1.05, True, id="five percent"),
        pytest.param(0.025, 1.05, True, id="five percent in noise"),
        pytest.param(0.01, 1.5, True, id="half as slow again"),
        pytest.param(0.01, 1.015, False, id="too little"),
        pytest.param(0.01, 0.9, False, id="faster"),
        pytest.param(0.3, 1.05, False, id="drowned"),
    ],
)
def test_a_change_is_told_within_200_step_times(noise: float, share: float, told: bool) -> None:
    """With stragglers and checkpoints in it."""
    pace = run(StepTimeTrend(), steps(4.0, 2 * REFERENCE, noise))
    assert not pace.told
    after = run(pace, steps(4.0 * share, 200, noise, seed=2))
    assert after.told is told
    assert after.slowdown_share == pytest.approx(share - 1 if told else 0, abs=0.02)
    assert pace.least_share >= 0.03
    assert (pace.least_share > 0.05) is (noise == 0.3)


def test_nothing_is_told_before_there_is_a_reference() -> None:
    """And the first batch of a job, which compiles, is none of it."""
    slow = run(StepTimeTrend(), steps(8.0, BATCH_STEPS))
    assert slow.fast == ()
    short = run(slow, steps(4.0, REFERENCE - 2 * BATCH_STEPS))
    assert short.usual_s is None
    assert describe_slowdown(run(short, steps(5.0, BATCH_STEPS)), START, "n1") == ""


def test_it_ends_when_steps_are_fast_again_and_what_came_and_went_is_less_of_a_surprise() -> None:
    """It is part of how the training goes, so that less than that is no news."""
    pace = run(StepTimeTrend(), steps(4.0, REFERENCE))
    slow = run(pace, steps(4.4, 200))
    assert slow.told
    again = run(slow, steps(4.0, 100))
    assert (again.told, again.slowdown_share) == (False, 0)
    assert (pace.least_share < 0.035, again.least_share > 0.06) == (True, True)
    assert not run(again, steps(4.16, 200)).told
    assert run(pace, steps(4.16, 200)).told


def test_a_short_disturbance_is_none() -> None:
    """Seventy step times of a quarter more."""
    pace = run(StepTimeTrend(), steps(4.0, REFERENCE))
    assert not run(run(pace, steps(5.0, 7 * BATCH_STEPS)), steps(4.0, 300)).told


def test_the_next_job_is_compared_and_its_new_nodes_are_named() -> None:
    """As a training that was moved to a slow node."""
    pace = run(StepTimeTrend(), steps(4.0, REFERENCE))
    slow = run(pace, steps(4.24, 200), job="2", nodes="n[1-3,7]")
    told = describe_slowdown(slow, shift_instant(START, 200), "n[1-3,7]")
    assert told.startswith("step time 6.")
    assert told.endswith("s; new since it was faster: n7")
    assert describe_slowdown(slow, START, "n[1-4]").endswith(
        "; on the nodes on which it was faster"
    )
    assert describe_slowdown(slow, START, "n[1-").endswith("; its nodes cannot be compared")


def test_another_configuration_is_not_slower() -> None:
    """A job that takes twice as long from its beginning."""
    pace = run(StepTimeTrend(), steps(4.0, REFERENCE))
    other = run(pace, steps(8.0, 300), job="2")
    assert not other.told
    assert other.usual_s == pytest.approx(8.0, rel=0.02)


def test_after_a_week_slow_is_usual() -> None:
    """Nobody minded."""
    slow = run(run(StepTimeTrend(), steps(4.0, REFERENCE)), steps(4.4, 200))
    late = add_step_times(
        slow, steps(4.4, BATCH_STEPS), shift_instant(START, 8 * 86400), "1", "n[1-4]"
    )
    assert not late.told
    assert late.usual_s == pytest.approx(4.4, rel=0.02)


def test_what_is_kept_is_bounded() -> None:
    """Whatever the length of the training; times that are none do not count."""
    pace = run(StepTimeTrend(), steps(4.0, (MAX_KEPT_BATCHES + 20) * BATCH_STEPS))
    assert (len(pace.fast), len(pace.batch) < BATCH_STEPS) == (MAX_KEPT_BATCHES, True)
    assert add_step_times(pace, [0.0, -1.0], START, "1", "") == pace


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        pytest.param(
            " iteration 7/ 90 | consumed samples: 9 | elapsed time per iteration (ms): 5000.5 |",
            [5.0005],
            id="Megatron-LM",
        ),
        pytest.param(
            "2026-01-02 | INFO | train_inner | epoch 001: 5 / 9 loss=7.1, ups=0.5, num_updates=5",
            [2.0],
            id="a rate",
        ),
        pytest.param(':::MLLOG {"train_step_time": 0.4}', [0.4], id="MLLOG"),
        pytest.param("elapsed time per iteration (ms): 1.2.3 |", [], id="no number"),
        pytest.param("iteration 7", [], id="none"),
    ],
)
def test_step_times_are_those_that_the_trainer_prints(line: str, seconds: list[float]) -> None:
    """In seconds, whatever their unit is."""
    events = scan_text(line + "\n", patterns(r"iteration +(\d+)"))
    assert [event.value for event in events if event.what == "pace"] == seconds


LINE = " iteration {n:8d}/  90000 | consumed samples: 9 | elapsed time per iteration (ms): {ms:.1f} |\n"


class Training:
    """A log that grows by a hundred lines before each look."""

    def __init__(self, log: Path, **settings: Any) -> None:
        self.log, self.count = log, 0
        log.touch()
        settings = {"path": FilePath(log), "progress": ITERATION, "job": "train", **settings}
        self.watch = Watch(mine(nodes="n[1-4]", node_count=4), **settings)

    def write(self, milliseconds: float, lines: int = 100) -> None:
        with self.log.open("a") as file:
            for _ in range(lines):
                self.count += 1
                file.write(LINE.format(n=self.count, ms=milliseconds))

    def looks(self, milliseconds: float, minutes: int) -> Any:
        for _ in range(minutes):
            self.write(milliseconds)
            report = self.watch.report(1)
        return report


def test_five_percent_are_shown_and_a_tenth_is_a_message(tmp_path: Path) -> None:
    """The line of the training says it; the warning has a subject of its own."""
    training = Training(tmp_path / "log")
    assert [f.subject for f in training.looks(4000, 4).findings] == ["train"]
    (shown,) = training.looks(4200, 2).findings
    assert shown.status is Status.OK
    assert "; step time 5.0% above its usual 4 s for " in shown.summary
    first, warning = training.looks(4800, 4).findings
    assert (warning.subject, warning.status) == ("train step time", Status.WARNING)
    assert "step time 20.0% above its usual 4 s for " in warning.summary
    assert "on the nodes on which it was faster" in warning.summary
    first, over = training.looks(4000, 2).findings
    assert "step time" not in first.summary
    assert over.status is Status.OK


def test_slower_than_asks_for_less_than_a_tenth(tmp_path: Path) -> None:
    """97 % of the usual speed are 3.1 % more time."""
    training = Training(tmp_path / "log", slower_than=97)
    training.looks(4000, 4)
    found = {f.subject: f.status for f in training.looks(4200, 2).findings}
    assert found["train step time"] is Status.WARNING


def test_on_an_upgraded_site_its_first_week_is_silent(tmp_path: Path) -> None:
    """Then it says for a week what it would have told."""
    training = Training(tmp_path / "log")
    training.looks(4000, 2)
    del training.watch.memory["trial"]  # as a sentinel without it has stored
    training.looks(4000, 2)
    assert [f.summary for f in training.looks(4800, 3).findings if "step time" in f.summary] == []
    training.looks(4000, 2)
    training.write(4000)
    later = training.watch.report(8 * 24 * 60).findings[0].summary
    assert "in its first week the watch on step times told nobody: step time 20.0% above" in later
    training.write(4000)
    assert "step time" not in training.watch.report(8 * 24 * 60).findings[0].summary
    assert START.wall % SECOND == 0
