"""Progress in logs: the number that counts the steps, and no hang of a training that goes on."""

from __future__ import annotations

from pathlib import Path

from sentinel.checks.log.losses import MAX_LOSS_NAMES
from sentinel.core.model import Status
from tests.world.case import Case, each
from tests.world.logs import STALE_MINUTES, bar, of_growing_log, of_whole_log

TQDM = "tqdm 4.66, std.py"
SHARDS = bar("Loading checkpoint shards: ", 4, *range(5)) + "\n"
FALSE_HANG = "A healthy training is cancelled by `on_stale: [cancel]`."
WRONG_NUMBER = "People read a count of something else as the training's step."


def rows(form: str, first: int, last: int, step: int = 1) -> list[str]:
    """One line of the form a look."""
    return [form.format(n=n, m=n % 60) + "\n" for n in range(first, last, step)]


GROWING = (
    Case(
        "cuda-graphs-are-captured-then-ray-prints-steps",
        "slime with SGLang 0.4: model_runner.py's bar, then the trainer's own line",
        [
            bar("Capturing batches (bs=8 avail_mem=30.1 GB): ", 23, *range(24)) + "\n",
            *rows(
                "(Actor pid=811) [2026-03-08 10:{m:02d}:28] actor.py:211 - step {n}: {{'train/loss':"
                " -0.0{n}, 'train/grad_norm': 0.0781, 'train/step': {n}}}\n(Engine pid=99) INFO:"
                ' "GET /health HTTP/1.1" 200 OK',
                10,
                36,
            ),
        ],
        35,
        FALSE_HANG,
    ),
    Case(
        "an-index-is-built-then-steps-are-counted",
        "Megatron-LM's index builders print their documents before the first step",
        [
            "".join(rows("[03:00:{m:02d}] packed documents: batch {n} of 90000", 100, 1500, 100)),
            *rows("[2026-03-08 03:{m:02d}:12] step {n} | loss 1.9 | lr 1.0e-04 | 61.3 s/step", 10, 36),
        ],
        35,
        FALSE_HANG,
    ),
    Case(
        "a-download-ends-short-of-its-total-then-epochs-run",
        TQDM,
        [
            bar("corpus.tar: ", 900, 10, 400, 870) + "\n",
            *rows("epoch 0 iter {n} loss 2.1 tok/s 4311", 1, 26),
        ],
        25,
        FALSE_HANG,
    ),
    Case(
        "lines-without-any-number-follow-a-finished-bar",
        TQDM,
        [SHARDS, *["INFO: pipeline is busy\n"] * (STALE_MINUTES + 3)],
        None,
        FALSE_HANG,
    ),
    Case(
        "a-step-that-is-told-in-thousands",
        "LeRobot 0.3, logging_utils.py and format_big_number",
        [
            "".join(
                rows("INFO 2026-03-08 08:{m:02d}:12 train.py:232 step:{n} smpl:3K ep:9 epch:0.31"
                     " loss:0.913 grdn:4.482 lr:1.8e-06 updt_s:0.2 data_s:0.0", 100, 900, 100)
            ),
            *rows("INFO 2026-03-08 08:{m:02d}:12 train.py:232 step:12K smpl:99K ep:{n} epch:0.{n}"
                  " loss:0.713 grdn:4.482 lr:1.8e-06 updt_s:0.2 data_s:0.0", 10, 35),
        ],
        12000,
        FALSE_HANG,
    ),
    Case(
        "the-same-in-a-form-of-nobody-s",
        "any trainer that rounds its counts, as humanize.metric does",
        [
            "".join(rows("[{m:02d}] step: {n} loss: 0.91", 100, 900, 100)),
            *rows("[{m:02d}] step: 12K loss: 0.7{n}", 10, 35),
        ],
        12000,
        FALSE_HANG,
    ),
    Case(
        "an-evaluation-between-steps",
        "transformers 4.44, trainer_callback.py: the evaluation's bar has no words either",
        [
            SHARDS + "".join(
                bar("", 1200, n) + "\n{'loss': 1.9, 'grad_norm': 0.5, 'epoch': 0.01}\n"
                for n in range(490, 500)
            ),
            bar("", 1200, 500) + "\n{'loss': 1.8, 'grad_norm': 0.5, 'epoch': 0.02}\n",
            bar("", 61, *range(62)) + "\n{'eval_loss': 1.81, 'epoch': 0.02}\n",
        ],
        500,
        WRONG_NUMBER,
    ),
    Case(
        "an-evaluation-with-words",
        "lm-evaluation-harness called by a callback of a Hugging Face trainer",
        [
            SHARDS,
            "".join(
                bar("", 1200, n) + "\n{'loss': 1.9, 'grad_norm': 0.5, 'epoch': 0.01}\n"
                for n in range(490, 501)
            ),
            bar("Evaluating perplexity: ", 61, *range(62)) + "\n",
        ],
        500,
        WRONG_NUMBER,
    ),
)  # fmt: skip


