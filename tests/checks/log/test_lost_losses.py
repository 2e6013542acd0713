"""When a loss is lost: by its steps, in any dress, and by the rows after a sentence."""

import pytest

from sentinel.checks.log.loss_tables import LossValue
from sentinel.checks.log.losses import FINITE_ROWS_NAME, find_losses
from sentinel.core.model import Status
from tests.checks.log.test_secondary import look, said

DRESSES = (
    "[Loss] {}", "<loss> {}", "**loss**: {}", "`loss` {}", "(loss) {}", "| *loss* | {} |", '"loss" -> {}', "loss => {}", "loss := {}", "[loss]={}",
    "[train/loss]: {}", "loss]: {}", "{{loss}} = {}", "'loss'= '{}'", "loss >> {}", "[Loss]   [{}]",
)  # fmt: skip
"""nv-tlabs/LION#9 prints the first."""

RANKS = (
    "[rank{rank}]: step {n} loss: {loss}", "{rank}: step {n} loss: {loss}", "[1,{rank}]<stdout>:Iter {n} | loss {loss}", "rank={rank} step={n} loss={loss}",
    '{{"rank": {rank}, "step": {n}, "loss": {loss}}}', "2026-01-02 03:04:0{rank},12{rank} node-{rank} INFO Epoch 3 batch {n}/900 loss {loss}",
    "(RayTrainWorker pid={rank}77, ip=10.0.0.{rank}) step {n} train_loss {loss}", "[{rank}] [step {n}] loss={loss} time={rank}.5s",
    "GPU {rank} | iteration {n} | loss: {loss} | mem: 7{rank}.1 GiB",
)  # fmt: skip

SENTENCES = (
    "WARNING - Loss is nan.", "loss is nan at step {n}, skipping the update", "Warning: bad batch (batch_loss=nan), ignored", "detected loss: inf in batch {n}",
    "[step {n}] the loss became nan! gradients are zeroed",
)  # fmt: skip
"""speechbrain/core.py, `check_loss_isfinite`, prints the first."""

ROWS = (
    "{p}%|# | {n}/9876 [00:07<99:11, 2.31it/s, train_loss={loss:.2f}]",
    "step {n} loss: {loss:.4f} lr: 3e-4",
)


def judge(text: str, lines: int) -> Status:
    """The status after looks at so many lines each."""
    every = text.splitlines(keepends=True)
    looks = ["".join(every[n : n + lines]) for n in range(0, len(every), lines)]
    return said("loss", *(look(n, part) for n, part in enumerate(looks)))[0]


@pytest.mark.parametrize("lines", [3, 1000])
@pytest.mark.parametrize("dress", DRESSES)
def test_a_loss_is_lost_whatever_stands_between_it_and_its_name(dress: str, lines: int) -> None:
    form = "R0 | " + dress + " | [step] {} | [url] none\n"
    well = "".join(form.format(900.5 - n, n) for n in range(30))
    assert judge(well, lines) is Status.OK
    assert (
        judge(well + "".join(form.format("nan", n) for n in range(30, 36)), lines)
        is Status.CRITICAL
    )


@pytest.mark.parametrize("form", RANKS)
def test_a_step_is_one_however_many_ranks_tell_it(form: str) -> None:
    """One NaN does no harm, because a trainer skips it."""

    def rows(*losses: str) -> str:
        return "".join(
            form.format(rank=rank, n=17 + n, loss=loss) + "\n"
            for n, loss in enumerate(losses)
            for rank in range(8)
        )

    assert judge(rows("0.5", "0.4", "nan"), 1000) is Status.OK
    assert judge(rows("0.5", "nan", "0.4", "nan"), 1000) is Status.OK
    assert judge(rows("0.5", "nan", "nan", "nan"), 1000) is Status.CRITICAL
    assert judge(rows("0.5", "nan", "nan", "nan"), 8) is Status.CRITICAL


def test_rows_that_do_not_count_their_steps_are_a_step_each() -> None:
    """As of `transformers`, whose epoch is rounded."""
    row = "{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.02}\n"
    assert judge(row * 3, 1000) is Status.CRITICAL
    assert judge("loss: nan\n" * 3, 1000) is Status.CRITICAL


