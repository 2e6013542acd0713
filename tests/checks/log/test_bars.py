"""Progress bars in a log: which there are, which counts steps, and what finds it."""

import re

import pytest

from sentinel.checks.log.bars import find_bars, find_training_bar, parse_scaled_number, remove_bars
from sentinel.checks.log.recognition import recognise_log, reconsider_number
from tests.world.logs import bar

BATCHES = "".join(bar("Batch: ", 40, *range(41)) for _ in range(3)).replace("\r", "\n")
STEPS = bar("Steps: ", 900, 7, 8, 9).replace("\r", "\n")


def test_bars_are_told_apart_by_their_words_and_totals() -> None:
    """Digits before a bar change from line to line."""
    text = "rank 0: 10%|█ | 1/10 [00:01<00:09, 1.0it/s]rank 1: 20%|█ | 2/10 [00:01<00:09, 1.0it/s]"
    (one,) = find_bars(text)
    assert (one.description, one.value, one.advances, one.step_s) == ("rank 0:", 2, 1, 1.0)
    assert re.findall(one.count_pattern, text) == ["1", "2"]
    assert [b.total for b in find_bars(bar("", 9, 1) + bar("", 8, 1))] == ["9", "8"]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (BATCHES + STEPS, "Steps:"),
        (BATCHES, "Batch:"),
        (BATCHES + STEPS.replace("3.10it/s", "1800.0s/it"), "Batch:"),
        (STEPS.replace("3.10it/s", "1800.0s/it"), "Steps:"),
        (bar("Steps: ", 9, *range(10)), None),
        (bar("Evaluating: ", 9, 1, 2, 3), None),
        ("", None),
    ],
)
def test_the_bar_of_the_training_goes_on_while_others_begin_anew(
    text: str, right: str | None
) -> None:
    """Unless one of its steps takes longer than a hang may."""
    found = find_training_bar(find_bars(text))
    assert (found.description if found else None) == right


def test_a_finished_bar_is_given_up_and_a_trainer_s_own_number_is_not() -> None:
    """The one has no more to count, of the other it may be the hang."""
    known = recognise_log(bar("Copying: ", 9, 3, 4, 5) + "\n")
    assert known.number
    assert reconsider_number(known, "busy\n" * 9).number == known.number
    assert reconsider_number(known, bar("Copying: ", 9, 9) + "\nbusy\n").number is None
    titan = "step: {}  loss:  7.1  memory:  9.46GiB(64.99%)\n"
    sure = recognise_log(titan.format(4))
    others = titan.format(4) + "".join(f"probe step {n}\n" for n in range(9))
    assert reconsider_number(sure, others) == sure


def test_numbers_of_bars_and_a_text_without_bars() -> None:
    assert [parse_scaled_number(text) for text in ("12", "1.5k", "2M", "x", "")] == [
        12,
        1500,
        2e6,
        0,
        0,
    ]
    assert remove_bars("a 1%| | 1/9 [00:01, 2it/s] c").split("\n") == ["a ", "] c"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["1%|", "1%| 1/2 [", "9", "1.1k/", "%| 1", " ", "0%|| 1/1 []"])
def test_no_text_takes_long(piece: str) -> None:
    """One line of a megabyte of it."""
    find_bars(piece * (2**19 // len(piece)))


def test_a_finished_bar_is_the_training_s_if_it_tells_a_loss() -> None:
    """A training that has ended, or validates: its bar stands at its total."""
    finished = bar("Train: ", 2703, *range(0, 2704, 300), 2703)
    told = find_training_bar(find_bars(finished.replace("it/s]", "it/s, loss=0.31]")))
    assert told is not None
    assert told.value == 2703
    assert find_training_bar(find_bars(finished)) is None
