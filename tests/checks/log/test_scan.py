"""Rules of what a text says: numbers, phases, losses, ranks, in their order."""

import re
import time
from math import isfinite

import pytest

from sentinel.checks.log.loss_tables import find_table_losses
from sentinel.checks.log.losses import FINITE_ROWS_NAME
from sentinel.checks.log.recognition import recognise_log
from sentinel.checks.log.scan import (
    KNOWN_PHASES,
    MAX_EVENTS,
    LogPatterns,
    limit_events,
    merge_phases,
    scan_text,
)
from sentinel.checks.log.settings import name_patterns
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.errors import Invalid
from sentinel.core.logtext import decode_log
from tests.replay.shapes import SHAPES


def patterns(progress: str = r"iteration ([\d,.e]+)") -> LogPatterns:
    return LogPatterns(
        name_patterns(re.compile(progress)), merge_phases({}), None, TroubleFinder({}, [])
    )


def events(text: str, what: str, progress: str = r"iteration ([\d,.e]+)") -> list[object]:
    found = [event for event in scan_text(text, patterns(progress)) if event.what == what]
    found = [event for event in found if event.name != FINITE_ROWS_NAME]
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


def test_a_download_at_the_beginning_blinds_nobody() -> None:
    """Its bar counts in megabytes, and is the only number that advances yet."""
    bar = "model.safetensors:   2%|▏         | {}/2.00G [00:01<01:10, 28.1MB/s]\n"
    text = "".join(bar.format(size) for size in ("900k", "33.5M", "1.07G"))
    text += "Loading:  10%|█         | 1/10 [00:01<00:10, 1.0it/s]\n"
    known = recognise_log(text).number
    assert known is not None
    assert events(text, "number", known.pattern) == pytest.approx([900e3, 33.5e6, 1.07e9])


def test_a_pattern_may_begin_with_a_line() -> None:
    """`^` means a line of the log, not the piece of it that was just read."""
    assert events("noise\nat 7\n", "number", r"^at (\d+)$") == [7]


def test_captured_text_that_is_no_number_is_left_out() -> None:
    """Anybody may write it into a log: the numbers around it count."""
    words = ("1", "one", "9" * 400, "1e999", "nan", "inf", "2")
    assert events("".join(f"at {word}\n" for word in words), "number", r"at (\w+)") == [1, 2]
    assert events("at one\n", "number", r"at (\w+)") == []


def test_a_pattern_without_a_group_is_refused_with_its_name() -> None:
    """One of several too."""
    with pytest.raises(Invalid, match="captures nothing") as caught:
        name_patterns({"iteration": re.compile(r"it (\d+)"), "samples": re.compile("samples")})
    assert caught.value.path == ("progress", "samples")


def test_several_patterns_without_names_are_numbered() -> None:
    """One is called progress, however it is written."""
    one, two = re.compile("a(1)"), re.compile("b(2)")
    assert list(name_patterns([one])) == ["progress"]
    assert list(name_patterns([one, two])) == ["progress 1", "progress 2"]
    assert name_patterns("auto") == name_patterns("growth") == {}


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
            decode_log(b"\x1b[31mstep: 22  \x1b[32mloss:  nan  \x1b[34mmemory: 1GiB\x1b[39m"),
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
    found = [e for e in scan_text(line, patterns()) if e.what == "loss" and "norm" not in e.name]
    told = [e for e in found if e.name != FINITE_ROWS_NAME]
    assert [not isfinite(event.value) for event in told] == bad


@pytest.mark.parametrize(
    "line",
    ["CENTER_LOSS_WEIGHT: 0.0005", '"aux_loss_alpha": 0.001', "kl_loss_coef=0.1", "'loss_type': 1",
     "max_grad_norm: 1.0", "'clip_grad_norm': 1.0"],
)  # fmt: skip
def test_a_setting_with_a_loss_in_its_name_is_none(line: str) -> None:
    """Whole configurations stand at the beginning of most logs."""
    assert [e for e in scan_text(line, patterns()) if e.what in ("loss", "value")] == []


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


def test_mlperf_evaluates_between_two_lines() -> None:
    """Whatever stands before its mark, and whatever its `metadata` holds."""
    line = '0: :::MLLOG {{"namespace": "", "time_ms": 17, "key": "{}", "value": null}}\n'
    text = "".join(line.format(key) for key in ("eval_start", "eval_accuracy", "eval_stop"))
    assert (events(text, "begin"), events(text, "end")) == (["evaluation"], ["evaluation"])


def test_known_phases_do_not_mistake_progress_for_a_phase() -> None:
    """Their ordinary lines begin and end nothing."""
    from random import Random

    for shape in SHAPES:
        line = shape.text(1234, 2.5, Random(1)) + "\n"
        found = {event.what for event in scan_text(line, patterns(shape.progress))}
        assert {"number", "loss", "value", "pace", "rows"} >= found >= {"number", "rows"}
    assert set(KNOWN_PHASES) == {"checkpoint", "evaluation"}


