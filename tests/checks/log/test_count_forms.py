"""A count is found by the word before, behind or above it, whatever else stands on its line."""

import re
from itertools import product
from typing import Any
from unittest.mock import Mock

import pytest

from sentinel.checks.log import advancing_numbers
from sentinel.checks.log.advancing_numbers import FEW_LINES, LINES, find_advancing_numbers
from sentinel.checks.log.losses import MIN_LOST_TIMES, find_lost_line
from sentinel.checks.log.scan import parse_progress_number
from sentinel.core.logtext import decode_log


def find_count(form: str, *, head: str = "") -> float | None:
    """The last value of the number that is found beyond doubt in lines of this form."""
    words = ("alpha", "bravo charlie", "delta", "echo", "foxtrot golf", "hotel", "india", "kilo")
    lines = [form.format(n=n, w=words[n % len(words)], r=n % 4) for n in range(100, 112)]
    text = decode_log("\n".join([head, *lines, ""]).encode())
    sure, offered = find_advancing_numbers(text)
    if not sure:
        return None
    pattern = offered[0][1]
    return parse_progress_number(re.findall(pattern, text, re.M)[-1])


COUNTS = (
    "step-{n} loss 1.9", "step_{n}: loss 1.9", "ep{n}: loss=1.9", "Step #{n} ({w})", "step is {n} ({w})",
    "Iteration no. {n} of {w}", "tokens seen: {n} {w}", "{n}th step: loss 1.9", "processed {n} batches", "Finished {n} epochs",
    "step {n}.0 loss 1.9", "step {n} of {w}", "{w}: step {n}", "step={n} sample='{w}' loss=1.9", '{{"step": {n}, "note": "{w}"}}',
    "Progress: {n}/1000", "timesteps: {n}", "frames {n} | reward 1.9", "cycle={n} time=1.2e-01", "Schritt {n}: Verlust 1.9",
    "Étape {n} : perte 1,9", "Шаг {n}: потеря 1.9", "Época {n}, perda: 1.9", "  Iteration                 {n}",
    "\x1b[2K\x1b[1Gstep {n}/5000 ({w})", "iterNum: {n}, {w}", "optimizer steps: {n}, {w}",
    "第{n}个epoch，训练损失：1.9", "第{n}步 {w}", "Batch [7-{n}] accuracy=0.1", "iter {n} s=0.1 h=0.2",
)  # fmt: skip
TABLES = (
    ("loss,lr,step", "1.9,0.001,{n}"), ("time,step,loss", "12.3,{n},1.9"), ("epoch\tstep\tloss", "0\t{n}\t1.9"),
    ("Epoch    Step      Loss        LR", "    0     {n}    1.9000    0.0010"), ("Step Temp E_pair TotEng Press", "   {n}  300.1 -6.77 -4.6 -5.02"),
    ("E    #       LOSS TOK2VEC  LOSS NER", "  0     {n}         12.00    300.00"), ("| Epoch | Iteration | Loss |", "|   1   |   {n}   | 1.9 |"),
    ('#"Progress (%)","Step","Temperature (K)"', "0.1%,{n},300.1"), ('#"Progress (%)" "Step" "Speed (ns/day)"', "0.1% {n} 9.66"), ("ETITLE:      TS           BOND", "ENERGY:     {n}      12.1"),
)  # fmt: skip
ROWS = (
    "{n} 0.31 0.12", "[  {n}] train 1.987 (55.5s)", "({n}, 0.31, 0.99)", "  {n} OT DIIS     0.15E+00    1.2     0.00012    -1100.12345678",
    "2026-01-02 03:04:05,123 INFO {n} | -1.93", "{n} -- [-1234.12] (-1240.1)", "[{n}]\ttrain-rmse:0.34521", "{n}\tnan\tnan",
)  # fmt: skip
"""Rows of measures that no word names: their count is the first number, which grows by equal amounts."""
NO_ROWS = (
    "{n} 3.2 GB", "{n} 12.5s", "worker {n} at 0.31", "{n} | 1{n} | 0.31", "elapsed {n} s loss 0.31", "port {n} loss 0.31", "loss 0.31 memory {n} MB",
)  # fmt: skip
NO_COUNTS = (
    "copied shard {n}/900", "val batch {n}/900", "Calibration batch {n}/512", "skipping batch {n}", "profiling iteration {n}",
    "benchmark iteration {n}: {w}", "Exporting step {n}/900", "dataloader worker prefetch batch {n}", "{n} samples skipped", "GC cycle {n}",
    "saved /out/step-{n}/model", "autotuning iteration {n}", "Checkpoint at step {n} removed", "lr_decay_steps={n}", "listening on port 2{n}",
)  # fmt: skip