@each(*GROWING)
def test_a_log_that_goes_on_is_never_called_hung(case: Case, tmp_path: Path) -> None:
    """And in the end the number is the training's own."""
    answers = of_growing_log(tmp_path, case.form)
    assert {answer.status for answer in answers} == {Status.OK}
    assert answers[-1].number == case.right or (
        case.right is None and "has not grown" not in answers[-1].summary
    )


HANGING = (
    Case(
        "other-lines-go-on-beside-a-trainer-that-hangs",
        "torchtitan 0.1 with a metrics server whose requests stand in the same file",
        "".join(
            rows("[rank0]:[titan] 2026-03-08 03:12:05 - root - INFO - step: {n}  loss:  7.1"
                 "  memory:  9.46GiB(64.99%)  tps: 7,094", 10, 20)
        ),
        ['INFO: "GET /metrics HTTP/1.1" 200 OK, request 1{n}'.replace("{n}", str(n)) + "\n" for n in range(25)],
        "A hang of hundreds of GPUs is not told.",
    ),
    Case(
        "a-bar-stands-still-while-somebody-waits",
        TQDM,
        bar("Training: ", 1000, *range(30, 40)) + "\n",
        [f"waiting for rank {n}\n" for n in range(25)],
        "A hang of hundreds of GPUs is not told.",
    ),
    Case(
        "a-looked-for-number-stands-still-while-others-complain",
        "a trainer that nobody knows",
        "".join(rows("step {n} loss 1.9", 10, 20)),
        [f"WARNING: node-3: retransmission {n}\n" for n in range(25)],
        "A hang of hundreds of GPUs is not told.",
    ),
)  # fmt: skip


@each(*HANGING)
def test_a_training_that_hangs_is_told_whatever_else_is_written(case: Case, tmp_path: Path) -> None:
    """The control: a number is not given up for lines that count no steps."""
    answers = of_growing_log(tmp_path, [case.form, *case.right])
    assert answers[-1].status is Status.CRITICAL
    assert answers[STALE_MINUTES - 1].status is Status.OK


WHOLE = (
    Case(
        "rollouts-between-the-orchestrator-s-steps",
        "prime-rl 0.2, orchestrator.py",
        "".join(
            f"10:00:00    INFO Starting orchestrator step {n}"
            + bar("\nGenerating rollouts (train): ", 128, 0, 32, 79, 128).replace("\r", "")
            + f"\n10:01:13 SUCCESS Step {n} | Time: 75.26s | Reward: 0.4094\n"
            for n in range(9)
        ),
        8,
        WRONG_NUMBER,
    ),
    Case(
        "the-outer-bar-counts-in-thousands",
        "EasyR1 0.3, ray_trainer.py: tqdm with unit_scale",
        "".join(
            f"(pid=44)\rTrain mini-batches {n}: 100%|██| 1.00/1.00 [00:31<00:00, 34.1s/it]"
            f"\n(pid=44) Running step 0:    0%|█         | {n}.0/1.75k [0:04:29<129:59:06, 269s/it]\n"
            "(WorkerDict pid=81) Update policy: 100%|██████████| 4.00/4.00 [01:01<00:00, 15.2s/it]\n"
            for n in range(1, 41)
        ),
        40,
        WRONG_NUMBER,
    ),
    Case(
        "json-lines-of-llama-factory",
        "LLaMA-Factory 0.9, callbacks.py: trainer_log.jsonl",
        "".join(
            f'{{"current_steps": {n}, "total_steps": 3480, "loss": 0.5, "epoch": 0.01,'
            f' "percentage": 0.29, "elapsed_time": "0:01:12", "total_tokens": {n * 16384}}}\n'
            for n in range(10, 200, 10)
        ),
        190,
        "The log has only to grow, and a hang with retries in it is never told.",
    ),
    Case(
        "dinov2-says-training-where-others-say-the-epoch",
        "DINOv2, dinov2/logging/helpers.py",
        "".join(
            f"I20260308 12:36:02 90 dinov2 helpers.py:102] Training  [   {n}/2500000]  eta: 40 days,"
            " 13:40:08  lr: 0.0006 (0.0003)  total_loss: 6.6732 (inf)  time: 1.4  data: 0.01\n"
            for n in range(1000, 1100, 10)
        ),
        1090,
        "The log has only to grow.",
    ),
    Case(
        "composer-s-bar-counts-batches",
        "Composer 0.17, progress_bar_logger.py: its unit is ba",
        "".join(
            bar("train          Epoch  29: ", 1251, n, rate="3.66s/ba, loss/train/total=2.9")
            for n in range(2, 90)
        )
        + bar("eval           Epoch  28: ", 49, *range(50), rate="1.82s/ba, metrics/eval/Accuracy=0.7")
        + "\n",
        89,
        WRONG_NUMBER,
    ),
    Case(
        "an-older-step-is-named-by-another-line",
        "darkflow, darkflow/net/flow.py: a checkpoint's step beside the training's",
        "".join(f"step {n} - loss 105.28 - moving ave loss 105.25\n" for n in range(186, 205))
        + "Checkpoint at step 192\n",
        204,
        "The log has only to grow.",
    ),
    Case(
        "batches-of-an-epoch-behind-the-epoch-s-number",
        "pytracking, ltr/trainers/ltr_trainer.py, with its validation between",
        "".join(
            "".join(f"[train: {e}, {n} / 600] FPS: 252.8 (389.1)  ,  Loss/total: 1.08\n" for n in range(50, 650, 50))
            + "".join(f"[val: {e}, {n} / 900] FPS: 252.8 (389.1)  ,  Loss/total: 1.08\n" for n in range(50, 950, 50))
            for e in (16, 17)
        ),
        600,
        WRONG_NUMBER,
    ),
    Case(
        "an-epoch-bar-of-an-hour-a-step-is-too-coarse",
        TQDM,
        "".join(
            bar("Epochs: ", 90, epoch, rate="3611.2s/it") + "\n"
            + "".join(bar("Batches: ", 500, n) for n in (0, 100, 300, 499, 500)) + "\n"
            for epoch in range(3, 6)
        )
        + bar("Batches: ", 500, 17)
        + "\r",
        17,
        "Half an hour of a healthy epoch is called a hang.",
    ),
)  # fmt: skip


