"""Logs of trainings, each as a whole: what was wrong of 30 that the seed 20261130 drew from `sources/training_logs_once_more.txt`, and healthy ones of them.

Of each query, in the order of the draw, the first thread counted that tells an answer and that no test had. The answers were written down before the program ran.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.test_progress_drawn import GITHUB, NAN
from tests.world.test_training_logs_drawn import COST, Told, assert_told

VERL = (
    "step:{n} - timing/gen:305.{n}90 - timing/verify:8.531 - train_verify_score/all:0.38{n} - reward_model/prm_loss:0.72{n} - reward_model/grad_norm:5.092 - critic/kl:0.000 - actor/pg_loss:-0.65{n}"
    " - actor/ppo_kl:0.000 - critic/returns/min:-2.044 - response_length/mean:1435.491 - prompt_length/min:141.000\n(main_task pid=1367807) logging3: 0.0 seconds\n(main_task pid=1367807) gen: 9{n}.1 seconds\n"
)
OLMO = (
    "[2024-04-18 19:0{m}:17] INFO     [olmo.train:816, rank=0] [step={n}/739328]\n    train/CrossEntropyLoss=7.4{n}\n    train/Perplexity=1,6{n}\n    throughput/total_tokens=3{n},572,800\n"
    "    throughput/device/batches_per_second=0.0022\n"
)
GNN = (
    "INFO:root:Epoch {n}/100 | Iter 100/196 | Throughput 6{n}889.16 samples/s | Loss {n}002.1672 | Cache node ratio 0.0000 | Cache edge ratio 0.83{n}0\n"
    "INFO:root:Epoch {n}/100 | Validation ap 0.9{n}22 | Validation auc 0.9{n}34 | Train time 25.95 s | Validation time 4.94 s\n"
)

DRAWN = (
    Case("three-steps-and-a-thread-that-fails", GITHUB + "allenai/OLMo/issues/552", "".join(OLMO.format(m=2 * n - 144, n=n) for n in (73, 74, 75))
         + "[2024-04-18 19:10:41] CRITICAL [olmo.util:158, rank=0] Uncaught OLMoThreadError: generator thread data thread 3 failed\n",
         Told((75,), shown=("OLMoThreadError: generator thread data thread 3 failed",)), COST),
    Case("a-table-of-losses-in-brackets", GITHUB + "lululxvi/deepxde/pull/491", "Training model...\n\nStep      Train loss    Test loss     Test metric\n0         [5.47e+03]    [6.44e+03]    [1.00e+00]    \n"
         "1000      [5.47e+03]    [6.44e+03]    [1.00e+00]    \n" + "".join(f"{n}      [nan]         [nan]         [nan]         \n" for n in range(2000, 6000, 1000)), Told((5000,), (NAN,)), COST),
    Case("the-first-three-steps", GITHUB + "PRIME-RL/PRIME/issues/57", "".join(VERL.format(n=n) for n in (1, 2, 3)), Told((3,)), COST),
    Case("three-epochs", GITHUB + "jasperzhong/GNNFlow/issues/67", "INFO:root:Start training...\n" + "".join(GNN.format(n=n) for n in (1, 2, 3)), Told((3, 100)), COST),
    Case("ranks-that-write-over-each-other", GITHUB + "axolotl-ai-cloud/axolotl/issues/1596",
         3 * "RuntimeError" + ": : : " + 3 * "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`" + "\n\n\n", Told((None,), shown=("CUBLAS_STATUS_ALLOC_FAILED",)), COST),
)  # fmt: skip


@each(*DRAWN)
def test_a_log_that_was_drawn_once_more(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_told(case, tmp_path, record_property)
