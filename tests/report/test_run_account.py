"""Where the time of a run went, by hand: each number follows from the rows."""

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from sentinel.core.run_ledger import LedgerRow
from sentinel.report.gpu_time import CLASSES
from sentinel.report.interruptions import compute_mtbf, compute_mttr, count_causes
from sentinel.report.run_account import RunAccount, account_run
from tests.report.ledger_rows import MINUTE, at, held, saved, span, steps


def account(*rows: LedgerRow, since: float = -1000, until: float = 10_000) -> RunAccount:
    found = account_run("llm", rows, at(since), at(until))
    assert sum(found.parts.values()) == found.held
    assert set(found.parts) == set(CLASSES)
    assert min(found.parts.values()) >= 0
    return found


def minutes(found: RunAccount, gpus: int = 8) -> dict[str, float]:
    """The parts that are not 0, in minutes of all GPUs."""
    return {name: time / MINUTE / gpus for name, time in found.parts.items() if time}


def test_what_a_crash_loses_is_redone() -> None:
    """The second job goes on from the checkpoint of step 100, so 50 of 150 steps were lost."""
    found = account(
        held(0, 170, "1", cause="software", submitted=-5),
        span("startup", 0, 10, "1"),
        steps(10, 160, 0, 150, "1"),
        span("crashed", 160, 170, "1"),
        saved(110, 100),
        held(180, 290, "2", submitted=-4),
        span("startup", 180, 190, "2"),
        steps(190, 290, 100, 200, "2"),
        saved(290, 200),
    )
    assert minutes(found) == {"startup": 20, "useful": 200, "redone": 50, "crashed": 10}
    assert found.goodput == Fraction(200, 280)
    assert found.ettr == Fraction(200, 290)
    assert found.calendar.not_submitted == 10 * MINUTE
    (one,) = found.interruptions
    assert (one.cause, one.ended_by, one.resumed) == ("software", "automatic", at(190))
    assert found.costs == ((50 + 10 + 10) * 8 * MINUTE,)


def test_the_first_number_of_a_resumed_log_comes_after_the_checkpoint() -> None:
    """The log prints every 20 steps: the first number is 120, and the checkpoint was 100."""
    found = account(
        held(0, 150, "1", cause="node"),
        steps(0, 150, 0, 150, "1"),
        saved(101, 100),
        held(150, 250, "2"),
        steps(150, 250, 120, 200, "2"),
        saved(250, 200),
    )
    assert minutes(found) == {"useful": 200, "redone": 50}


def test_steps_since_the_last_checkpoint_are_provisional() -> None:
    """They are neither useful nor lost yet."""
    found = account(held(0, 100), steps(0, 100, 0, 1000), saved(60, 600))
    assert minutes(found) == {"useful": 60, "provisional": 40}


def test_without_checkpoints_useful_is_unknown() -> None:
    """And the missing check is named."""
    found = account(held(0, 100), steps(0, 100, 0, 1000))
    assert minutes(found) == {"unknown": 100}
    assert (found.goodput, found.ettr, found.missing) == (None, None, ("checkpoint",))


def test_without_a_log_all_is_unknown() -> None:
    """A job that holds GPUs says nothing about its steps."""
    found = account(held(0, 100), saved(50, 5))
    assert (minutes(found), found.missing, found.goodput) == ({"unknown": 100}, ("log",), None)


def test_a_later_start_proves_what_it_went_on_from() -> None:
    """Nothing says which checkpoints are complete, but the second job went on from step 90."""
    found = account(
        held(0, 100, "1", cause="person"), steps(0, 100, 0, 100, "1"),
        held(100, 150, "2"), steps(100, 150, 90, 140, "2"),
    )  # fmt: skip
    assert minutes(found) == {"useful": 90, "redone": 10, "unknown": 50}


def test_steps_lost_at_the_time_limit_are_the_tail() -> None:
    """So is the time after the last step."""
    found = account(
        held(0, 110, "1", cause="time_limit"), steps(0, 100, 0, 100, "1"), saved(80, 80),
        held(110, 160, "2"), steps(110, 160, 80, 130, "2"), saved(160, 130),
    )  # fmt: skip
    assert minutes(found) == {"useful": 130, "tail": 30}
    assert found.interruptions == ()


def test_what_a_restart_lost_before_the_time_limit_is_no_tail() -> None:
    """40 steps were redone inside the job, and 20 more were lost at its limit."""
    found = account(
        held(0, 150, "1", cause="time_limit"), steps(0, 100, 0, 100, "1"), saved(60, 60),
        steps(100, 150, 60, 110, "1"), saved(130, 90),
        held(150, 200, "2"), steps(150, 200, 90, 140, "2"), saved(200, 140),
    )  # fmt: skip
    assert minutes(found) == {"useful": 140, "redone": 40, "tail": 20}