@each(*WHOLE)
def test_the_number_is_the_training_s_own_step(case: Case, tmp_path: Path) -> None:
    answer = of_whole_log(tmp_path, case.form)
    assert (answer.number, answer.loss) == (case.right, Status.OK)


UNSEEN_NAN = "Weeks of GPUs train nothing, and nobody is told."
FALSE_NAN = "A healthy training is called broken."
SB3 = """---------------------------------
| rollout/           |          |
|    ep_rew_mean     | 23.1     |
| time/              |          |
|    total_timesteps | {n}      |
| train/             |          |
|    loss            | {value}      |
---------------------------------
"""
FASTAI = "epoch     train_loss  valid_loss  accuracy  time    \n"


def lines(form: str, count: int = 12) -> str:
    """So many lines of one form."""
    return "".join(form.replace("{n}", str(100 + n)) + "\n" for n in range(count))


NAN = (
    Case("numpy-2", "NumPy 2.0: NEP 51, the repr of scalars",
         lines("step {n}: {'loss': np.float64(nan), 'lr': np.float64(0.1)}"), Status.CRITICAL, UNSEEN_NAN),
    Case("jax-array", "JAX 0.4, jax/_src/array.py: __repr__",
         lines("step: {n}, {'loss': Array(nan, dtype=float32), 'lr': 0.0003}"), Status.CRITICAL, UNSEEN_NAN),
    Case("jax-array-of-one", "JAX 0.4 under pmap",
         lines("step {n} loss=[Array(nan, dtype=float32, weak_type=True)]"), Status.CRITICAL, UNSEEN_NAN),
    Case("torch-of-shape-one-one", "PyTorch 2.5, torch/_tensor_str.py",
         lines("it {n} loss tensor([[nan]], device='cuda:0', grad_fn=<MulBackward0>)"), Status.CRITICAL, UNSEEN_NAN),
    Case("tensorflow-eager", "TensorFlow 2.16, framework/ops.py",
         lines("step {n} loss: tf.Tensor(nan, shape=(), dtype=float32)"), Status.CRITICAL, UNSEEN_NAN),
    Case("tensorflow-repr", "TensorFlow 2.16, framework/ops.py",
         lines("{'step': {n}, 'loss': <tf.Tensor: shape=(), dtype=float32, numpy=nan>}"), Status.CRITICAL, UNSEEN_NAN),
    Case("paddle", "PaddlePaddle 2.6, tensor/to_string.py",
         lines("step {n} loss: Tensor(shape=[1], dtype=float32, place=Place(gpu:0), stop_gradient=False,\n       [nan])"),
         Status.CRITICAL, UNSEEN_NAN),
    Case("mindspore", "MindSpore 2.3, common/tensor.py",
         lines("epoch: 1 step: {n}, loss is Tensor(shape=[], dtype=Float32, value= nan)"), Status.CRITICAL, UNSEEN_NAN),
    Case("a-decimal-in-quotes", "CPython, decimal", lines("step {n} loss: Decimal('NaN')"), Status.CRITICAL, UNSEEN_NAN),
    Case("a-padded-table", "Stable-Baselines3 2.3, logger.py: HumanOutputFormat",
         "".join(SB3.format(n=n, value="nan ") for n in range(400, 4000, 400)), Status.CRITICAL, UNSEEN_NAN),
    Case("a-table-of-rich", "rich 13, table.py",
         lines("│ train/loss               │ nan      │\n│ step   │ {n}      │"), Status.CRITICAL, UNSEEN_NAN),
    Case("columns-below-their-names", "fastai 2.7, callback/progress.py",
         FASTAI + lines("{n}       nan         nan         0.098000  00:12     "), Status.CRITICAL, UNSEEN_NAN),
    Case("a-csv-file", "Keras 3, callbacks/csv_logger.py",
         "epoch,accuracy,loss,val_loss\n" + lines("{n},0.1,nan,2.31"), Status.CRITICAL, UNSEEN_NAN),
    Case("what-the-loss-is-of-in-brackets", "a common f-string",
         lines("step {n} loss (train): nan | loss (val): 2.1"), Status.CRITICAL, UNSEEN_NAN),
    Case("an-arrow", "rl_games and others", lines("update {n} loss -> nan"), Status.CRITICAL, UNSEEN_NAN),
    Case("microsoft-s-c-library", "MSVC's printf", lines("step {n} loss: -nan(ind)"), Status.CRITICAL, UNSEEN_NAN),
    Case("every-step-is-skipped", "DeepSpeed 0.14, fp16/loss_scaler.py",
         lines("[INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step."
               " Attempted loss scale: 1, reducing to 1\n{'loss': 0.0, 'epoch': 0.0}"), Status.CRITICAL, UNSEEN_NAN),
    Case("apex-below-one", "NVIDIA apex 22.03, apex/amp/handle.py",
         "".join(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {2.0**-n}\n"
                 for n in range(12)), Status.CRITICAL, UNSEEN_NAN),
    Case("the-scale-is-being-found", "DeepSpeed 0.14, fp16/loss_scaler.py",
         "".join(f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2**n}, reducing to {2**n // 2}\n"
                 for n in range(32, 5, -1)), Status.OK, FALSE_NAN),
    Case("a-static-scale-overflows-now-and-then", "DeepSpeed 0.14 with a static loss scale",
         ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 128, reducing to 128\n"
          + "step 7 loss 1.2\n" * 60) * 15, Status.OK, FALSE_NAN),
    Case("a-running-mean-of-inf", "DINOv2, logging/helpers.py: SmoothedValue's global average",
         lines("Training  [  {n}/9000]  eta: 1 day  total_loss: 6.6732 (inf)  koleo_loss: 0.0315 (inf)  time: 1.3"),
         Status.OK, FALSE_NAN),
    Case("arrays-that-are-finite", "JAX 0.4",
         lines("step: {n}, {'loss': Array(2.2, dtype=float32), 'nan_count': Array(0, dtype=int32)}"),
         Status.OK, FALSE_NAN),
    Case("columns-of-metrics-without-a-loss", "pandas 2: a class that has no samples has no precision",
         "class     samples   loss_weight   precision\n" + lines("dog       0         1.0           nan"), Status.OK, FALSE_NAN),
    Case("an-epoch-without-validation", "PyTorch Lightning's CSVLogger leaves it empty, pandas says NaN",
         "epoch  val_loss  train_loss\n" + lines("{n}    nan       2.31\n{n}    1.9       2.30"), Status.OK, FALSE_NAN),
)  # fmt: skip


@each(*NAN)
def test_a_loss_that_is_no_number_is_told_in_whatever_dress(case: Case, tmp_path: Path) -> None:
    assert of_whole_log(tmp_path, case.form).loss is case.right


def test_a_nan_is_told_though_more_losses_are_finite_than_are_remembered(tmp_path: Path) -> None:
    """One loss for each of many experts, and the last one is no number."""
    names = [
        f"expert{n}_loss: {'nan' if n == MAX_LOSS_NAMES else 0.1}"
        for n in range(MAX_LOSS_NAMES + 1)
    ]
    assert of_whole_log(tmp_path, lines("step {n} " + " ".join(names))).loss is Status.CRITICAL


def test_losses_over_the_cap_that_are_finite_are_no_alarm(tmp_path: Path) -> None:
    """The control."""
    names = [f"expert{n}_loss: 0.1" for n in range(2 * MAX_LOSS_NAMES)]
    assert of_whole_log(tmp_path, lines("step {n} " + " ".join(names))).loss is Status.OK
