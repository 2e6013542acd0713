"""Progress and NaN in logs that were met outside; the answers were written before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentinel.core.model import Status
from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss

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
        rows("[{n}]\ttraining's multi_logloss: 0.457866"), (111, FINE), WRONG,
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

MET_LATER = (
    Case(
        "automodel-s-columns", GITHUB + "NVIDIA-NeMo/Automodel/pull/3473",
        rows("2026-08-10 15:55:20 | INFO | root | step {n} | epoch 0 | loss 0.6974 | grad_norm 1.5436 | lr 1.00e-05 |"
             " mem 24.90 GiB | tps 11278.56(1409.82/gpu) | num_label_tokens 21541"),
        (111, FINE), WRONG,
    ),
    Case(
        "every-rank-of-torchtitan-writes", GITHUB + "pytorch/torchtitan/pull/2389",
        "".join(rows(f"[titan] 2026-02-24 19:46:17,508 - root - INFO - step: {n:2d}  loss:  7.62585  grad_norm: 26.6250"
                     "  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%", 0, 8)
                for n in range(4, 12)),
        (11, FINE), WRONG,
    ),
    Case(
        "t5x-says-training-step", GITHUB + "EleutherAI/architecture-objective/issues/26",
        "".join(rows(f"I1115 16:00:39.451247 140641718562816 trainer.py:501] Training: step {n}", 0, 5)
                for n in range(198, 215, 2)),
        (214, FINE), WRONG,
    ),
    Case(
        "tpu-estimator-with-its-iterations", GITHUB + "megagonlabs/t5-japanese/issues/1",
        rows("I0902 03:33:36.516501 140070334211904 basic_session_run_hooks.py:260] loss = 1.109375, step = {n}"
             " (45.410 sec)\nINFO:tensorflow:global_step/sec: 2.20221\nINFO:tensorflow:examples/sec: 140.942\n"
             "INFO:tensorflow:Enqueue next (100) batch(es) of data to infeed.\n"
             "INFO:tensorflow:Outfeed finished for iteration (1862, 53)", 488000, 489000, 100),
        (488900, FINE), WRONG,
    ),
    Case(
        "tensorflowtts-s-bar-without-blocks", GITHUB + "TensorSpeech/TensorFlowTTS/pull/403",
        rows("[train]:   0% {n}/4000000 [04:21<256:02:15,  4.34it/s]", 834, 845), (844, FINE), WRONG,
    ),
    Case(
        "lightning-of-everyvoice", GITHUB + "EveryVoiceTTS/EveryVoice/issues/151",
        rows("Epoch 40:  65%|██████▍   | {n}/1700 [00:04<00:02,  2.34it/s, v_num=base]"), (111, FINE), WRONG,
    ),
    Case(
        "losses-of-ttsr-without-a-number", GITHUB + "researchmm/TTSR/issues/17",
        rows("reconstruction_loss: 0.0897 - perceptual_loss: 47.25 - d_loss: -30.21 - total_loss: 48.58"),
        (None, FINE), WRONG,
    ),
    Case(
        "yolo-within-a-platform-s-errors", GITHUB + "ultralytics/yolov5/issues/4015",
        rows("ERROR 2021-07-15T20:36:01.923195      23/99     2.57G   0.01862   0.01542   0.06883    0.1029        20"
             "       832:  62%|▌| {n}/1860 [04:45<02:49,  4.18it/s]", 1151, 1170),
        (1169, FINE), WRONG,
    ),
    Case(
        "parts-of-an-epoch-before-a-pipe", GITHUB + "wandb/wandb/issues/1526",
        "Epoch 5: 28/04/2021 07:49:46\n"
        + rows("gen_sine - {n}/1024 (10m 5s)      | loss = 0.000     | ll = -0.127    | bpd = 0.000"),
        (111, FINE), WRONG,
    ),
    Case(
        "shards-that-vllm-loads-then-steps", GITHUB + "vllm-project/vllm/issues/23517",
        "Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:01<00:00,  1.83it/s]\n"
        "(EngineCore_0 pid=675221) INFO 08-25 11:01:26 [backends.py:559] Dynamo bytecode transform time: 2.91 s\n"
        + rows("rollout step {n}: reward 0.31 loss 0.02"),
        (None, FINE), WRONG,
    ),
    Case(
        "deepspeed-s-bar-of-transformers-4-3", GITHUB + "huggingface/transformers/issues/9996",
        "\n".join(
            f"  1%|▉         | {n}/1184 [00:21<1:09:10,  3.52s/it][2021-02-04 15:06:19,825] [INFO] [stage2.py:1357:step]"
            f" [deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2.0**(40 - n)}, reducing to"
            f" {2.0**(39 - n)}"
            for n in range(6, 18)
        ) + "\n",
        (17, FINE), WRONG,
    ),
    Case(
        "no-loss-on-megatron-s-line", GITHUB + "bigscience-workshop/Megatron-DeepSpeed/issues/396",
        rows(" iteration     {n}/  250000 | consumed samples:        43408 | consumed tokens:     88899584 | elapsed time"
             " per iteration (ms): 4247.9 | learning rate: 2.999E-04 | global batch size:     8 | loss scale: 1.0 |"
             " grad norm: nan | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:"
             "   0 | samples per second: 1.886 | TFLOPs: 78.46 |"),
        (111, NAN), WRONG,
    ),
    Case(
        "mmocr-s-norm-is-nan-once", GITHUB + "JiaquanYe/TableMASTER-mmocr/issues/32",
        "2021-11-22 01:30:00,502 - mmocr - INFO - Epoch [1][100/62598]\tlr: 1.000e-03, eta: 6 days, 15:22:46, time: 0.539,"
        " data_time: 0.051, memory: 7239, loss_ce: 1.2757, loss: 1.9091, grad_norm: nan\n"
        + rows("2021-11-22 01:32:34,502 - mmocr - INFO - Epoch [1][{n}/62598]\tlr: 1.000e-03, eta: 7 days, 15:55:58, time:"
               " 0.705, data_time: 0.002, memory: 7239, loss_ce: 0.5921, loss: 0.9186, grad_norm: 3.9772", 200, 1000, 100),
        (900, FINE), WRONG,
    ),
    Case(
        "colossal-skips-each-step", GITHUB + "hpcaitech/ColossalAI/issues/5137",
        "".join(f"step {n}: loss 1.9\n[03/08/26 10:11:12] INFO     colossalai - colossalai - INFO: Found overflow. Skip"
                " step\n" for n in range(100, 190)),
        (189, NAN), WRONG,
    ),
    Case(
        "gradnorm-s-mean-in-a-dead-loss", GITHUB + "ostris/ai-toolkit/issues/544",
        "".join(f"one:   1%|▏         | {n}/3000 [00:21<1:09:10,  3.52s/it, lr: 1.0e-04 loss: 0.000e+00]loss is nan\n"
                for n in range(6, 18)),
        (17, NAN), WRONG,
    ),
)  # fmt: skip


@each(*MET, *MET_LATER)
def test_the_number_and_the_loss_of_a_log_that_was_met_outside(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