@pytest.mark.parametrize("form", COUNTS)
def test_a_count_is_found_by_its_word(form: str) -> None:
    assert find_count(form) == 111


@pytest.mark.parametrize("form", ROWS)
def test_a_row_of_measures_begins_with_its_count(form: str) -> None:
    assert find_count(form) == 111


@pytest.mark.parametrize("form", NO_ROWS)
def test_what_grows_may_be_a_time_or_an_amount(form: str) -> None:
    assert find_count(form) is None


def test_a_first_number_that_grows_by_different_amounts_is_no_count() -> None:
    """Such as a time that began before the log."""
    text = "\n".join(f"{n * n} 0.31 0.12" for n in range(100, 112))
    assert not find_advancing_numbers(f"\n{text}")[0]


def test_a_number_of_a_rank_is_no_count_beside_the_loss() -> None:
    """It begins anew wherever the other number grows."""
    text = "\n".join(f"{rank} | {n} | loss 1.9" for n in range(100, 112) for rank in range(2))
    sure, offered = find_advancing_numbers(f"\n{text}")
    assert (sure, re.findall(offered[0][1], text)[-1]) == (True, "111")


def test_a_count_of_each_epoch_may_have_few_values() -> None:
    """harvardnlp/data2text: four lines an epoch."""
    text = "\n".join(
        f"Epoch {e} ; Iter {n}/213 ; PPL 1.9" for e in range(1, 5) for n in range(50, 250, 50)
    )
    sure, offered = find_advancing_numbers(f"\n{text}")
    assert (sure, offered[0][0]) == (True, "Iter")


@pytest.mark.parametrize(("head", "form"), TABLES)
def test_a_count_is_found_by_the_word_above_it(head: str, form: str) -> None:
    assert find_count(form, head=head) == 111


WORDS = ["".join(letters) for letters in product("abcdefghij", repeat=4)][:900]
LOGS_OF_WORDS = {
    "a word a line": "\n".join(f"{word}_step {n}" for n in range(5) for word in WORDS),
    "words in a line": "\n".join(
        " ".join(f"{word}_step {n}" for word in WORDS[at : at + 80])
        for n in range(8)
        for at in range(0, 880, 80)
    ),
    "lines that differ": "\n".join(f"{word} epoch {n} {word}_iter {n} [{n}/9]" for n in range(3) for word in WORDS),
}  # fmt: skip


