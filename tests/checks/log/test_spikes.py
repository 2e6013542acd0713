"""A loss that rises: what is told, when, and what is not."""

from itertools import chain
from random import Random

import pytest
from msgspec.structs import replace

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.log_state import LogState
from sentinel.checks.log.progress import update_state
from sentinel.checks.log.scan import LogPatterns, scan_text
from sentinel.checks.log.spikes import (
    BATCH_LOSSES,
    MIN_HIGH_BATCHES,
    MIN_KNOWN_BATCHES,
    LossTrend,
    add_losses,
    describe_spike,
)
from sentinel.checks.log.topics import Thresholds, judge_topics
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.model import Status
from tests.checks.log.test_judge import sight

NOISE = 0.05
LONG = 600
"""Losses that are well before anything rises."""


def falling(count: int, start: int = 0) -> list[float]:
    """Losses of a training that learns."""
    random = Random(start)
    return [2 + 6 / (1 + n / 50) + random.gauss(0, NOISE) for n in range(start, start + count)]


def above(more: float, count: int) -> list[float]:
    """What follows then, so much higher."""
    return [one + more for one in falling(count, LONG)]


def after(*losses: list[float]) -> int | None:
    """Losses behind the well ones until it is told."""
    course = LossTrend()
    for count, one in enumerate(chain(*losses), 1):
        course = add_losses(course, [one])
        if course.told:
            return count - LONG
    return None


@pytest.mark.parametrize(
    ("then", "least", "most"),
    [
        pytest.param(above(1, 200), 50, 60, id="it rises and stays"),
        pytest.param(above(1e6, 200), 50, 60, id="it explodes"),
        pytest.param([*above(6, 15), *falling(300, LONG)], None, None, id="a spike that is back"),
        pytest.param([*above(1, 30), *falling(300, LONG)], None, None, id="BLOOM's, back after 30"),
        pytest.param(above(0.1, 200), None, None, id="a little higher"),
        pytest.param(above(0, 4000), None, None, id="it falls"),
    ],
)
def test_what_rises_and_stays_is_told(
    then: list[float], least: int | None, most: int | None
) -> None:
    """In logged values after the rise."""
    told = after(falling(LONG), then)
    assert told is None if least is None or most is None else told and least <= told <= most


def test_nothing_is_told_before_the_noise_is_known() -> None:
    """A fine-tuning of a few values has none."""
    assert after([1.0] * (BATCH_LOSSES * MIN_KNOWN_BATCHES - 1), [9.0] * 5) is None


def test_it_is_over_when_the_loss_is_back_and_not_before() -> None:
    """A week above the usual is no new usual: nobody went back to a checkpoint."""
    course = add_losses(LossTrend(), [*falling(LONG), *above(1, 5000)])
    assert course.told
    assert not add_losses(course, falling(BATCH_LOSSES * 2, LONG)).told


def test_it_is_a_warning_with_its_numbers_where_that_is_asked_for() -> None:
    """Beside what is said of NaN, and of the loss that is trained on alone."""
    lines = [f"step {n} | lm loss: {one:.4f} | val loss: 99.0\n" for n, one in
             enumerate([*falling(LONG), *above(3, BATCH_LOSSES * MIN_HIGH_BATCHES)])]  # fmt: skip

    def told(*, asked: bool) -> list[tuple[Status, str]]:
        seen: LogState | None = None
        learned = TrainingBaseline()
        for minute in range(0, len(lines), 60):
            text = "".join(lines[minute : minute + 60])
            events = tuple(
                scan_text(text, LogPatterns({}, {}, None, TroubleFinder({}, []), course=asked))
            )
            now = replace(sight(minute), events=events)
            seen, learned = update_state(now, seen, learned, False)
        assert seen
        every = judge_topics(seen, learned, Thresholds(nan_after=3, slower_than=None), {})
        return [(a.status, a.summary) for a in every if a.topic == "loss"]

    assert [status for status, _ in told(asked=False)] == [Status.OK]
    (_, warning) = told(asked=True)
    assert warning[0] is Status.WARNING
    assert warning[1].startswith("loss 5.")
    assert "risen for the last 50 values; usually 2.5" in warning[1]


def test_what_is_kept_is_bounded_and_said_in_words() -> None:
    """It is written with the memory of the check at every pass."""
    course = add_losses(LossTrend(), [*falling(2000), *above(9, 20000)])
    assert len(course.usual) + len(course.high) + len(course.batch) < 100
    assert describe_spike(LossTrend()) == ""