def test_ranks_that_announce_themselves_are_counted_once_a_line() -> None:
    """Lightning of all ages."""
    text = (
        "initializing ddp: GLOBAL_RANK: 1, MEMBER: 2/8\n"
        "INFO: Initializing distributed: GLOBAL_RANK: 6, MEMBER: 7/8\n"
    )
    found = [event for event in scan_text(text, patterns()) if event.what == "member"]
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
    assert len(scan_text(text, patterns())) < 2**20


WHOLE = (
    " iteration {}/ 10 | {}loss scale: 1.0 | grad norm: 0.2 |"
    " number of skipped iterations: {:3d} | number of nan iterations: {:3d} |"
)


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        pytest.param("v_num=0, loss=nan.0, val_loss=1.23]", ["loss"], id="Lightning, two names"),
        pytest.param(
            "14.05s/it, loss=nan, v_num=, reduced_train_loss=3.9, gradient_norm=1.0",
            [],
            id="Lightning's running loss of a rank in a pipeline that has none",
        ),
        pytest.param(
            "2s/it, loss=nan, reduced_train_loss=nan]", ["loss", "reduced_train_loss"], id="both"
        ),
        pytest.param("reduced_train_loss: nan | val_loss: 1.2", ["reduced_train_loss"], id="NeMo"),
        pytest.param("train/CrossEntropyLoss=nan", ["train/CrossEntropyLoss"], id="OLMo"),
        pytest.param("train/CE loss=nan", ["train/CE loss"], id="OLMo-core"),
        pytest.param("\t Train loss/train/total: nan", ["Train loss/train/total"], id="Composer"),
        pytest.param(
            "step 9: train loss 4.1, val loss nan", ["val loss"], id="nanoGPT, evaluation"
        ),
        pytest.param("iter 5: loss nan, time 512.31ms", ["loss"], id="nanoGPT, blanks"),
        pytest.param("step 5 | loss: nan | norm: nan |", ["loss", "norm"], id="build-nanogpt"),
        pytest.param("iter 1 step 2 | loss train: nan, val: n/a", ["loss train"], id="litgpt"),
        pytest.param("{'loss': 0.0, 'grad_norm': nan}", ["grad_norm"], id="Hugging Face, a norm"),
        pytest.param("{'loss': 'nan', 'grad_norm': '0.1'}", ["loss"], id="Hugging Face, quoted"),
        pytest.param('{"loss": "nan", "gnorm": "nan"}', ["loss", "gnorm"], id="metaseq"),
        pytest.param('"key": "train_loss", "value": NaN, "me', ["train_loss"], id="MLLOG"),
        pytest.param("loss: tensor(nan, device='cuda:0')", ["loss"], id="a tensor"),
        pytest.param("LOSS: NAN", ["LOSS"], id="capitals"),
        pytest.param("step: 1  acc: 0  loss:  7.1  grad: nan  flops", ["grad"], id="lingua"),
        pytest.param("lm_loss: nan | lr: 0.0003", ["lm_loss"], id="nanotron"),
        pytest.param(
            "lm loss value: NAN | lm loss PPL: NAN |",
            ["lm loss value", "loss PPL"],
            id="validation",
        ),
        pytest.param("epoch: 1 step: 17, loss is nan", ["loss is"], id="MindSpore"),
        pytest.param(
            "     3/99   4.36G    nan    nan    nan     40    640:  12%|█▎ | 9/56",
            ["loss"],
            id="YOLO",
        ),
        pytest.param(
            "ep 2 train, step 587, ctc_4 nan, ce 2.1, num_seqs 5, 0.6 sec/step, elapsed 0:01",
            ["loss"],
            id="RETURNN",
        ),
        pytest.param(
            "ep 2 train, step 587, ctc_4 1.2, ce 2.1, num_seqs 5, 0.6 sec/step, elapsed 0:01",
            [],
            id="RETURNN, finite",
        ),
        pytest.param(" 117: -nan, -nan avg loss, 0.001 rate, 3 seconds", ["loss"], id="darknet"),
        pytest.param(
            "Step 50/ 900; acc: 0.1; ppl: nan; xent: nan; lr: 1", ["ppl", "xent"], id="OpenNMT"
        ),
        pytest.param(
            "     3/99   4.36G  0.1  0.2  0.3     40    640:  12%|", [], id="YOLO, finite"
        ),
        pytest.param("| loss 7.1 (+nanz)| norm 1.2 (+nanz)|", [], id="llm.c has no z-score yet"),
        pytest.param("step_avg:nanms accuracy=nan", [], id="neither time nor accuracy"),
        pytest.param("grad norm: inf | loss scale: inf | params norm: nan", [], id="an overflow"),
        pytest.param("loss_scale=inf loss info", [], id="other words"),
    ],
)
def test_what_is_no_number_is_told_by_its_name(line: str, lost: list[str]) -> None:
    """A finite one beside it changes nothing."""
    found = [e for e in scan_text(line, patterns()) if e.what == "loss"]
    assert [event.name for event in found if not isfinite(event.value)] == lost


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (WHOLE.format(1, "lm loss: 2.1E+00 | ", 0, 0), set()),
        (WHOLE.format(1, "lm loss: 2.1E+00 | ", 3, 1), {"nan iterations"}),
        (WHOLE.format(1, "", 0, 0), {"left out"}),
        (WHOLE.format(1, "", 1, 0), {"skipped iterations"}),
        (WHOLE.format(1, "", 1, 1), {"skipped iterations", "nan iterations"}),
    ],
)
def test_megatron_tells_a_nan_by_what_it_counts_and_leaves_out(line: str, names: set[str]) -> None:
    """A loss that is no number is not greater than 0, which is what it prints."""
    found = [e for e in scan_text(line + "\n", patterns()) if e.what == "loss" and e.value > 0]
    assert {event.name for event in found} - {"lm loss", "grad norm"} == names


