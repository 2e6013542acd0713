"""Rules of what a text says: numbers, phases, losses, ranks, in their order."""

import re

import pytest

from sentinel.checks.log.scan import KNOWN_PHASES, LOSS, Patterns, phases, scan
from sentinel.checks.log.settings import named
from sentinel.checks.log.troubles import Finder
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.logtext import decoded
from tests.replay.shapes import SHAPES


def patterns(progress: str = r"iteration ([\d,.e]+)") -> Patterns:
    return Patterns(named(re.compile(progress)), phases({}), re.compile(LOSS), Finder({}, []))


def events(text: str, what: str, progress: str = r"iteration ([\d,.e]+)") -> list[object]:
    found = [event for event in scan(text, patterns(progress)) if event.what == what]
    return [event.value if what in ("number", "loss") else event.name for event in found]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param("iteration 1\niteration 2\n", [1, 2], id="in their order"),
        pytest.param("iteration 1,234\n", [1234], id="thousands"),
        pytest.param("iteration 1e3\n", [1000], id="exponents"),
        pytest.param("loss 3\n", [], id="no match"),
        pytest.param("", [], id="empty"),
    ],
)
def test_numbers_are_what_the_first_group_captures(text: str, numbers: list[float]) -> None:
    """As people and programs write them."""
    assert events(text, "number") == numbers


def test_a_pattern_may_begin_with_a_line() -> None:
    """`^` means a line of the log, not the piece of it that was just read."""
    assert events("noise\nat 7\n", "number", r"^at (\d+)$") == [7]


def test_captured_text_that_is_no_number_is_an_error() -> None:
    """The message shows it."""
    for word in ("epoch", "nan", "inf", "9" * 59 + "e999"):
        with pytest.raises(CannotTell, match=f"`progress` captured '{word[:50]}.*no number"):
            scan(f"at {word}\n", patterns(r"at (\w+)"))


def test_a_pattern_without_a_group_is_refused_with_its_name() -> None:
    """One of several too."""
    with pytest.raises(Invalid, match="captures nothing") as caught:
        named({"iteration": re.compile(r"it (\d+)"), "samples": re.compile("samples")})
    assert caught.value.path == ("progress", "samples")


def test_several_patterns_without_names_are_numbered() -> None:
    """One is called progress, however it is written."""
    one, two = re.compile("a(1)"), re.compile("b(2)")
    assert list(named([one])) == ["progress"]
    assert list(named([one, two])) == ["progress 1", "progress 2"]
    assert named("auto") == named("growth") == {}


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        pytest.param(" lm loss: 6.7E+00 | loss scale: 32768.0 |", [False], id="Megatron"),
        pytest.param(" lm loss: NAN | loss scale: 1.0 |", [True], id="Megatron, NaN"),
        pytest.param("steps: 10 loss: nan iter time (s): 5.2", [True], id="DeepSpeed"),
        pytest.param("v_num=0, train_loss=nan.0]", [True], id="Lightning"),
        pytest.param("{'loss': nan, 'grad_norm': nan}", [True], id="Hugging Face"),
        pytest.param("step: 22  loss:  2.91027  grad_norm:  inf", [False], id="torchtitan"),
        pytest.param(
            decoded(b"\x1b[31mstep: 22  \x1b[32mloss:  nan  \x1b[34mmemory: 1GiB\x1b[39m"),
            [True],
            id="torchtitan writes colours",
        ),
        pytest.param("total_weights: 524288, loss: -inf", [True], id="MaxText"),
        pytest.param("no loss was seen; the nanny said so", [], id="prose"),
        pytest.param("loss: nano", [], id="another word"),
    ],
)
def test_losses_are_found_in_the_lines_of_well_known_trainers(line: str, bad: list[bool]) -> None:
    """A scale of the loss and a norm of the gradient are none."""
    assert [value != value for value in events(line, "loss")] == bad


def test_ranks_beyond_all_numbers_announce_nothing() -> None:
    """A line of a log is anybody's text, and no reason to end in an error."""
    line = "Initializing distributed: GLOBAL_RANK: {}, MEMBER: 1/{}\n"
    assert events(line.format(3, 16), "member") == ["16"]
    for rank, size in [("9" * 400, "16"), ("3", "9" * 5000)]:
        assert events(line.format(rank, size), "member") == []


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_phases_of_well_known_trainers_are_found_unasked(shape: object) -> None:
    """Where they announce them at all."""
    lines = {"begin": [shape.saving, shape.evaluating], "end": [shape.saved]}  # type: ignore[attr-defined]
    for what, said in lines.items():
        for line in filter(None, said):
            assert events(line.format(step=100) + "\n", what) != []


def test_known_phases_do_not_mistake_progress_for_a_phase() -> None:
    """Their ordinary lines begin and end nothing."""
    from random import Random

    for shape in SHAPES:
        line = shape.text(1234, 2.5, Random(1)) + "\n"
        found = {event.what for event in scan(line, patterns(shape.progress))}
        assert {"number", "loss"} >= found >= {"number"}
    assert set(KNOWN_PHASES) == {"checkpoint", "evaluation"}


def test_ranks_that_announce_themselves_are_counted_once_a_line() -> None:
    """Lightning of all ages."""
    text = (
        "initializing ddp: GLOBAL_RANK: 1, MEMBER: 2/8\n"
        "INFO: Initializing distributed: GLOBAL_RANK: 6, MEMBER: 7/8\n"
    )
    found = [event for event in scan(text, patterns()) if event.what == "member"]
    assert [(event.value, event.name) for event in found] == [(1, "8"), (6, "8")]


@pytest.mark.parametrize(
    "piece",
    ["NCCL WARN ", "Connect to a", "loss: 1", "DataLoader worker ", "a1", "Bus error 1.", "<1>::",
     "Initializing distributed: GLOBAL_RANK: 7, MEMBER: 8/9\n", "iteration 7\n", "iteration 1"],
)  # fmt: skip
@pytest.mark.timeout(30)
def test_no_megabyte_of_anything_takes_long(piece: str) -> None:
    """Users write these logs: what costs the square of its length would stop all checks."""
    text = ("Bus error " + piece * (2**20 // len(piece)))[: 2**20]
    assert len(scan(text, patterns())) < 2**20