@pytest.mark.parametrize("lines", [50, 301, 10**6])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_that_is_printed_only_for_a_nan_is_judged_by_the_rows_after_it(
    sentence: str, row: str, lines: int
) -> None:
    def rows(first: int, count: int) -> str:
        several = range(first, first + count)
        return "".join(row.format(n=n, p=n // 99, loss=0.9 - n / 2000) + "\n" for n in several)

    told = [sentence.format(n=300 * n) + "\n" for n in range(1, 7)]
    well = "".join(rows(300 * n, 300) + told[n] for n in range(4))
    assert judge(well, lines) is Status.OK, "the last thing is a sentence"
    assert judge(well + rows(1200, 20), lines) is Status.OK
    assert judge(well + told[4] + told[5], lines) is Status.CRITICAL, (
        "three in a row, and no row between"
    )
    still = row.format(n=1200, p=12, loss=0.3) + "\n"
    assert judge(rows(0, 300) + "".join(one + still for one in told[:4]), 10**6) is Status.CRITICAL


BAR = "Epoch 4: {p}%|# | {n}/870 [00:07<05:11, 2.61it/s, loss={loss}, v_num=3, val_loss=0.522, train_loss{more}]\n"


@pytest.mark.parametrize("lines", [20, 10**6])
def test_a_neighbour_excuses_a_nan_only_if_it_moves(lines: int) -> None:
    """Lightning-AI/pytorch-lightning#1238 prints the mean of the last epoch beside its running loss. On a rank
    without a loss (neuronx-nemo-megatron) the running one is always NaN, and its own one moves."""

    def bars(loss: str, more: str) -> str:
        return "".join(
            BAR.format(p=n // 9, n=n, loss=loss, more=more.format(x=0.9 - n / 1000))
            for n in range(400)
        )

    assert judge(bars("0.48", "=0.481"), lines) is Status.OK
    assert judge(bars("0.48", "=0.481") + bars("nan", "=0.481"), lines) is Status.CRITICAL
    assert judge(bars("nan", "_step={x:.3f}"), lines) is Status.OK
    assert judge(bars("nan", "={x:.3f}"), lines) is Status.OK
    assert judge(bars("nan", "=nan"), lines) is Status.CRITICAL


@pytest.mark.parametrize(
    ("first", "then", "status"),
    [
        ("D loss: {x}\nG loss: 0.3\n", "D loss: {x}\nG loss: nan\n", Status.CRITICAL),
        ("D loss: {x}\nG loss: nan\n", "D loss: {x}\nG loss: nan\n", Status.CRITICAL),
        ("loss: {x} best loss: 0.1\n", "loss: nan best loss: 0.1\n", Status.CRITICAL),
        ("loss: nan aux_loss: {x}\n", "loss: nan aux_loss: {x}\n", Status.CRITICAL),
        ("loss: {x} grad: 0.1\n", "loss: {x} grad: nan\n", Status.OK),
        ("loss: {x}\n", "loss: {x}\nbest loss: inf\n", Status.OK),
    ],
)  # fmt: skip
def test_what_another_loss_says(first: str, then: str, status: Status) -> None:
    lines = [(first if n < 30 else then).format(x=f"{2 - n / 90:.4f}") for n in range(60)]
    assert judge("".join(lines), 10**6) is status
    assert judge("".join(lines), 4) is status


PARTS = (
    ("step {n} loss {x} loss/math nan loss/code 0.7{n}\n", Status.OK),
    ('{{"step": {n}, "loss/math": NaN, "loss/code": 0.7{n}, "loss": {x}}}\n', Status.OK),
    ("train/loss: {x} | train/loss/math: nan | train/loss/code: 0.7{n}\n", Status.OK),
    ("grad_norm {x} grad_norm/decoder/experts nan loss 0.7{n}\n", Status.OK),
    ("step {n} loss nan loss/math nan loss/code 0.7{n}\n", Status.CRITICAL),
    ("step {n} loss/math nan loss/code {x}\n", Status.CRITICAL),
    ("step {n} loss nan loss/math {x}\n", Status.CRITICAL),
    ("val/loss: {x} | train/loss/math: nan\n", Status.CRITICAL),
    ("old_loss: {x} | loss/math: nan\n", Status.CRITICAL),
    ("step {n} loss 0.31 loss/math nan loss/code nan\n", Status.CRITICAL),
)  # fmt: skip
"""NVIDIA-NeMo/RL and axolotl tell the loss of each source of data, which is NaN while no sample of it was drawn."""


@pytest.mark.parametrize("lines", [4, 10**6])
@pytest.mark.parametrize(("row", "status"), PARTS)
def test_a_part_that_is_nan_beside_a_finite_total_is_not_in_it(
    row: str, status: Status, lines: int
) -> None:
    """NaN stays NaN in a sum. Only the total of this name, on this row, excuses a part, and only while it moves."""
    well = "".join(f"step {n} loss {2 - n / 90:.4f} loss/math 0.4{n}\n" for n in range(30))
    rows = "".join(row.format(n=n, x=f"{2 - n / 90:.4f}") for n in range(30, 60))
    assert judge(well + rows, lines) is status


def test_finite_rows_are_one_event_of_a_text() -> None:
    def rows(text: str) -> list[LossValue]:
        return [one for one in find_losses(text) if one[1] == FINITE_ROWS_NAME]

    assert len(rows("loss: 1.5\n" * 2000)) == 1
    assert rows("val_loss: 1.5\nbest_loss: 1.4\nloss_scale: 3\n") == []
    assert rows("loss: 1.5\nLoss is nan\nloss: 1.4\n") == []
    assert len(rows("loss: 1.5\nLoss is nan\nloss: 1.4\nloss: 1.3\n")) == 1
