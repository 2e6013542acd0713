"""Logs that somebody looked for who had read the code again; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause, assert_number_and_loss, of_growing_log
from tests.world.test_causes_drawn import COST, FRAME
from tests.world.test_progress_drawn import FINE, NAN, WRONG, rows

NUMBERS = (
    Case("metrics-that-nobody-has-evaluated-yet", "Flower, a strategy of one's own", rows("round {n} acc nan auc nan"), (111, FINE), WRONG),
    Case("a-step-in-brackets-at-the-end", "a loop of one's own", rows("loss 2.31 lr 3e-4 (step {n})"), (111, FINE), WRONG),
    Case("apostrophes-of-the-swiss", "a locale de_CH", "".join(f"step {n:,} loss 2.31\n".replace(",", "'") for n in range(10000, 11200, 100)), (11100, FINE), WRONG),
    Case("steps-that-are-left", "a loop of one's own", "".join(f"{n} steps left, loss 2.31\n" for n in range(111, 99, -1)), (None, FINE), WRONG),
    Case("steps-that-were-trained-in-chinese", "a loop of one's own", rows("已训练 {n} 步, 损失 2.31"), (111, FINE), WRONG),
    Case("thousands-with-decimals", "a loop of one's own", "".join(f"iter 1.{n:02d}k | loss 2.31\n" for n in range(20, 32)), (1310, FINE), WRONG),
    Case("an-epoch-with-decimals", "a loop of one's own", "".join(f"epoch {n / 10:.2f} | loss 2.31\n" for n in range(11, 23)), (2.2, FINE), WRONG),
    Case("a-count-one-level-deeper", "structlog", "".join(f'{{"ts": "2026-11-27T23:00:{n % 60:02d}Z", "train": {{"global_step": {n}, "loss": 2.31}}}}\n' for n in range(100, 112)), (111, FINE), WRONG),
    Case("a-file-before-a-step", "a loop of one's own", "".join(f"file {n // 3} of 90, step {n}, loss 2.31\n" for n in range(100, 112)), (111, FINE), WRONG),
    Case("a-perplexity-alone", "a loop of one's own", rows("step {n} ppl nan"), (111, NAN), WRONG),
    Case("nan-while-it-warms-up", "apex, while the scale is found", rows("step {n} loss nan", 100, 102) + rows("step {n} loss 2.31", 102, 112), (111, FINE), WRONG),
    Case("one-rank-of-two-is-lost", "torchrun", rows("[rank0]: step {n} loss 2.31\n[rank1]: step {n} loss nan"),
         # Written down was NaN, and counts as wrong: the loss of the other rank has the same name, and is finite.
         (111, FINE), WRONG),
    Case("a-tensor-with-its-function", "PyTorch, print(loss)", rows("Step {n}: loss=tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)"), (111, NAN), WRONG),
    Case("a-speed-before-its-step", "a loop of one's own", "".join(f"12.{n % 10} steps/s at step {n} loss 2.31\n" for n in range(100, 112)), (111, FINE), WRONG),
    Case("trials-and-the-best-of-them", "Optuna 4", "".join(f"[I 2026-11-27 23:00:{n % 60:02d},123] Trial {n} finished with value: 0.83{n} and parameters: {{'lr': 0.00{n}}}. Best is trial 97 with value: 0.9.\n"
                                                            for n in range(100, 112)), (111, FINE), WRONG),
)  # fmt: skip
CAUSES = (
    Case("a-segfault-in-german", "bash, a locale de_DE", "epoch 3 loss 2.1\n/var/spool/slurmd/job42/slurm_script: Zeile 12: 4711 Speicherzugriffsfehler (Speicherabzug geschrieben) ./train\n", "Speicherzugriffsfehler", COST),
    Case("killed-in-chinese", "bash, a locale zh_CN", "epoch 3 loss 2.1\n./run.sh: 行 12: 4711 已杀死               python train.py\n", "已杀死", COST),
    Case("no-errors-at-all", "a script of one's own", "epoch 3 loss 2.1\nINFO No errors found, 0 failed, 0 errors\nAll checks passed\n", "", COST),
    Case("memory-of-hip", "PyTorch 2.9, ROCm", FRAME + "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 63.98 GiB of which 1.2 GiB is free.\n", "CUDA out of memory", COST),
    Case("semaphores-at-the-end", "CPython 3.12", "Training complete.\n/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 6 leaked semaphore objects to clean up at"
         " shutdown\n  warnings.warn('resource_tracker: There appear to be %d '\n", "", COST),
    Case("a-board-whose-port-is-taken", "TensorBoard", "Error: listen tcp :6006: bind: address already in use\n" + rows("step {n} loss 2.31"), "", COST),
    Case("a-panic-of-tokenizers", "tokenizers", "thread '<unnamed>' panicked at src/lib.rs:12:5:\nindex out of bounds: the len is 3 but the index is 9\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", "index out of bounds", COST),
    Case("make-below-an-exception", "GNU make", FRAME + "ValueError: bad shape (3, 4)\nmake: *** [Makefile:12: train] Error 1\n", "bad shape", COST),
    Case("a-sample-is-left-out", "a script of one's own", "ERROR: evaluation failed for sample 12, skipping\nepoch 3 loss 2.1\nDone.\n", "", COST),
    Case("a-script-that-may-not-be-run", "Slurm 25.11", "slurmstepd: error: execve(): ./train.sh: Permission denied\nsrun: error: n1: task 0: Exited with exit code 13\n", "Permission denied", COST),
    Case("a-group-of-one", "CPython 3.12, Lib/traceback.py", "  + Exception Group Traceback (most recent call last):\n  |   File \"/w/train.py\", line 12, in <module>\n  |     asyncio.run(main())\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
         "  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"/w/train.py\", line 7, in load\n    |     raise ValueError(\"bad shard 7\")\n    | ValueError: bad shard 7\n    +------------------------------------\n", "bad shard 7", COST),
    Case("a-quota-of-scratch", "CPython", FRAME + "OSError: [Errno 122] Disk quota exceeded: '/scratch/ann/ckpt-100.pt'\n", "disk", COST),
    Case("a-tracker-that-ends-the-training", "W&B", "wandb: ERROR Run initialization has timed out after 90.0 sec. \n" + FRAME + "wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.\n", "Run initialization has timed out", COST),
    Case("a-word-in-the-name-of-a-file", "a loop of one's own", rows("step {n} loss 2.31 data/error_cases/failed_0{n}.jsonl"), "", COST),
    Case("an-assertion-without-words", "CPython", 'Traceback (most recent call last):\n  File "/w/train.py", line 12, in <module>\n    assert x.shape == y.shape\nAssertionError\n', "AssertionError", COST),
)  # fmt: skip


@each(*NUMBERS)
def test_the_number_and_the_loss_of_a_log_that_was_hunted_again(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)


@each(*CAUSES)
def test_the_cause_in_a_log_that_was_hunted_again(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)


def test_rows_without_a_finite_value_are_a_lost_loss_until_a_finite_one_comes(
    tmp_path: Path,
) -> None:
    """qpth issue 35: nobody knows the names of all residuals."""
    lost = [f"iter: {n}, pri_resid: nan, dual_resid: nan\n" for n in range(3)]
    found = [f"iter: {n}, pri_resid: 0.1, dual_resid: 0.3\n" for n in range(3, 5)]
    answers = of_growing_log(tmp_path, [*lost, *found])
    assert [answer.loss for answer in answers] == [FINE, FINE, NAN, FINE, FINE]


def test_rows_of_metrics_that_are_not_evaluated_lose_nothing(tmp_path: Path) -> None:
    rounds = [f"round {n} acc nan auc nan\n" for n in range(6)]
    assert all(answer.loss == FINE for answer in of_growing_log(tmp_path, rounds))