@pytest.mark.parametrize("lines", [LINES, FEW_LINES])
@pytest.mark.parametrize("text", LOGS_OF_WORDS.values(), ids=LOGS_OF_WORDS.keys())
def test_the_log_is_not_searched_for_each_of_its_words(
    text: str, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """54 KB of different words took four seconds: each is searched in all of the log."""
    searched = list[str]()

    def search(pattern: str, *more: Any) -> list[Any]:
        searched.append(pattern)
        return re.compile(pattern, *more[1:]).findall(*more[:1])

    monkeypatch.setattr(advancing_numbers, "re", Mock(wraps=re, M=re.M, findall=search))
    find_advancing_numbers(f"\n{text}", lines)
    assert len(searched) < 500


def test_among_many_words_the_one_that_occurs_most_is_found() -> None:
    """Also where it comes last."""
    steps = "\n".join(f"Step {n}: fine" for n in range(50))
    sure, offered = find_advancing_numbers(f"\n{LOGS_OF_WORDS['a word a line']}\n{steps}")
    assert (sure, offered[0][0]) == (True, "Step")


def test_the_lines_of_ranks_that_are_a_step_behind_each_other_are_one_count() -> None:
    assert find_count("[rank1] step {n} loss 1.9\n[rank0] step {n} loss 1.9") == 111
    late = "".join(f"step {n - r} loss 1.9\n" for n in range(100, 112) for r in (0, 1))
    assert find_advancing_numbers(f"\n{late}")[0]


@pytest.mark.parametrize("form", NO_COUNTS)
def test_what_counts_no_training_is_not_its_progress(form: str) -> None:
    assert find_count(form) is None


@pytest.mark.parametrize(
    ("train", "validation", "lost"),
    [("0.3", "nan", True), ("nan", "0.3", True), ("0.3", "0.4", False)],
)
def test_a_loss_of_a_validation_has_another_name(train: str, validation: str, lost: bool) -> None:
    """InhwanBae/DMRGCN: one word for both, so the finite one hid the NaN of the other."""
    lines = "".join(
        f"Train Epoch: {n} Loss: {train}\nValid Epoch: {n} Loss: {validation}\n" for n in range(9)
    )
    assert bool(find_lost_line(lines)) is lost


LOST = (
    "loss(nan)", "loss[nan]", "loss {nan}", "loss ~ nan", "loss0: nan loss1: 1.2", "loss@1: nan", "lossD nan", "loss (mean ± std): nan ± nan",
    "avg. loss of train: nan", "the training loss is now nan", "loss became nan", "loss has value nan", "NaN loss encountered, skipping batch", "Found nans while computing loss",
    "Loss is not finite", "non-finite loss, skipping step", "loss = NaN32", "loss nanq", "loss ∞", "Verlust: nan", "pérdida: nan", "perda = nan", "NLL nan",
    "elbo: nan", "bits per char nan", "energy nan", "total_norm nan", '{\\"loss\\": NaN}', "epoch train_loss val_loss\n1 nan nan\n2 nan nan\n3 nan nan",
)  # fmt: skip
FINITE = (
    "loss was not nan", "lossScale: inf", "loss(1.9)", "NaN loss check is on, loss 1.9", "skipped a NaN loss\nstep 12 train_loss: 1.9", "loss of train: 1.9",
    "nans while computing loss\nstep 12 loss: 1.9", "looks for nans in loss",
)  # fmt: skip


@pytest.mark.parametrize("form", LOST)
def test_a_loss_that_is_no_number_is_found_in_any_words(form: str) -> None:
    assert find_lost_line(f"{form}\n" * MIN_LOST_TIMES)


@pytest.mark.parametrize("form", FINITE)
def test_words_beside_a_loss_are_no_lost_loss(form: str) -> None:
    assert not find_lost_line(f"{form}\n" * 2 * MIN_LOST_TIMES)


def find_last_count(text: str, head: str = "") -> float | None:
    """The last value of the number that is found beyond doubt, if the log begins with `head`."""
    sure, offered = find_advancing_numbers(decode_log(text.encode()), head=head)
    told = re.findall(offered[0][1], text, re.M) if sure else []
    return parse_progress_number(told[-1]) if told else None


def test_a_best_epoch_at_the_end_is_no_progress() -> None:
    lines = "".join(f"[pretrain] epoch {n:3d}/40  train=5.1  heldout=5.2\n" for n in range(29))
    assert find_last_count(lines) == 28
    assert find_last_count(f"{lines}early stop, best epoch 22, total 5.1\n") == 28


def test_an_epoch_that_begins_anew_with_another_run_is_told_by_its_last_line() -> None:
    """Its end is told by other lines, in words of a validation as well."""
    run = "".join(
        f"- Starting epoch {n}/13\n- Calculating validation loss at end of epoch {n}...\n"
        f"- Epoch {n} validation loss: 11.88\n"
        for n in range(1, 14)
    )
    assert find_last_count(f"start\n{run}") == 13
    assert find_last_count(f"start\n{run}- Starting epoch 1/13\n") == 1


def test_the_words_above_a_table_may_stand_only_at_the_beginning_of_the_log() -> None:
    rows = "".join(f"1,{n}.0,0.0{n % 7}24207,0.35\n" for n in range(90, 100))
    assert find_last_count(rows, head="id,epoch,train_loss,acc\n1,0.0,0.0224,0.16\n") == 99
    assert find_last_count(rows, head="id,width,train_loss,acc\n1,0.0,0.0224,0.16\n") is None


def test_a_row_of_measures_may_begin_with_the_name_of_a_month() -> None:
    said = "[Mar 29, 16:34:{s:02d}] {n} {end}\n"
    forms = (range(10, 22), "5.2992", 21), (range(10, 22), "MiB 5.2992", None)
    for counts, end, right in forms:
        text = "start\n" + "".join(said.format(s=n * 7 % 60, n=n, end=end) for n in counts)
        assert find_last_count(text) == right


def test_three_epochs_tell_the_progress_if_their_loss_stands_beside_them() -> None:
    assert find_last_count("".join(f"Epoch {n} | T_Loss 12.{n}\n" for n in range(4))) == 3
    assert find_last_count("".join(f"Epoch {n} | {n * 37 % 11} files\n" for n in range(4))) is None


@pytest.mark.parametrize(
    "form", ["Эпизод {n} завершён за 6 шагов", "Episodio {n}: 1.9", "Krok {n}: 1.9"]
)
def test_more_languages_have_words_for_progress(form: str) -> None:
    assert find_count(form + " ({w})") == 111
