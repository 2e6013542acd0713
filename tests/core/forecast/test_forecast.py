"""Rules of the forecast: what is full when, by what happened before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.forecast.forecast import Forecast, make_forecast
from sentinel.core.forecast.growth_steps import GrowthSteps, find_growth_steps
from sentinel.core.forecast.thin import interpolate_hourly, keep_last_per_bucket

NOW, HOUR, DAY, TB = 1_800_000_000.0, 3600.0, 86_400.0, 1e12


def hours(levels: list[float]) -> list[tuple[float, float]]:
    """One point an hour, the last one now."""
    return [(NOW - HOUR * (len(levels) - 1 - n), level) for n, level in enumerate(levels)]


def risen(rates: list[float]) -> list[tuple[float, float]]:
    """Levels that rise by so much in each hour."""
    levels = [0.0]
    for rate in rates:
        levels.append(levels[-1] + rate)
    return hours(levels)


def found(points: list[tuple[float, float]], room: float) -> Forecast:
    made = make_forecast(points, room, NOW)
    assert made is not None
    return made


def test_steady_growth_is_full_when_a_line_says() -> None:
    """Nothing else is known, so early, middle and late are one."""
    made = found(risen([1.0] * 100), 48.0)
    assert (made.full_in, made.early, made.late) == (48 * HOUR, 48 * HOUR, 48 * HOUR)
    assert made.rate == pytest.approx(1.0 / HOUR)
    assert made.steps is None


def test_what_does_not_grow_is_not_full() -> None:
    """Neither what stands still nor what shrinks."""
    assert found(risen([0.0] * 100), 1.0).full_in is None
    assert found(risen([-1.0] * 100), 1.0).full_in is None


@pytest.mark.parametrize(("points", "told"), [(0, False), (2, False), (3, True)])
def test_a_short_history_says_nothing(points: int, told: bool) -> None:
    """Three hours are needed."""
    made = make_forecast(hours([float(n) for n in range(points + 1)]), 10.0, NOW)
    assert (made is not None) == told
    assert make_forecast([], 10.0, NOW) is None


def test_checkpoints_are_told_as_such() -> None:
    """2.3 TB every three hours: 20 TB are full with the ninth, and that pace is named."""
    made = found(risen([2.3 * TB if n % 3 == 2 else 0.0 for n in range(72)]), 20 * TB)
    assert made.steps == GrowthSteps(size=2.3 * TB, every=3 * HOUR)
    assert made.full_in == pytest.approx(26 * HOUR, abs=3 * HOUR)
    assert made.early is not None
    assert made.late is not None
    assert made.early <= made.full_in <= made.late


def test_a_weekly_purge_is_part_of_the_future() -> None:
    """A saw that never came near the end in two weeks is not said to reach it by its last tooth."""
    rates = [0.1 if n % 168 else -16.7 for n in range(1, 14 * 24 + 1)]
    made = found(risen(rates), 30.0)
    assert made.full_in is None or made.full_in > 7 * DAY


def test_one_clean_up_is_no_habit() -> None:
    """After somebody freed space once, growth goes on as before it."""
    made = found(risen([0.5] * 320 + [-60.0] + [0.5] * 12), 48.0)
    assert made.full_in is not None
    assert made.full_in <= 8 * DAY


def test_a_run_that_began_yesterday_is_believed() -> None:
    """Two quiet weeks do not hide it: the early end of the interval is by its pace."""
    made = found(risen([0.0] * 300 + [1.0] * 36), 60.0)
    assert made.early == pytest.approx(60 * HOUR, rel=0.05)


def test_the_same_history_gives_the_same_answer() -> None:
    """Nothing is drawn anew: a person who looks twice sees one number."""
    points = risen([0.3 * (n % 5) for n in range(200)])
    assert make_forecast(points, 70.0, NOW) == make_forecast(points, 70.0, NOW)


@given(
    rates=st.lists(st.floats(-5, 5, allow_nan=False), min_size=4, max_size=60),
    room=st.floats(0.1, 200),
)
def test_early_is_never_after_late(rates: list[float], room: float) -> None:
    """Whatever happened before; None is later than all."""
    made = make_forecast(risen(rates), room, NOW)
    assert made is not None
    ends = [float("inf") if t is None else t for t in (made.early, made.full_in, made.late)]
    assert ends == sorted(ends)
    assert ends[0] >= 0


def test_a_forecast_is_counted_down() -> None:
    """Until it is made anew, and never below nothing."""
    made = Forecast(full_in=100.0, early=50.0, late=None, rate=1.0).shift_by(60.0)
    assert (made.full_in, made.early, made.late) == (40.0, 0.0, None)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param(
            [0, 0, 9, 9, 9, 18, 18, 18, 27], GrowthSteps(size=9, every=3 * HOUR), id="three"
        ),
        pytest.param([0, 0, 9, 9, 9, 18, 18], None, id="two are chance"),
        pytest.param([0, 1, 2, 3, 4, 5, 6, 7], None, id="growth without pauses"),
        pytest.param([0, 9, 9, 10, 10, 30, 30, 31, 31, 90], None, id="no two alike"),
        pytest.param(
            [9, 0, 9, 0, 9, 0, 9, 0, 9], GrowthSteps(size=9, every=2 * HOUR), id="rolling"
        ),
    ],
)
def test_steps_are_what_comes_again_and_again(
    levels: list[float], expected: GrowthSteps | None
) -> None:
    """Three of much the same size at much the same pace; deletions between them change nothing."""
    assert find_growth_steps(hours([float(level) for level in levels])) == expected


def test_a_checkpoint_that_takes_minutes_is_one_step() -> None:
    """Neighbouring rises are one, however often it was measured."""
    points, level = list[tuple[float, float]](), 0.0
    for minute in range(12 * 60):
        level += 1.0 if minute % 180 < 25 else 0.0
        points.append((NOW + 60.0 * minute, level))
    made = find_growth_steps(points)
    assert made is not None
    assert made.size == pytest.approx(25.0, abs=6)
    assert made.every == pytest.approx(3 * HOUR, abs=700)


def test_buckets_keep_the_last_point() -> None:
    """Minutes for days, hours for months: what is kept is a value that was measured."""
    assert keep_last_per_bucket([(0.0, 1.0), (9.0, 2.0), (10.0, 3.0)], 10.0) == [
        (9.0, 2.0),
        (10.0, 3.0),
    ]


def test_hours_are_interpolated_over_gaps() -> None:
    """A service that was down for hours leaves a line, no step."""
    values = interpolate_hourly([(NOW - 4 * HOUR, 0.0), (NOW, 8.0)], NOW, 336)
    assert values == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert interpolate_hourly([], NOW, 336) == []
    assert len(interpolate_hourly(hours([1.0] * 500), NOW, 336)) == 337
