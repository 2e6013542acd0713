"""Rules of learning how long a training is quiet while it is well."""

import pytest

from sentinel.checks.log.cadence import (
    MAX_KEPT_JOBS,
    MAX_WINDOW_PAUSES,
    WINDOW_S,
    Cadence,
    LimitBounds,
    QuietLimit,
    QuietObservation,
    TrainingBaseline,
    add_quiet,
    compute_phase_limit,
    compute_quiet_limit,
    compute_start_limit,
    record_job_advance,
    record_phase,
    record_start,
)
from sentinel.checks.log.pauses import (
    MAX_KEPT_PAUSES,
    TrainingPause,
    append_pause,
    find_rhythms,
    list_unexplained_pauses,
)

BOUNDS = LimitBounds(floor=120, ceiling=1800)


def watched(hours: float, quiets: dict[int, tuple[float, float]]) -> Cadence:
    """So many hours of looks, one a minute; `quiets` by minute: at which number, how long."""
    cadence = Cadence()
    for minute in range(int(hours * 60)):
        at, seconds = quiets.get(minute, (0.0, 0.0))
        cadence = add_quiet(cadence, QuietObservation(seconds=seconds, at=at, spacing=60, blur=2))
    return cadence


def limit(cadence: Cadence, number: float = 0.0) -> float:
    return compute_quiet_limit(
        TrainingBaseline(quiets={"n": cadence}), "n", number, 60, BOUNDS
    ).seconds


@pytest.mark.parametrize(
    ("hours", "seconds"),
    [
        pytest.param(5.9, 1200, id="a young training is given what people write by hand"),
        pytest.param(6.1, 600, id="then half of it"),
        pytest.param(24.1, 150, id="after a day what was seen"),
    ],
)
def test_trust_comes_with_time(hours: float, seconds: float) -> None:
    """A pause that comes every few hours must have had its chance."""
    assert limit(watched(hours, {})) == seconds


def test_one_long_quiet_is_an_accident_and_two_are_a_habit() -> None:
    """A file system that stood still once makes nobody deaf."""
    assert limit(watched(30, {700: (5, 900)})) == 150
    assert limit(watched(30, {100: (5, 900), 900: (87, 900)})) == 900 + 300 + 30
    assert limit(watched(30, {100: (5, 300), 900: (87, 300)})) == 300 + 150 + 30


def test_a_quiet_not_much_longer_than_others_is_no_accident() -> None:
    """What took twice the usual once will take it again."""
    often = {minute: (float(minute), 60.0) for minute in range(0, 1800, 8)}
    assert watched(30, {**often, 700: (5, 150)}).usual_quiet_s == 150
    assert watched(30, {**often, 700: (5, 151)}).usual_quiet_s == 60


def test_a_pause_every_so_many_steps_is_expected_there_and_only_there() -> None:
    """An evaluation every 500 iterations that nobody announces."""
    quiets = {minute: (minute / 300 * 500.0, 400.0) for minute in range(300, 1800, 300)}
    cadence = watched(30, quiets)
    assert limit(cadence, 3500) == 400 + 200 + 30
    assert limit(cadence, 3501) == 400 + 200 + 30
    assert limit(cadence, 3510) == 150


def test_a_slow_training_has_no_pauses_only_a_slow_step() -> None:
    """What comes in every other look is how it goes."""
    quiets = {minute: (float(minute), 120.0) for minute in range(0, 1800, 4)}
    cadence = watched(30, quiets)
    assert cadence.usual_quiet_s == 120
    assert len(cadence.pauses) <= MAX_WINDOW_PAUSES
    assert limit(cadence) == 2 * 120 + 30


def test_what_was_long_ago_is_forgotten() -> None:
    """A training that has become faster is watched more closely after two days."""
    slow = {minute: (float(minute), 60.0) for minute in range(600)}
    assert limit(watched(30, slow)) == 150
    assert watched(30, slow).usual_quiet_s == 60
    assert watched(70, slow).usual_quiet_s == 0
    assert watched(70, {100: (5, 900), 200: (87, 900)}).usual_quiet_s == 0


