"""Progress and NaN in logs that were met outside; the answers were written before the program ran."""

from __future__ import annotations

from pathlib import Path

from sentinel.core.model import Status
from tests.world.case import Case, each
from tests.world.logs import of_whole_log

GITHUB = "https://github.com/"
WRONG = (
    "A number of something else is watched, or none: the hang comes late or a healthy run is ended."
)
NAN, FINE = Status.CRITICAL, Status.OK


def rows(form: str, first: int = 100, last: int = 112, step: int = 1) -> str:
    """One line, or several, for each number."""
    return "".join(form.replace("{n}", str(n)) + "\n" for n in range(first, last, step))


MET = (
    Case(
        "beit-the-mean-of-a-norm-is-nan", GITHUB + "microsoft/unilm/issues/598",
        rows("Epoch: [11]  [ {n}/1299]  eta: 0:09:00  lr: 0.001435  mlm_acc: 0.03 (0.03)  loss: 6.59 (6.60)"
             "  loss_scale: 8192.0 (8646.0)  grad_norm: 0.39 (nan)  time: 0.49  data: 0.0001  max mem: 19152"),
        (111, FINE), WRONG,
    ),
    Case(
        "a-loss-of-a-net-and-its-norm", GITHUB + "christianpayer/MedicalDataAugmentationTool-VerSe/issues/31",
        rows("02:31:56: train iter: {n} loss_net: nan loss_scale: 1.0000 norm: nan norm_average: 0.8729 seconds: 122.871",
             0, 900, 100),
        (800, NAN), WRONG,
    ),
    Case(
        "xlm-names-nothing", GITHUB + "facebookresearch/XLM/issues/209",
        rows("INFO - 10/04/19 14:41:25 - 0:11:11 -    {n} -   56.12 sent/s -  2143.80 words/s - MLM-en:  7.7416 -  -"
             " model LR: 3.8795e-06"),
        (None, FINE), WRONG,
    ),
    Case(
        "colossal-s-bar-with-deepscale", GITHUB + "hpcaitech/ColossalAI-Examples/issues/37",
        "\n".join(
            f"[Epoch 0 / Train]:   0%|          | {n}/8614 [00:0{n}<1:00:07,  2.39it/s, loss=nan, lr=2.5e-05,"
            f" throughput=4.98][deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2.0**(33 - n)},"
            f" reducing to {2.0**(32 - n)}"
            for n in range(1, 9)
        ) + "\n",
        (8, NAN), WRONG,
    ),
    Case(
        "burn-s-metrics", GITHUB + "tracel-ai/burn/issues/208",
        rows("[Metrics]\n  - Train Accuracy: epoch 0.00 % - batch 0.00 %\n  - Train Loss: epoch NaN - batch NaN\n"
             "  - Valid Loss: epoch NaN - batch NaN\n[Progress]\n  - Iteration {n} Epoch 2/6\n"
             "  - iteration [#####>---------] (84s)"),
        (111, NAN), WRONG,
    ),
    Case(
        "kotlin-s-batches", GITHUB + "Kotlin/kotlindl/issues/8",
        rows("Training batch {n} begins.\n21:49:56.101 [main] DEBUG api.keras.Sequential - Batch stat:"
             " {{ lossValue: NaN metricValue: 0.082 }}\nTraining batch {n} ends with loss NaN."),
        (111, NAN), WRONG,
    ),
    Case(
        "epoch-batch-and-global-step", GITHUB + "noahchalifour/rnnt-speech-recognition/issues/26",
        rows("Epoch: 0, Batch: {n}, Global Step: {n}, Step Time: 1.6160, Loss: 327.3580"),
        (111, FINE), WRONG,
    ),
    Case(
        "lightgbm-counts-in-brackets", GITHUB + "uxlfoundation/scikit-learn-intelex/pull/295",
        rows("[{n}]\ttraining's multi_logloss: 0.457866"), (None, FINE), WRONG,
    ),
    Case(
        "musubi-s-steps", GITHUB + "kohya-ss/musubi-tuner/issues/26",
        "".join(
            f"INFO:dataset.image_video_dataset:epoch is incremented. current_epoch: {n}, epoch: {n + 1}\n"
            f"steps:  13%|█████▏      | {220 * n}/3300 [21:33<2:20:06,  2.94s/it, avr_loss=nan]\n"
            f"saving checkpoint: /out/one-00000{n}.safetensors\n\nepoch {n}/15\n"
            for n in range(2, 7)
        ),
        (1320, NAN), WRONG,
    ),
    Case(
        "maisi-s-epochs", GITHUB + "Project-MONAI/tutorials/issues/1926",
        rows("lr: [0.0001]\nEpoch {n} train_vae_loss 0.0397: {'recons_loss': 0.0152, 'kl_loss': 85897.05,"
             " 'p_loss': 0.0529}.\nSave trained autoencoder to ./models/autoencoder.pt"),
        (111, FINE), WRONG,
    ),
    Case(
        "epochs-that-turn-to-nan", GITHUB + "vpetren/gradnorm_tf/issues/17",
        rows("epoch: {n} loss: 0.2105546216666698", 3440, 3451) + rows("epoch: {n} loss: nan", 3451, 3459),
        (3458, NAN), WRONG,
    ),
    Case(
        "trl-between-deepspeed-s-timers", GITHUB + "huggingface/trl/issues/4086",
        "".join(
            "INFO 09-15 14:42:48 [executor_base.py:188] It took 1.603560 seconds to fall asleep.\n"
            "[2025-09-15 14:48:06,446] [INFO] [logging.py:107:log_dist] [Rank 0] time (ms) | fwd: 114577.10 | step: 105.42\n"
            f"\n  0%|          | {n}/1562 [18:48<164:33:29, 379.99s/it]\n"
            + " " * 60 + f"\n{{'loss': -0.0684, 'grad_norm': 0.41, 'epoch': 0.0{n}}}\n"
            for n in range(1, 8)
        ),
        (7, FINE), WRONG,
    ),
    Case(
        "a-reconstruction-error-is-its-loss", GITHUB + "atnikos/teach/issues/27",
        rows("[13/12/22 12:02:48][teach.callback.progress][INFO] -  Epoch {n}: Train_rf 4.856e-01   Val_rf 4.784e-01"
             "   Memory 11.2%"),
        (111, FINE), WRONG,
    ),
    Case(
        "a-shuffle-buffer-fills-before-keras", GITHUB + "yahoo/spivak/issues/9",
        rows("2023-08-17 00:55:33.072818: I tensorflow/core/kernels/data/shuffle_dataset_op.cc:380] Filling up shuffle"
             " buffer (this may take a while): {n} of 734", 600, 730, 9)
        + "2023-08-17 00:55:48.9: I tensorflow/core/kernels/data/shuffle_dataset_op.cc:405] Shuffle buffer filled.\n"
        + rows("  {n}/4096 [>.............................] - ETA: 16s - loss: 0.38", 20, 31),
        (30, FINE), WRONG,
    ),
    Case(
        "workers-of-keras-write-at-once", GITHUB + "ray-project/ray/issues/25037",
        "".join(rows("    {n}/Unknown - 7s 13ms/step - loss: 21.5709 - mean_squared_error: 21.4454", n, n + 3)
                for n in range(221, 240)),
        (241, FINE), WRONG,
    ),
)  # fmt: skip


@each(*MET)
def test_the_number_and_the_loss_of_a_log_that_was_met_outside(case: Case, tmp_path: Path) -> None:
    answer = of_whole_log(tmp_path, case.form)
    assert (answer.number, answer.loss) == case.right