def test_slow_steps_are_slow_for_what_they_took_too_long() -> None:
    """The last row takes twice as long as usual for its steps, so half of it is slow."""
    usual = [steps(n * 60, n * 60 + 60, n * 60, n * 60 + 60) for n in range(4)]
    found = account(held(0, 300), *usual, steps(240, 300, 240, 270), saved(300, 270))
    assert minutes(found) == {"useful": 270, "slow": 30}


def test_another_world_size_has_its_own_usual_pace() -> None:
    """Half of the GPUs take twice as long, which is not slow."""
    found = account(
        held(0, 240, "1", gpus=8),
        *[steps(n * 60, n * 60 + 60, n * 60, n * 60 + 60, "1") for n in range(4)],
        held(240, 480, "2", gpus=4),
        *[steps(240 + n * 60, 300 + n * 60, 240 + n * 30, 270 + n * 30, "2") for n in range(4)],
        saved(480, 360),
    )
    assert found.parts["slow"] == 0
    assert found.goodput == 1
    assert found.held == (240 * 8 + 240 * 4) * MINUTE


def test_checkpoints_and_evaluation_within_steps_are_counted_apart() -> None:
    """Whether they are sums of a row or rows of their own."""
    row = steps(0, 100, 0, 80, checkpoint_us=12 * MINUTE, evaluation_us=8 * MINUTE)
    assert minutes(account(held(0, 100), row, saved(100, 80))) == {
        "useful": 80, "checkpoint": 12, "evaluation": 8,
    }  # fmt: skip
    rows = (steps(0, 100, 0, 80), span("checkpoint", 10, 22), span("evaluation", 50, 58))
    assert minutes(account(held(0, 100), *rows, saved(100, 80))) == {
        "useful": 80, "checkpoint": 12, "evaluation": 8,
    }  # fmt: skip


def test_two_jobs_of_one_name_at_once_take_nothing_from_each_other() -> None:
    """The second begins at step 0 while the first is at step 50: nothing went back."""
    found = account(
        held(0, 100, "1"), steps(0, 100, 0, 100, "1"),
        held(50, 100, "2"), steps(50, 100, 0, 50, "2"), saved(100, 100),
    )  # fmt: skip
    assert found.parts["redone"] == 0
    assert found.held == 150 * 8 * MINUTE
    assert found.ettr is None
    assert "at once" in found.doubts[0]


def test_steps_that_go_back_in_a_job_are_a_restart_inside_it() -> None:
    """As torchrun does. There is no checkpoint between, so the number itself says where it went on."""
    found = account(
        held(0, 200),
        steps(0, 100, 0, 100, cause="gpu", nodes="n3"),
        span("startup", 100, 110),
        steps(110, 200, 60, 150),
        saved(200, 150),
    )
    assert minutes(found) == {"useful": 150, "redone": 40, "startup": 10}
    (one,) = found.interruptions
    assert (one.cause, one.nodes, one.ended_by, one.at) == ("gpu", "n3", "automatic", at(100))


def test_a_checkpoint_that_a_start_went_back_from_is_no_checkpoint() -> None:
    """Step 90 was saved, but a person went back to step 30."""
    found = account(
        held(0, 100, "1", cause="person"), steps(0, 100, 0, 100, "1"), saved(90, 90), saved(30, 30),
        held(100, 120, "2", submitted=105), steps(100, 120, 35, 50, "2"),
    )  # fmt: skip
    assert minutes(found) == {"useful": 30, "redone": 70, "provisional": 20}
    assert found.interruptions[0].ended_by == "person"


def test_a_restart_inside_a_job_can_go_back_from_a_checkpoint_too() -> None:
    """Step 90 was complete, but the launcher could not read it and began at step 30 again."""
    found = account(
        held(0, 120), steps(0, 100, 0, 100), saved(30, 30), saved(90, 90), steps(100, 120, 30, 50),
    )  # fmt: skip
    assert minutes(found) == {"useful": 30, "redone": 70, "provisional": 20}


def test_a_checkpoint_that_counts_epochs_is_placed_by_its_time() -> None:
    """`epoch-3` was written at minute 60, when the log stood at step 30,000."""
    found = account(held(0, 100), steps(0, 100, 1000, 49_000), saved(60, 3))
    assert minutes(found)["useful"] == pytest.approx(60)


def test_a_hang_beats_steps_and_blindness_beats_all() -> None:
    """The order of precedence, where rows contradict each other."""
    found = account(
        held(0, 100), steps(0, 100, 0, 100), span("hung", 40, 70), span("blind", 60, 80),
        span("idle", 50, 90), saved(100, 100),
    )  # fmt: skip
    assert minutes(found) == {"useful": 60, "hung": 20, "unknown": 20}


def test_a_hang_goes_on_from_the_last_look_to_the_end_and_costs_as_much() -> None:
    """The job was cancelled six minutes after the last look at it."""
    hang = span("hung", 60, 100, noticed=at(70))
    found = account(held(0, 106, cause="person"), steps(0, 60, 0, 60), hang, saved(60, 60))
    assert minutes(found) == {"useful": 60, "hung": 46}
    assert [t / MINUTE / 8 for t in (found.hung.until_noticed, found.hung.until_over)] == [10, 36]
    assert found.costs == (46 * 8 * MINUTE,)


