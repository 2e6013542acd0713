"""Rules of what else the tail says: losses, errors, speed, and when each is over."""

import re

import pytest
from msgspec.structs import replace

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.progress import update_state
from sentinel.checks.log.progress_speed import (
    MAX_KEPT_RATES,
    SPEED_SPAN_S,
    ProgressSpeed,
    append_rate,
    compute_usual_rate,
    measure_speed,
)
from sentinel.checks.log.rows import MAX_KINDS
from sentinel.checks.log.scan import LogPatterns, scan_text
from sentinel.checks.log.topics import Thresholds, TopicAnswer, describe_cause, judge_topics
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.clock import shift_instant
from sentinel.core.model import Status
from sentinel.testing import START
from tests.checks.log.test_judge import sight

PATTERNS = LogPatterns(
    {"step": re.compile(r"^step (\d+)", re.MULTILINE)}, {}, None, TroubleFinder({}, [])
)
WISHES = Thresholds(nan_after=3, slower_than=50.0)


def look(minutes: float, text: str, size: int = 10) -> LogObservation:
    return replace(sight(minutes, size=size), events=tuple(scan_text(text, PATTERNS)))


def story(*sights: LogObservation, by_number: bool = True) -> tuple[LogState, TrainingBaseline]:
    seen, learned = None, TrainingBaseline()
    for one in sights:
        seen, learned = update_state(one, seen, learned, by_number)
    assert seen
    return seen, learned


def said(topic: str, *sights: LogObservation, by_number: bool = True) -> tuple[Status, str]:
    seen, learned = story(*sights, by_number=by_number)
    (one,) = [a for a in judge_topics(seen, learned, WISHES, {}) if a.topic == topic]
    return one.status, one.summary


@pytest.mark.parametrize(
    ("losses", "status", "summary"),
    [
        (["2.3", "nan", "nan"], Status.OK, "finite but for the last 2"),
        (
            ["2.3", "nan", "inf", "nan"],
            Status.CRITICAL,
            "the last 3 values of the loss are NaN or infinite",
        ),
        (["nan", "nan", "nan", "2.3"], Status.OK, "finite"),
    ],
)
def test_a_loss_is_lost_when_it_stays_so(losses: list[str], status: Status, summary: str) -> None:
    """One NaN is skipped by every trainer that scales its loss."""
    looks = [look(n, f"loss: {loss}\n") for n, loss in enumerate(losses)]
    assert said("loss", *looks) == (status, summary)


def test_an_error_counts_until_the_training_has_outlived_it() -> None:
    """A traceback of a logger's thread is no trouble; two advances prove it, one does not."""
    bad = look(1, "step 1\nBus error\n")
    assert said("errors", bad)[0] is Status.WARNING
    assert said("errors", bad, look(2, "step 2\n"))[0] is Status.WARNING
    assert said("errors", bad, look(2, "step 2\nstep 3\n")) == (
        Status.OK,
        "none since it last advanced",
    )
    assert said("errors", look(1, "Bus error\nstep 2\nstep 3\n"))[0] is Status.OK


@pytest.mark.parametrize(("minutes", "status"), [(14, Status.WARNING), (15, Status.OK)])
def test_without_numbers_an_error_is_old_after_a_while(minutes: float, status: Status) -> None:
    """If the log still grows."""
    looks = [look(0, "Bus error\n"), look(minutes, "", size=20)]
    assert said("errors", *looks, by_number=False)[0] is status


def test_a_silent_log_keeps_its_error() -> None:
    """It was the last word."""
    looks = [look(0, "Bus error\n"), look(600, "")]
    assert said("errors", *looks, by_number=False)[0] is Status.WARNING


def test_the_cause_names_rank_node_and_peer() -> None:
    """What a person needs of forty lines."""
    first = LogTrouble(kind="NCCL connection", line="…", host="node-1", rank="3", peer="10.0.0.9")
    second = LogTrouble(kind="bus error", line="…")
    assert describe_cause((first, second), {"10.0.0.9": "node-7"}) == (
        "NCCL connection of rank 3 on node-1, peer node-7 and 1 more"
    )
    assert (
        describe_cause((replace(first, rank=""),), {}) == "NCCL connection on node-1, peer 10.0.0.9"
    )
    assert describe_cause((), {}) == ""