@pytest.mark.parametrize(
    ("usual", "margin", "spacing", "seconds"),
    [
        pytest.param(0, 0, 10, 120, id="the floor"),
        pytest.param(3600, 0, 60, 1800, id="the ceiling"),
        pytest.param(0, 0, 60, 150, id="three looks, less half a one"),
        pytest.param(0, 0, 600, 1500, id="also where looks are rare"),
        pytest.param(121, 0, 60, 121 + 60.5 + 30, id="half of the usual quiet more"),
        pytest.param(900, 0, 60, 900 + 300 + 30, id="of a long one five minutes more"),
        pytest.param(1320, 0, 60, 1320 + 330 + 30, id="of a very long one a quarter"),
        pytest.param(119, 0, 60, 119 + 60 + 30, id="a look more"),
        pytest.param(120, 100, 60, 120 + 100 + 30, id="an ordinary quiet more"),
    ],
)
def test_the_limit_is_between_floor_and_ceiling(
    usual: float, margin: float, spacing: float, seconds: float
) -> None:
    """The longest usual quiet, and the largest of three margins."""
    assert BOUNDS.compute_limit_s(usual, margin, spacing) == seconds


def test_the_margin_is_what_is_ordinary() -> None:
    """A log that comes in blocks may be a block late; a steady one is steadier than its worst."""
    often = {minute: (float(minute), 240.0) for minute in range(0, 1800, 8)}
    rarely = {100: (5.0, 240.0), 900: (87.0, 240.0)}
    assert limit(watched(30, often)) == 240 + 240 + 30
    assert limit(watched(30, rarely)) == 240 + 120 + 30


def test_a_phase_is_known_after_three_times() -> None:
    """Until then it is given what people write by hand."""
    learned = TrainingBaseline()
    for seconds in (300.0, 360.0):
        learned = record_phase(learned, "checkpoint", seconds)
    assert compute_phase_limit(learned, "checkpoint", 60, BOUNDS).seconds == 1200
    learned = record_phase(learned, "checkpoint", 240.0)
    found = compute_phase_limit(learned, "checkpoint", 60, BOUNDS)
    assert found.seconds == 2 * 360 + 30
    assert found.why == "auto: checkpoint took 6m at most, 3 times"


@pytest.mark.parametrize(
    ("lengths", "margin"),
    [
        (
            [1060, 1064, 1068, 1072] * 2,
            300,
        ),  # evaluations of Stable Diffusion, MLPerf training v5.0
        ([1060, 1064, 1068], 1068),
        ([300, 305, 300, 302, 300, 301, 300, 500], 500),  # one checkpoint on a busy file system
        ([600, 605, 600, 602, 600, 601, 600, 750], 3 * 149),
        ([4000] * 8, 1000),
        ([200] * 8, 200),
    ],
)
def test_what_was_seen_often_may_last_longer_as_its_lengths_differ(
    lengths: list[float], margin: float
) -> None:
    """Twice as long only until then: where most of a run is evaluation, a hang was told 20 minutes later."""
    wide, learned = LimitBounds(floor=120, ceiling=9000), TrainingBaseline()
    for seconds in lengths:
        learned = record_start(record_phase(learned, "evaluation", seconds), seconds)
    within = compute_phase_limit(learned, "evaluation", 60, wide)
    assert within.seconds == max(lengths) + margin + 30
    begins = compute_start_limit(learned, 600, 60, wide)
    assert begins
    assert begins.seconds == max(600, within.seconds)


def test_what_an_earlier_job_showed_is_known_from_the_first_minute_as_far_as_it_got() -> None:
    """Beyond that nobody has been: an evaluation may wait there."""
    learned = TrainingBaseline(quiets={"n": watched(1, {30: (5.0, 400.0)})})
    learned = record_job_advance(learned, "first", 3600)
    known = compute_quiet_limit(learned, "n", 0, 60, BOUNDS, "second")
    assert (known.seconds, known.why) == (
        400 + 200 + 30,
        "auto: usually quiet for 6m 40s at most, over 1h",
    )
    further = record_job_advance(record_job_advance(learned, "second", 3000), "second", 601)
    beyond = compute_quiet_limit(further, "n", 0, 60, BOUNDS, "second")
    assert (beyond.seconds, beyond.why) == (1200, "auto: still learning, 1h watched")
    assert compute_quiet_limit(learned, "n", 0, 60, BOUNDS, "first").seconds == 1200


def test_before_it_is_sure_it_is_careful() -> None:
    """Ten minutes, however steady the hours of the job before were."""
    learned = record_job_advance(TrainingBaseline(quiets={"n": watched(1, {})}), "first", 3600)
    assert compute_quiet_limit(learned, "n", 0, 60, BOUNDS, "second").seconds == 600


def test_a_quiet_longer_than_what_people_write_by_hand_is_learned_at_once() -> None:
    """It is one false alarm less than a fixed limit raises, each time."""
    learned = TrainingBaseline(quiets={"n": watched(3, {100: (5.0, 1300.0)})})
    assert compute_quiet_limit(learned, "n", 0, 60, BOUNDS, "first").seconds == 1300 + 325 + 30