def test_only_the_window_is_counted() -> None:
    """But what came before it says what became of the steps."""
    rows = (
        held(0, 100, "1", cause="gpu"), steps(0, 100, 0, 100, "1"), saved(50, 50),
        held(100, 200, "2"), steps(100, 200, 50, 150, "2"), saved(200, 150),
    )  # fmt: skip
    assert minutes(account(*rows, since=90, until=150)) == {"redone": 10, "useful": 50}


def test_calendar_time_without_a_job() -> None:
    """Maintenance is left out of the ETTR, by its name."""
    found = account(
        held(0, 100, "1"), steps(0, 100, 0, 100, "1"),
        span("queued", 110, 130, ""), span("maintenance", 120, 140, ""),
        held(150, 200, "2"), steps(150, 200, 100, 150, "2"), saved(200, 150),
    )  # fmt: skip
    assert found.calendar.queued == 10 * MINUTE
    assert found.calendar.maintenance == 20 * MINUTE
    assert found.calendar.not_submitted == 20 * MINUTE
    assert found.ettr == Fraction(150, 180)


def test_no_rate_below_five_cases() -> None:
    """Four deaths say nothing about the fifth."""
    jobs = [
        held(n * 100, n * 100 + 90, str(n), cause="gpu", submitted=n * 100 - 10) for n in range(6)
    ]
    rows = [steps(n * 100, n * 100 + 90, n * 90, n * 90 + 90, str(n)) for n in range(6)]
    few = account(*jobs[:4], *rows[:4]).interruptions
    assert compute_mtbf(len(few), 10**12).mean_s is None
    many = account(*jobs, *rows).interruptions
    assert count_causes(many) == {"gpu": 6}
    rate = compute_mtbf(6, 6 * 3600 * 10**6)
    assert rate.mean_s == 3600
    # a Poisson count of 6 lies between 2.20 and 13.06 in 95 of 100 cases
    assert rate.low_s == pytest.approx(6 * 3600 / 13.06, rel=0.01)
    assert rate.high_s == pytest.approx(6 * 3600 / 2.20, rel=0.02)
    repair = compute_mttr(many)
    assert (repair.cases, repair.mean_s) == (5, 600)
    assert compute_mttr(many, "person").mean_s is None


def test_a_hang_is_split_by_who_could_have_ended_it() -> None:
    """It is noticed after 10 minutes, sentinel acts after 25, and steps come after 40."""
    hang = span("hung", 60, 100, noticed=at(70), acted=at(85))
    found = account(
        held(0, 120), steps(0, 60, 0, 60), hang, steps(100, 120, 60, 80), saved(120, 80)
    )
    parts = (found.hung.until_noticed, found.hung.until_acted, found.hung.until_over)
    assert [part / MINUTE / 8 for part in parts] == [10, 15, 15]


def test_a_number_that_no_training_reaches_breaks_no_report() -> None:
    """Whoever writes a log can print any number."""
    for step in (1e306, -1e306, 1e20):
        found = account(
            held(0, 100, "1"),
            steps(0, 50, 0, step, "1"),
            steps(50, 100, step, 7, "1"),
            saved(60, step),
        )
        assert sum(minutes(found).values()) == 100


def test_calendar_time_is_counted_once_whatever_overlaps() -> None:
    """A long job, short ones within it, one before and one behind, and a queue around all."""
    found = account(
        span("queued", -50, 400),
        held(0, 100, "1"),
        held(10, 20, "2"),
        held(50, 120, "3"),
        held(-20, -10, "4"),
        held(300, 310, "5"),
    ).calendar
    assert (found.held, found.queued) == (140 * MINUTE, 310 * MINUTE)
    assert found.counted == 450 * MINUTE


def count_calls(rows: Sequence[LedgerRow]) -> int:
    """How many functions an account of these rows calls."""
    calls = 0

    def note(frame: object, event: str, what: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        account_run("llm", rows, at(-1000), at(100_000))
    finally:
        sys.setprofile(None)
    return calls


def array_of(size: int) -> list[LedgerRow]:
    """An array of one name is one run."""
    return [held(10 * n, 10 * n + 5, str(n), cause="software") for n in range(size)]


def one_job(size: int) -> list[LedgerRow]:
    """Its log begins anew at each look."""
    numbers = range(size)
    rows = [steps(10 * n, 10 * n + 5, 2 * (size - n), 2 * (size - n) + 1) for n in numbers]
    return [held(0, 10 * size, cause="software"), *rows]


@pytest.mark.parametrize("make_rows", [array_of, one_job])
def test_twice_the_rows_take_twice_the_work(make_rows: Callable[[int], list[LedgerRow]]) -> None:
    """A user can fill a run with rows, and an administrator's report has to end."""
    assert count_calls(make_rows(800)) < 2.5 * count_calls(make_rows(400))