def speeds(*rates: float) -> tuple[Status, str]:
    """Spans of 15 minutes, each at so many steps a minute."""
    total, looks = 0.0, []
    for n, rate in enumerate(rates):
        for minute in range(15):
            looks.append(look(n * 15 + minute, f"step {int(total)}\n"))
            total += rate
    looks.append(look(len(rates) * 15, f"step {int(total)}\n"))
    return said("speed", *looks)


def test_a_training_at_half_its_speed_is_told() -> None:
    """A throttled GPU or a bad link makes all others wait, and nothing hangs."""
    assert speeds(*[10] * 8) == (Status.OK, "at 100% of its usual 10 a minute of step")
    assert speeds(*[10] * 9, 6, 6, 6)[0] is Status.OK
    assert speeds(*[10] * 9, 4)[0] is Status.OK  # one span may have held a pause
    status, summary = speeds(*[10] * 9, 4, 4, 4)
    assert status is Status.WARNING
    assert summary.endswith("% of its usual 10 a minute of step (slow below 50%)")


def test_speed_is_unknown_at_first() -> None:
    """Two hours make what is usual."""
    assert speeds(*[10] * 7) == (Status.OK, "not yet known what is usual")


def test_a_span_with_a_phase_measures_nothing() -> None:
    """A checkpoint is no slowness; neither is an hour without a look, nor a step back."""
    speed = ProgressSpeed(began=START, value=0, rate=1.0)
    inside, counts = measure_speed(speed, shift_instant(START, 60), 1, True)
    assert (measure_speed(inside, shift_instant(START, SPEED_SPAN_S), 5, False)[1], counts) == (
        False,
        False,
    )
    assert measure_speed(speed, shift_instant(START, 2 * SPEED_SPAN_S), 5, False)[1] is False
    back, counts = measure_speed(speed, shift_instant(START, SPEED_SPAN_S), -5, False)
    assert (back.value, back.rate, counts) == (-5, 1.0, False)
    assert measure_speed(speed, shift_instant(START, SPEED_SPAN_S), 900, False)[0].rate == 1.0
    assert (
        measure_speed(speed, shift_instant(START, SPEED_SPAN_S), 0, False)[0].rate == 0.0
    )  # it stands still


def test_what_is_usual_is_the_median_of_two_days() -> None:
    """A night of trouble does not move it."""
    rates: tuple[float, ...] = ()
    for rate in [10.0] * 100 + [1.0] * 90 + [10.0] * 20:
        rates = append_rate(rates, rate)
    assert (len(rates), compute_usual_rate(rates), compute_usual_rate(rates[:7])) == (
        MAX_KEPT_RATES,
        10.0,
        None,
    )


def test_nothing_seen_is_nothing_said() -> None:
    """But about errors, of which there are none."""
    seen, learned = story(look(0, ""))
    found = judge_topics(seen, learned, Thresholds(nan_after=3, slower_than=None), {})
    assert found == [
        TopicAnswer(topic="errors", status=Status.OK, summary="none since it last advanced")
    ]


MEGATRON = "step {n}| {loss}number of skipped iterations: {skipped:3d} | number of nan iterations: {nans:3d} |\n"


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        pytest.param(
            {}, {"loss": ""}, "the loss is not on the line, the last 3 times", id="left out"
        ),
        pytest.param(
            {}, {"nans": 1}, "the trainer counted iterations with a NaN loss", id="counted"
        ),
        pytest.param({}, {"loss": "", "skipped": 20}, "the last 60 iterations were", id="skipped"),
        pytest.param({}, {"loss": "", "skipped": 1}, "", id="some are skipped at the beginning"),
        pytest.param({"loss": ""}, {"loss": ""}, "", id="never there"),
        pytest.param({"loss": ""}, {}, "", id="there at last"),
    ],
)
def test_what_megatron_leaves_out_or_counts(first: dict, then: dict, told: str) -> None:  # type: ignore[type-arg]
    """Three lines in a row are enough, and iterations that are skipped while the loss scale is
    found are no NaN."""
    usual = {"loss": "lm loss: 2.1E+00 | ", "skipped": 0, "nans": 0}
    lines = [{**usual, **first}, *[{**usual, **then}] * 3]
    status, summary = said(
        "loss", *(look(n, MEGATRON.format(n=n, **line)) for n, line in enumerate(lines))
    )
    assert status is (Status.CRITICAL if told else Status.OK)
    assert summary.startswith(told or "finite")