def test_a_loss_that_stays_finite_is_said_once_a_text() -> None:
    """Ten thousand lines are one event, so that reading stays quick."""
    found = events("loss: 1\n" * 9 + "loss: nan\n" * 2 + "loss: 2\n" * 9, "loss")
    assert [str(value) for value in found] == ["2.0"]


def test_a_loss_that_stays_lost_is_said_once_with_how_often() -> None:
    """A MiB of `loss=nan` is little to send and to count."""
    text = "loss: nan\n" * 2 + "loss: 1\n" + "loss: nan\n" * 5000
    found = [e for e in scan_text(text, patterns()) if e.what == "loss" and e.name == "loss"]
    assert [(str(event.value), event.times) for event in found] == [("1.0", 1), ("nan", 5000)]
    assert text.index("1") < found[1].at < text.index("1") + 10


def test_there_are_few_losses_whatever_their_names() -> None:
    text = "".join(f"a{n} loss: nan\na{n} loss: 1\nb{n} loss: nan\n" for n in range(5000))
    assert len([event for event in scan_text(text, patterns()) if event.what == "loss"]) < 200


@pytest.mark.parametrize("line", ["a  loss\n", "a | loss |\n", "step,train_loss\n"])
def test_lines_that_all_name_columns_are_read_once(line: str) -> None:
    """Each would be a table of 2000 rows: 64 KiB took a minute."""
    began = time.thread_time()
    assert [*find_table_losses(line * (2**16 // len(line)))] == []
    assert time.thread_time() - began < 5


@pytest.mark.parametrize(
    "survived",
    [
        "Traceback (most recent call last): retrying with\n",
        "Exception ignored in: x\nTraceback (most recent call last):\n",
    ],
)
def test_what_follows_thousands_of_survived_tracebacks_is_told(survived: str) -> None:
    """Looking for each one's exception on 400 lines took sixty times as long as a plain text."""
    real = "a\nb\n" * 600 + 'Traceback (most recent call last):\n  File "a", line 1\nKeyError: 1\n'
    began = time.thread_time()
    found = [e.trouble for e in scan_text(survived * 5000 + real, patterns()) if e.trouble]
    assert time.thread_time() - began < 10
    assert found[-1].kind in ("Python exception", "Python traceback")


def test_a_table_goes_on_below_its_header_when_that_is_written_again() -> None:
    text = "epoch  train_loss\n0  1.5\nepoch  train_loss\n1  nan\n2  nan\n"
    found = [event for event in scan_text(text, patterns()) if event.what == "loss"]
    assert [(e.name, str(e.value), e.times) for e in found] == [
        ("train_loss", "1.5", 1),
        ("train_loss", "nan", 2),
    ]


def test_a_loss_without_a_name_before_it_is_its_own_number() -> None:
    """Not a zero that stands for "finite": the page draws it."""
    from sentinel.checks.log.losses import find_losses

    assert [loss[2] for loss in find_losses(" 7: 81.25, 92.5 avg, 0.001 rate, 3 seconds\n")] == [
        81.25
    ]
    yolo = "  3/99  4.2G  0.0517  0.0342  0.0123  52  640:  12%\n"
    assert [loss[2] for loss in find_losses(yolo)] == [0.0517]


def test_of_a_hundred_thousand_steps_the_newest_are_told_on() -> None:
    """Whoever remembers them works in the service: 100,000 took a quarter of a second and 24 MB."""
    text = "".join(f"iteration {n} loss {2 + n % 7 / 10}\n" for n in range(40_000))
    found = scan_text(text, patterns())
    few = limit_events(found)
    every, kept = ([e for e in events if e.what == "number"] for events in (found, few))
    assert len(every) == 40_000
    assert MAX_EVENTS <= len(kept) < MAX_EVENTS + 10
    assert kept == every[-len(kept) :]
    assert [e for e in few if e.what == "loss"] == [e for e in found if e.what == "loss"]


def test_a_usual_log_loses_nothing() -> None:
    text = "".join(f"iteration {n} loss 2.{n}\n" for n in range(4_999))
    found = scan_text(text, patterns())
    assert limit_events(found) is found
