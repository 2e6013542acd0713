"""Progress and NaN in logs that somebody looked for who knows the code; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss
from tests.world.test_progress_drawn import FINE, NAN, WRONG, rows

# A percentage alone is still not taken for progress (61.5 was written, and counts as wrong): it may be of a
# download or of memory. `progress: 'progress: ([\\d.]+)%'` reads it.
HUNTED_1 = (
    Case("logfmt", "Go, log/slog's TextHandler", rows('time=2026-01-02T03:04:05Z level=INFO msg="train" step={n} loss=1.93 lr=0.0003'), (111, FINE), WRONG),
    Case("slog-in-json", "Go, log/slog's JSONHandler",
         rows('{"time":"2026-01-02T03:04:05Z","level":"INFO","msg":"train","step":{n},"loss":"NaN"}'), (111, NAN), WRONG),
    Case("thousands-with-commas", "Python's format `{:,}`", rows("step 12,{n} | loss 1.93 | 4,310 tok/s"), (12111, FINE), WRONG),
    Case("thousands-with-underscores", "Python's format `{:_}`", rows("step=1_2{n} loss=nan".replace("1_2", "12_")), (12111, NAN), WRONG),
    Case("steps-in-thousands", "OpenAI baselines, logger.py with a k behind", rows("step: 12.{n}k  loss: 1.93"), (12111, FINE), WRONG),
    Case("a-percentage-alone", "a hand-written loop", rows("Training progress: {n}.5% done, loss 0.31", 40, 62), (None, FINE), WRONG),
    Case("chinese-words", "MindSpore's and Paddle's tutorials", rows("第 {n} 步, 损失: nan"), (111, NAN), WRONG),
    Case("colours", "rich and colorama", rows("\x1b[32mstep\x1b[0m: \x1b[1m{n}\x1b[0m | \x1b[31mloss\x1b[0m: \x1b[1mnan\x1b[0m"), (111, NAN), WRONG),
    Case("improved-from-infinity", "Keras 3, callbacks/model_checkpoint.py",
         rows("Epoch {n}: val_loss improved from inf to 0.31234, saving model to a.keras\n120/120 - 3s - loss: 0.2971 - val_loss: 0.3123", 1, 9),
         (8, FINE), WRONG),
    Case("a-best-loss-that-is-infinite", "a hand-written loop", rows("epoch {n} loss 0.93 best_loss inf"), (111, FINE), WRONG),
    Case("the-loss-of-a-metric-without-samples", "torchmetrics", rows("step {n} loss 0.93 acc/rare_class nan"), (111, FINE), WRONG),
    Case("nan-in-a-table-of-sb3", "Stable-Baselines3, logger.py",
         rows("| time/              |          |\n|    iterations      | {n}      |\n|    total_timesteps | {n}00    |\n| train/             |          |\n"
              "|    loss            | nan      |\n|    value_loss      | nan      |\n---------------------------------"), (11100, NAN), WRONG),
    Case("a-time-in-front", "Lightning's CSV beside it", rows("0:{n}:07 step {n} of 5000 train/loss 1.93"), (111, FINE), WRONG),
    Case("tensor-with-a-gradient", "PyTorch, repr of a loss that was not detached",
         rows("Epoch {n} loss tensor(nan, device='cuda:0', grad_fn=<MeanBackward0>)"), (111, NAN), WRONG),
    Case("minus-infinity", "a log-likelihood", rows("iter {n} elbo_loss -inf"), (111, NAN), WRONG),
)  # fmt: skip


HUNTED_3 = (
    Case("a-loss-two-levels-deep", "structlog's JSONRenderer around torchrun", rows('{"rank": 3, "event": "train_step", "n": {n}, "metrics": {"loss": {"value": NaN}}}'), (111, NAN), WRONG),
    Case("dashes-between-pairs", "volcengine/verl, verl/utils/logger/aggregate_logger.py",
         rows("step:{n} - global_seqlen/min:1024 - actor/entropy:0.31 - actor/pg_loss:-0.013 - actor/grad_norm:nan - perf/mfu/actor:0.31"), (111, NAN), WRONG),
    Case("losses-before-a-bar-of-pipes", "allenai/allennlp 2.10, training/gradient_descent_trainer.py",
         "".join(f"\raccuracy: 0.5120, batch_loss: nan, loss: nan ||:  12%|#1        | {n}/900 [00:12<01:20,  9.11it/s]" for n in range(100, 112)) + "\r", (111, NAN), WRONG),
    Case("a-table-below-its-counts", "facebookresearch/ParlAI 1.7, scripts/train_model.py",
         rows("16:01:02 | time:121s total_exs:{n}00 total_steps:{n} epochs:0.42\n    clen  ctpb  exps  gnorm  loss    lr   ppl\n   10.1  1024  20.1    nan   nan  1e-05   nan"), (111, NAN), WRONG),
    Case("a-name-before-a-pipe", "google/trax 1.4, supervised/training.py", rows("Step    {n}: train CrossEntropyLoss |  nan"), (111, NAN), WRONG),
    Case("a-total-that-is-nan", "LeelaChessZero/lczero-training, tf/tfprocess.py", rows("step {n}, lr=0.02 policy=nan value=nan mse=nan reg=0.11 total=nan (1234.1 pos/s)"), (111, NAN), WRONG),
    Case("a-loss-with-a-digit-before-it", "lightvector/KataGo, python/train.py", rows("trainsteps = {n}, nsamp = {n}00, p0loss = nan, vloss = 0.61"), (111, NAN), WRONG),
    Case("an-epoch-and-a-batch-in-one-bracket", "dmlc/gluon-nlp 0.10, scripts/bert", rows("[Epoch 3 Batch {n}/900] loss=nan, lr=0.0000100, metrics:accuracy:0.51"), (111, NAN), WRONG),
    Case("words-with-capitals-and-pipes", "google-deepmind/acme, utils/loggers/terminal.py", rows("[Learner] Actor Loss = 1.931 | Critic Loss = nan | Steps = {n} | Walltime = 12.100"), (111, NAN), WRONG),
    Case("steps-a-second-alone", "vwxyzjn/cleanrl 1.0, cleanrl/ppo.py", rows("SPS: 1{n}"), (None, FINE), WRONG),
    Case("executed-steps-that-overwrite-themselves", "google/dopamine 4.0, discrete_domains/run_experiment.py",
         "".join(f"Steps executed: {n}00 Episode length: 120 Return: 12.0\r" for n in range(100, 112)), (11100, FINE), WRONG),
    Case("a-number-before-a-dict", "google/brax 0.10, a progress function that prints its arguments",
         rows("{n}000 {'eval/episode_reward': Array(12.1, dtype=float32), 'training/total_loss': Array(nan, dtype=float32)}"), (111000, NAN), WRONG),
    Case("a-download-of-shards-before-steps", "huggingface_hub 0.25, file_download.py",
         "".join(f"\rmodel-00003-of-00009.safetensors:  12%|█▏        | {n}M/900M [00:12<01:20, 9.11MB/s]" for n in range(100, 112)) + "\n" + rows("step {n} loss 1.93 ({m} next)"), (111, FINE), WRONG),
    Case("cells-that-are-empty", "Lightning 2.4, loggers/csv_logs.py", "epoch,lr-AdamW,step,train_loss\n" + rows("0,,{n},1.93\n,0.0001,{n},"), (111, FINE), WRONG),
    Case("a-round-and-its-batches-in-chinese", "a loop written by hand", rows("训练进度: 第3轮 [{n}/900] 损失值: nan"), (111, NAN), WRONG),
)  # fmt: skip


@each(*HUNTED_1, *HUNTED_3)
def test_the_number_and_the_loss_of_a_log_that_was_hunted(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