def test_the_start_of_a_job_is_known_by_those_before() -> None:
    """`startup` until several have begun; a slow start is allowed longer from the second on."""
    assert compute_start_limit(TrainingBaseline(), 1800, 60, BOUNDS) is None
    quick = record_start(record_start(TrainingBaseline(), 100), 110)
    assert compute_start_limit(quick, 1800, 60, BOUNDS) == QuietLimit(
        1800, "auto: earlier jobs took 110s at most to begin"
    )
    sure = compute_start_limit(record_start(quick, 90), 1800, 60, BOUNDS)
    assert sure
    assert sure.seconds == 600
    wide = LimitBounds(floor=120, ceiling=7200)
    slow = compute_start_limit(record_start(TrainingBaseline(), 2200), 1800, 60, wide)
    assert slow
    assert slow.seconds == 2 * 2200 + 30


def test_only_the_last_jobs_are_remembered() -> None:
    """And the newest of them is the last."""
    learned = TrainingBaseline()
    for number in range(MAX_KEPT_JOBS + 3):
        learned = record_job_advance(learned, str(number), 60)
    assert list(learned.jobs) == [str(n) for n in range(3, MAX_KEPT_JOBS + 3)]
    assert list(record_job_advance(learned, "5", 60).jobs)[-1] == "5"


def test_watching_is_counted_by_looks_and_not_by_hours_between() -> None:
    """A day without sentinel is no day watched."""
    cadence = add_quiet(Cadence(), QuietObservation(seconds=0, at=0, spacing=86400))
    assert cadence.total == 300


def test_two_rhythms_are_told_apart() -> None:
    """Evaluations and checkpoints of one training, neither announced."""
    numbers = sorted({*range(700, 10000, 700), *range(1100, 10000, 1100)})
    found = find_rhythms([TrainingPause(float(n), 200, 0) for n in numbers], blur=5)
    assert all(any(rhythm.is_pause_due(n) for rhythm in found) for n in numbers)
    assert not any(rhythm.is_pause_due(750) for rhythm in found)


def test_a_rhythm_is_found_though_turns_are_missing() -> None:
    """Jobs end, checkpoints coincide; it is the rhythm and not a multiple of it."""
    turns = (99000, 102600, 104400, 106200, 108000, 109800, 111600, 120600, 133200, 135000)
    (found,) = find_rhythms([TrainingPause(float(at), 300, 0) for at in turns], blur=20)
    assert found.period == pytest.approx(1800)


def test_a_rhythm_is_exact_though_its_pauses_are_not() -> None:
    """Output in blocks shows each number a little late; the error does not add up."""
    late = (7, 0, 11, 3, 9, 1, 12, 5, 2, 10)
    (found,) = find_rhythms(
        [TrainingPause(n * 1200.0 - lag, 300, 0) for n, lag in enumerate(late)], blur=24
    )
    assert all(found.is_pause_due(turn * 1200.0 - lag) for turn in range(60) for lag in (0, 12))
    assert not found.is_pause_due(600)


def test_pauses_without_a_rhythm_stay_unexplained() -> None:
    """Three at random are no rhythm, and a blur as wide as the distance says nothing."""
    some = [TrainingPause(float(at), 200, 0) for at in (0, 500, 1000, 19000, 19500)]
    assert find_rhythms(some, 2) == ()  # most of its turns went by
    many = [TrainingPause(float(at * at % 9973), 200, 0) for at in range(100, 148)]
    assert find_rhythms(many, 20) == ()  # chance explains some of anything
    odd = [TrainingPause(at, 100 + at, 0) for at in (13.0, 500.0, 1717.0)]
    assert list_unexplained_pauses(odd, find_rhythms(odd, 2)) == [1817, 600, 113]
    near = [TrainingPause(float(at), 200, 0) for at in range(0, 100, 10)]
    assert find_rhythms(near, 5) == ()


def test_pauses_are_kept_for_two_days_and_not_too_many() -> None:
    """Memory is bounded."""
    kept: tuple[TrainingPause, ...] = ()
    for number in range(100):
        kept = append_pause(kept, TrainingPause(number, 200, number * 60.0))
    assert len(kept) == MAX_KEPT_PAUSES
    assert append_pause(kept, TrainingPause(100, 200, 99 * 60 + 48 * 3600.0)) == (
        TrainingPause(100, 200, 99 * 60 + 48 * 3600.0),
    )
    assert WINDOW_S == 3 * 3600