def test_a_finite_loss_of_another_name_does_not_make_up_for_a_nan() -> None:
    """On the same line or on others."""
    looks = [look(n, "train_loss=nan.0, val_loss=1.2]\nval_loss=1.1\n") for n in range(3)]
    assert said("loss", *looks) == (
        Status.CRITICAL,
        "the last 3 values of train_loss are NaN or infinite",
    )
    assert said("loss", *looks, look(4, "train_loss=2.0\n"))[0] is Status.OK


def test_the_cause_is_told_before_what_follows_upon_it() -> None:
    """Even where it stands after more followers than are kept. A traceback is told once with its
    exception."""
    head = '[rank{n}]: Traceback (most recent call last):\n[rank{n}]:   File "a.py", line 1\n'
    echoes = "".join(head.format(n=n) for n in range(9))
    seen, _ = story(look(1, echoes + "[rank7]: RuntimeError: CUDA error: an illegal address\n"))
    assert describe_cause(seen.troubles, {}) == "CUDA error of rank 7 and 8 more"


def test_what_breaks_when_a_finished_training_is_taken_apart_is_no_trouble() -> None:
    """A full disk is, also then; and so is everything once it trains again."""
    end = "step 9\n'train_runtime': 7.1\nsrun: error: node-1: task 3: Exited with exit code 134\n"
    assert said("errors", look(1, end))[0] is Status.OK
    assert (
        said("errors", look(1, end + "[Errno 28] No space left on device\n"))[0] is Status.WARNING
    )
    failed = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\nOSError: no model\n'
    assert said("errors", look(1, end + failed))[0] is Status.WARNING
    again = "step 10\nsrun: error: node-1: task 3: Killed\n"
    assert said("errors", look(1, end), look(2, again))[0] is Status.WARNING


def test_what_nothing_else_brings_about_is_told_first_wherever_it_stands() -> None:
    """The ranks that lost the one that was killed speak sooner than Slurm, which says why."""
    lost = "".join(
        f"gpu-{n}:1:2 [0] NCCL WARN Connection closed by remote peer n2<4>\n" for n in range(9)
    )
    killed = "srun: error: node-2: task 9: Out Of Memory\n"
    seen, _ = story(look(1, lost + killed))
    assert describe_cause(seen.troubles, {}) == "host out of memory of rank 9 on node-2 and 9 more"


def test_an_exception_is_told_before_the_timeouts_of_those_who_waited_for_it() -> None:
    """A collective waits for ten minutes; who raised an error did so at once."""
    raised = "[rank3]: Traceback (most recent call last):\n[rank3]:   f()\n[rank3]: KeyError: 'x'\n"
    late = "[rank0]:[E] [Rank 0] Watchdog caught collective operation timeout\n"
    seen, _ = story(look(1, raised + late))
    assert (
        describe_cause(seen.troubles, {})
        == "Python exception of rank 3 ([rank3]: KeyError: 'x') and 1 more"
    )


def test_counts_of_a_training_that_stands_still_are_kept_for_so_many_totals() -> None:
    """Each total is a kind of its own, and a dead training moves no number that would clear them. One that
    goes on is kept, whatever comes beside it."""
    looks = [look(0, "step 1\nstep 2\n")]
    for n in range(10, 10 + 2 * MAX_KINDS):
        looks.append(look(n, f"rows 1/{n}\nshard {n}/90000\n", size=n + 10))
    seen, _ = story(*looks)
    assert len(seen.counts) == MAX_KINDS
    assert max(seen.counts.values()) == 9 + 2 * MAX_KINDS
