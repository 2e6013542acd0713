"""Rules of telling which trainer wrote a log, and which number in it advances."""

import re

import pytest

from sentinel.checks.log.recognition import LogRecognition, follow_lines, recognise_log
from sentinel.checks.log.trainers import TRAINERS
from sentinel.core.logtext import decode_log

MEGATRON = (
    " [2026-03-08 03:12:05] iteration {n:8d}/  250000 | consumed samples: {n:12d} | elapsed time"
    " per iteration (ms): 5123.4 | learning rate: 1.3E-05 | lm loss: 2.1E+00 | grad norm: 0.2 |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |"
)
TITAN = (
    "[rank0]:[titan] 2026-03-08 03:12:05 - root - INFO - step: {n:2d}  loss:  7.1  grad_norm:  1.2"
    "  memory:  9.46GiB(64.99%)  tps: 7,094"
)
TRAINER = "{{'loss': 2.1, 'grad_norm': 0.5, 'learning_rate': 1.9e-05, 'epoch': 0.{n:02d}}}"
BAR = " 12%|█▎        | {n}/1200 [01:10<9:00:00,  1.61s/it]"
MLLOG = (
    '0: :::MLLOG {{"namespace": "", "time_ms": 17{n:011d}, "event_type": "POINT_IN_TIME", "key":'
    ' "tracked_stats", "value": {{"throughput": 31.5}}, "metadata": {{"file": "a.py", "lineno": 7,'
    ' "step": {n}}}}}'
)

FORMS = {
    "Megatron-LM": (MEGATRON, "iteration"),
    "Megatron-DeepSpeed": (
        " iteration {n:8d}/  115311 | consumed samples: {n:12d} | consumed tokens: {n:12d} | elapsed"
        " time per iteration (s): 104.70 | learning rate: 6.000E-05 | lm loss: 2.1E+00 |",
        "iteration",
    ),
    "GPT-NeoX": (
        " samples/sec: 31.210 | iteration {n:8d}/  320000 | elapsed time per iteration (ms): 49211.1"
        " | learning rate: 9.7E-05 | approx flops per GPU: 117.3TFLOPS | lm_loss: 2.1E+00 |",
        "iteration",
    ),
    "NeMo": (
        "Training epoch 0, iteration {n}/99999 | lr: 3e-4 | global_batch_size: 512 | global_step:"
        " {n} | reduced_train_loss: 2.123 | train_step_timing in s: 5.211",
        "iteration",
    ),
    "Lightning": (
        "Epoch 3:  12%|█▎        | {n}/5000 [00:31<04:21, 16.1it/s, v_num=4242, train_loss=2.1]",
        "batch",
    ),
    "torchtitan": (TITAN, "step"),
    "lingua": (
        "0: INFO    26-03-08 03:12:05.123 - 0:01:10 - step: {n}  acc: 0  loss:  7.1234  grad:"
        " 1.2e+00  flops: 3.1e+14  wps: 5.1e+04  iter:  0.4123  data: 0.001",
        "step",
    ),
    "OLMo": (
        "2026-03-08 03:12:05.123\tnode-3:0\tolmo.train:967\tINFO\t[step={n}/739328,epoch=0]\n"
        "    train/CrossEntropyLoss=2.123\n    throughput/device/batches_per_second=0.31",
        "step",
    ),
    "metaseq": (
        '2026-03-08 03:12:05 | INFO | train_inner | {{"epoch": 1, "update": 0.01, "loss": "7.1",'
        ' "num_updates": "{n}", "gnorm": "1.2", "ups": "0.31"}}\n| INFO | metaseq.trainer | ok',
        "num_updates",
    ),
    "fairseq": (
        "2026-03-08 03:12:05 | INFO | train_inner | epoch 001:   {n} / 1425 loss=7.1, ppl=137.2,"
        " wps=5121.3, ups=0.31, num_updates={n}, lr=1e-05, gnorm=1.2",
        "num_updates",
    ),
    "llm.c": (
        "step {n:4d}/19560 | loss 7.123456 (+1.21z)| norm 1.2345 (+nanz)| lr 6.00e-04 |"
        " 512.31 ms | 47.2% bf16 MFU | 1023123 tok/s",
        "step",
    ),
    "nanochat": (
        "step {n:05d}/21400 (01.23%) | loss: 7.123456 | lrm: 1.00 | dt: 512.31ms | tok/sec:"
        " 1,023,123 | mfu: 47.21 | total time: 12.31m",
        "step",
    ),
    "build-nanogpt": (
        "step {n:5d} | loss: 7.123456 | lr 6.0000e-04 | norm: 1.2345 | dt: 512.31ms |"
        " tok/sec: 1023123.12",
        "step",
    ),
    "modded-nanogpt": (
        "step:{n}/3242 train_loss:7.1234 train_time:8410ms step_avg:141.9ms",
        "step",
    ),
    "nanoGPT": ("iter {n}: loss 7.1234, time 512.31ms, mfu 47.21%", "iter"),
    "litgpt": (
        "Epoch 1 | iter {n} step 17 | loss train: 7.123, val: n/a | iter time: 512.31 ms (step)",
        "iter",
    ),
    "nanotron": (
        "03/08/2026 03:12:05 [INFO|DP=0|PP=0|TP=0]: iteration: {n} / 9999 | consumed_tokens: 4.2M |"
        " time_per_iteration_ms: 512 | lm_loss: 7.12 | lr: 0.0003 | grad_norm: 1.2",
        "iteration",
    ),
    "LLM Foundry/Composer": (
        "[batch={n}/9999]:\n\t Train time/batch: {n}\n\t Train loss/train/total: 7.1234\n"
        "\t Train throughput/batches_per_sec: 0.31",
        "batch",
    ),
    "MaxText": (
        "completed step: {n}, seconds: 5.123, TFLOP/s/device: 161.2, Tokens/s/device: 5123.1,"
        " total_weights: 524288, loss: 7.123",
        "step",
    ),
    "levanter": (
        "2026-03-08T03:12:05 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:145 - INFO :: "
        "Progress on:train {n}it/9.99kit rate:1.2s/it remaining:3:20:00 elapsed:00:20"
        " postfix:loss=7.12",
        "step",
    ),
    "DeepSpeed-Chat": (
        "Epoch: 0 | Step: {n} | PPO Epoch: 1 | Actor Loss: 0.12 | Critic Loss: 0.31 |"
        " Unsupervised Loss: 0.0",
        "step",
    ),
    "Hugging Face Trainer": (TRAINER, "epoch"),
    "axolotl": (f"[INFO] [axolotl.train.train:48] [PID:7] starting\n{TRAINER}", "epoch"),
    "accelerate": (
        "03/08/2026 03:12:05 - INFO - __main__ -   Total optimization steps = 9999\n"
        "Steps:  12%|█▎        | {n}/9999 [00:31<04:21,  1.61it/s, lr=1e-5, step_loss=0.12]",
        "step",
    ),
    "DeepSpeed": (
        "[2026-03-08 03:12:05,123] [INFO] [logging.py:96:log_dist] [Rank 0] step={n}, skipped=0,"
        " lr=[1.3e-05], mom=[(0.9, 0.95)]",
        "step",
    ),
    "verl": (
        "(TaskRunner pid=4711) step:{n} - global_seqlen/min:5124 - actor/pg_loss:-0.012"
        " - actor/grad_norm:0.210 - training/global_step:{n} - timing_s/gen:61.2 - timing_s/step:98.410",
        "step",
    ),
    "ms-swift": (
        "{{'loss': 2.1, 'grad_norm': 0.5, 'epoch': 0.{n}, 'global_step/max_steps': '{n}/900'}}",
        "global step",
    ),
    "LLaMA-Factory": (f"[INFO|2026-03-08] llamafactory.train.callbacks:143 >> {TRAINER}", "epoch"),
    "detectron2": (
        "[03/08 03:12:05 d2.utils.events]:  eta: 0:27:26  iter: {n}  total_loss: 6.5  loss_ce: 1.1"
        "  time: 0.412  last_time: 0.5  data_time: 0.01  lr: 1e-4  max_mem: 9876M",
        "iter",
    ),
    "MMEngine/MMCV": (
        "2026-03-08 03:12:05,123 - mmdet - INFO - Epoch [3][{n}/7330]\tlr: 1.978e-03, eta: 5:58:06,"
        " time: 0.245, data_time: 0.049, memory: 3000, loss: 1.2, grad_norm: 3.1",
        "batch",
    ),
    "XTuner": (
        "03/08 03:12:05 - mmengine - INFO - Iter(train) [  {n}/9000]  lr: 2.0e-04  eta: 1:00:00"
        "  time: 0.8  data_time: 0.01  memory: 3000  loss: 1.2  work_dir=xtuner",
        "iter",
    ),
    "Ultralytics YOLO": (
        "     87/300      2.4G    0.038    0.018   0.002         30        640:  16%|█▌   |"
        " {n}/560 [00:03<00:21,  2.22it/s]",
        "batch",
    ),
    "torchvision's MetricLogger": (
        "Epoch: [3]  [ {n}/5005]  eta: 1:02:03  lr: 0.1  loss: 6.9 (7.0)  time: 0.512  data: 0.1"
        "  max mem: 3000",
        "batch",
    ),
    "a copy of PyTorch's examples": (
        "Epoch: [3][  {n}/5005]\tTime  0.512 ( 0.6)\tData  0.1 ( 0.2)\tLoss 6.9e+00 (7.0e+00)",
        "batch",
    ),
    "timm": (
        "Train: 3 [  {n}/1251 (  3%)]  Loss: 6.95 (6.9)  Time: 0.412s,  2.1/s  LR: 1.0e-06",
        "batch",
    ),
    "Swin Transformer": (
        "INFO Train: [3/300][{n}/1251]\teta 1:00:00 lr 0.0001\t time 2.1 (2.2)\tloss 6.9 (6.9)",
        "batch",
    ),
    "Keras": (" {n}/1875 [=====>........................] - ETA: 16s - loss: 0.38", "batch"),
    "PaddleOCR": (
        "[2026/03/08 03:12:05] ppocr INFO: epoch: [3/500], global_step: {n}, lr: 0.001, loss: 2.1,"
        " avg_batch_cost: 0.4 s",
        "global_step",
    ),
    "PaddleDetection": (
        "[03/08 03:12:05] ppdet.engine INFO: Epoch: [0] [ {n}/1000] learning_rate: 0.0005 loss: 2.1",
        "batch",
    ),
    "PaddleSeg": (
        "[TRAIN] epoch: 1, iter: {n}/80000, loss: 1.2, lr: 0.01, batch_cost: 0.4",
        "iter",
    ),
    "PaddleClas": ("[Train][Epoch 1/120][Iter: {n}/5005]lr: 0.1, loss: 6.9", "batch of the epoch"),
    "PaddlePaddle": ("global step {n}, epoch: 1, batch: {n}, loss: 0.6, speed: 3.1 step/s", "step"),
    "MindSpore": ("epoch: 1 step: {n}, loss is 2.31\nper step time: 12.1 ms", "step"),
    "nnU-Net": ("2026-03-08 03:12:05.1: Epoch {n}\nCurrent learning rate: 0.01", "epoch"),
    "ESPnet": ("3epoch:train:101-{n}batch: iter_time=1e-4, loss_ctc=7.1, loss=7.2", "batch"),
    "icefall": (
        "INFO [train.py:876] Epoch 3, batch {n}, loss[loss=0.31, over 5012.00 frames.],"
        " tot_loss[loss=0.32], batch size: 20, lr: 1e-3",
        "batch",
    ),
    "WeNet": ("DEBUG TRAIN Batch 0/{n} loss 12.3 loss_att 9.1 lr 0.0001 rank 0", "batch"),
    "Coqui TTS": ("   --> TIME: 2026-03-08 -- STEP: {n}/9000 -- GLOBAL_STEP: 10{n}", "GLOBAL_STEP"),
    "VITS": (
        "03:12:05\tbase\tINFO\tTrain Epoch: 1 [0%]\n"
        "03:12:05\tbase\tINFO\t[6.71, 1.74, 13.6, {n}, 0.0002]",
        "step",
    ),
    "RETURNN": (
        "ep 2 train, step {n}, ctc_4 2.123, ce 3.1, num_seqs 5, mem_usage:cuda:0 5.1GB, 0.611 sec/step, elapsed"
        " 0:05:57, exp. remaining 1:02:03, complete 8.75%",
        "step",
    ),
    "OpenNMT-py": (
        "[03:12:05 INFO] Step {n}/ 5000; acc:  10.2; ppl: 21.1; xent: 5.1; lr: 0.1",
        "step",
    ),
    "Marian": ("[03:12:05] Ep. 1 : Up. {n} : Sen. 32,000 : Cost 7.12 : Time 12.1s", "update"),
    "flair": ("03:12:05 epoch 3 - iter {n}/100 - loss 0.5123 - samples/sec: 30.1", "iter"),
    "SpeechBrain": ("epoch: {n}, lr: 1.0e-04 - train loss: 2.1 - valid loss: 2.3", "epoch"),
    "TensorFlow's Estimator": ("INFO:tensorflow:loss = 2.1, step = {n} (0.262 sec)", "step"),
    "Caffe": (
        "I0308 03:12:05.1 7 solver.cpp:228] Iteration {n} (2.1 iter/s), loss = 1.2",
        "iteration",
    ),
    "darknet": (" {n}: 12.3, 13.4 avg loss, 0.001 rate, 3.1 seconds, 6400 images", "iteration"),
    "BasicSR": (
        "INFO: [sr..][epoch:  0, iter:     {n}, lr:(2.000e-04,)] [eta: 1 day] l_pix: 0.1",
        "iter",
    ),
    "pix2pix/CycleGAN": (
        "(epoch: 1, iters: {n}, time: 0.5, data: 0.2) G_GAN: 1.0 D_real: 0.5",
        "iters",
    ),
    "kohya sd-scripts": (
        "steps:  12%|█▎        | {n}/9999 [00:31<04:21,  1.61it/s, avr_loss=0.0912]",
        "step",
    ),
    "MiniMind": ("Epoch:[1/1]({n}/4292), loss: 0.54, learning_rate: 0.0002", "batch"),
    "InternEvo": (
        "INFO train.py:32 in record -- tflops=63.28,step={n},loss=11.63,tgs=4095",
        "step",
    ),
    "torchtune": ("1|{n}|Loss: 1.231:   5%|▌  | {n}/900 [00:31<04:21,  1.61it/s]", "step"),
    "OpenRLHF": ("Train step of epoch 0:  12%|█▎ | {n}/999 [00:31<04:21,  1.6s/it]", "step"),
    "NeMo-RL": ("========================= Step {n}/100 =========================", "step"),
    "RSL-RL": (
        "     Learning iteration {n}/1500    \n  Mean value_function loss: 0.02",
        "iteration",
    ),
    "Stable-Baselines3": (
        "|    total_timesteps      | {n}       |\n| loss | 0.1 |",
        "total_timesteps",
    ),
    "CatBoost": ("{n}:\tlearn: 0.1234829\ttotal: 6m 47s\tremaining: 1m 16s", "iteration"),
    "XGBoost or LightGBM": ("[{n}]\ttrain-logloss:0.34521\teval-logloss:0.40120", "round"),
    "LeRobot": (
        "INFO 2026-03-08 03:12:05 ot/train.py:232 step:{n}K smpl:96K ep:9 epch:0.2 loss:0.9"
        " grdn:4.482 lr:1.8e-06 updt_s:0.201 data_s:0.001",
        "step",
    ),
    "Pax": ("[PAX STATUS]: step_i: {n}, training loss: 2.12", "step"),
    "MLPerf (MLLOG)": (MLLOG, "step"),
    "tqdm": ("Training:  12%|█▎        | {n}/9999 [00:31<04:21,  1.61it/s]", "count"),
}


def log(form: str, first: int = 10, lines: int = 8) -> str:
    """So many lines of a form, from this number on."""
    return "".join(form.format(n=n) + "\n" for n in range(first, first + lines))


@pytest.mark.parametrize(("name", "form"), FORMS.items(), ids=FORMS)
def test_a_trainer_is_known_by_its_lines(name: str, form: tuple[str, str]) -> None:
    """Its name, the number that advances, and that its pattern finds every line."""
    text = log(form[0])
    known = recognise_log(text)
    assert (known.first_trainer, known.number and known.number.name) == (name, form[1])
    assert known.number
    assert len(re.findall(known.number.pattern, text, re.M)) == 8
    assert name in known.summary_text
    assert form[1] in known.summary_text


def test_every_row_of_the_table_is_tried() -> None:
    """And says which file prints its form."""
    variants = {"fairseq", "metaseq"}
    assert {row.name for row in TRAINERS} - {"W&B", "metaseq or fairseq"} <= {*FORMS} | variants
    assert all(re.search(r"\.(?:py|cu|cpp|c|h)\b", row.source) for row in TRAINERS)


def test_what_a_log_does_not_tell_is_said() -> None:
    """So that nobody waits for an alarm that cannot come."""
    assert recognise_log(log(FORMS["modded-nanogpt"][0])).missing_values == ("no gradient norm",)
    assert recognise_log(log(MEGATRON)).missing_values == ()
    assert (
        "no loss, no gradient norm, no step time in it"
        in recognise_log(log(FORMS["tqdm"][0])).summary_text
    )
    assert recognise_log("").missing_values[0] == "no number that advances"


@pytest.mark.parametrize(
    ("text", "trainers"),
    [
        pytest.param(
            "[INFO] [config.py:9:print] zero_enabled\n" + log(MEGATRON), ("Megatron-DeepSpeed",),
            id="before bigscience changed the line",
        ),
        pytest.param(
            log(MEGATRON + "\n" + FORMS["DeepSpeed"][0]), ("Megatron-DeepSpeed",), id="a fork"
        ),
        pytest.param(log(TRAINER + "\r" + BAR), ("Hugging Face Trainer",), id="with its bar"),
        pytest.param(
            log(FORMS["NeMo"][0] + "\n" + MLLOG), ("NeMo", "MLPerf (MLLOG)"), id="a library below"
        ),
        pytest.param(
            log(FORMS["DeepSpeed"][0]) + "{'train_runtime': 90.1, 'epoch': 1.0}\n",
            ("Hugging Face Trainer",), id="of which only the library counts",
        ),
        pytest.param(
            "wandb: Tracking run with wandb version 0.17\n" + log(TITAN), ("torchtitan", "W&B"),
            id="W&B beside",
        ),
    ],
)  # fmt: skip
def test_who_trains_stands_before_what_it_uses(text: str, trainers: tuple[str, ...]) -> None:
    """Libraries print lines of their own."""
    known = recognise_log(decode_log(text.encode()))
    assert known.trainers == trainers
    assert known.number is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "iteration 12 of the review: loss of 3 people\n",
        "step 7\n",
        "Epoch 1/10\n 12/100 [==>....] - loss: 0.3\n",
        "def training_log():\n    log_string = ' iteration {:8d}/{:8d} |'.format(iteration)\n",
        "sbatch: Submitted batch job 4711\n" * 9,
        "\x00\x01\xff" * 999,
    ],
)
def test_what_nobody_in_the_table_wrote_is_unknown(text: str) -> None:
    """Rather than wrong."""
    assert recognise_log(text).trainers == ()
    assert "unknown trainer" in recognise_log(text).summary_text


def test_a_log_that_changes_its_trainer_is_the_later_ones() -> None:
    """The number of the one before will never advance again."""
    known = recognise_log(log(MEGATRON) + log(TITAN))
    assert (known.first_trainer, known.changed) == ("torchtitan", "Megatron-LM")
    assert known.number is not None
    assert "before that of Megatron-LM" in known.summary_text


def test_half_a_line_forgets_nothing() -> None:
    """A look may find a file longer by less than a line."""
    known = recognise_log(log(MEGATRON))
    assert follow_lines(known, "") == known
    assert follow_lines(None, "") == LogRecognition()


def test_two_trainers_in_one_file_have_no_number_in_common() -> None:
    """One of them may hang while the other writes."""
    known = recognise_log("".join(log(MEGATRON, n, 1) + log(TITAN, n, 1) for n in range(9)))
    assert (known.number, known.mixed) == (None, ("torchtitan", "Megatron-LM"))
    assert "write at once" in known.summary_text


def test_the_beginning_of_a_long_log_helps_to_name_its_end() -> None:
    """The end alone shows the form that a fork has kept."""
    head = "[2026-03-08 03:12:05,123] [INFO] [engine.py:1:x] DeepSpeed info: version=0.4\n"
    assert recognise_log(log(MEGATRON), head).first_trainer == "Megatron-DeepSpeed"
    assert recognise_log(log(MEGATRON)).first_trainer == "Megatron-LM"


def test_a_log_that_is_only_a_bar_and_one_in_utf_16() -> None:
    """Carriage returns end lines, and every other byte is nothing."""
    bar = decode_log("\r".join(BAR.format(n=n) for n in range(9, 40)).encode())
    assert (recognise_log(bar).first_trainer, recognise_log(bar).number is None) == ("tqdm", False)
    assert recognise_log(decode_log(log(TITAN).encode("utf-16"))).first_trainer == "torchtitan"


@pytest.mark.parametrize(
    ("form", "name"),
    [
        pytest.param("[03:12:{s}] fold 3: round {n} of 900, score 0.{s}", "round", id="a word"),
        pytest.param("epoch 1 step {n} loss 0.{s} samples {n}", "step", id="the finest"),
        pytest.param("12:{s}:{s} step:{n} reward:0.{s}", "step", id="a colon without a blank"),
        pytest.param('{{"step":{n},"reward":0.{s}}}', "step", id="json without blanks"),
        pytest.param("[train] iter {n}: loss 0.{s} 22{s} ms/iter", "iter", id="a colon after it"),
        pytest.param("Ep: 3 {n:d}:{s}:{s} went by", None, id="a time of day"),
        pytest.param("03:12:{s} beat {n} of the drum", None, id="no word for progress"),
        pytest.param("epoch 1 loss 0.{s}", None, id="a number that stands still"),
    ],
)
def test_of_an_unknown_trainer_the_number_is_found_by_looking(form: str, name: str | None) -> None:
    """Where a word for progress stands before it."""
    known = recognise_log("x\n" + "".join(form.format(n=n, s=10 + n) + "\n" for n in range(9)))
    assert known.trainers == ()
    assert (known.number.name if known.number else None) == name


@pytest.mark.parametrize(("lines", "found"), [(3, True), (2, False)])
def test_the_first_line_of_a_log_counts(lines: int, found: bool) -> None:
    """A young log has no more than these, and two are too few."""
    text = "".join(f"step:{n} - timing/gen:305.{n} - actor/pg_loss:-0.65\n" for n in range(lines))
    assert (recognise_log(text).number is not None) == found


@pytest.mark.parametrize(("length", "found"), [(9, True), (2, False)])
def test_a_count_of_every_epoch_begins_anew(length: int, found: bool) -> None:
    """Cross-validation and epochs; what falls as often as it grows is no progress."""
    lines = [f"Epoch {n}/{length} | Loss: 0.{n}1" for _ in range(4) for n in range(1, length + 1)]
    known = recognise_log("x\n" + "\n".join(lines) + "\n")
    assert (known.number.name if known.number else None) == ("Epoch" if found else None)


def test_a_number_that_may_be_something_else_is_offered_and_not_used() -> None:
    """A person can take it over as `progress`."""
    text = "x\n" + "".join(f"worker a step {n}\nserver step {900 + 3 * n}\n" for n in range(9))
    known = recognise_log(text)
    assert known.number is None
    beat = recognise_log("x\n" + "".join(f"beat {n} of the drum\n" for n in range(9)))
    assert [one.name for one in beat.offered] == ["beat"]
    assert "beat may advance: `progress: '" in beat.summary_text
    (step,) = recognise_log("x\n" + "".join(f"étape {n} : perte 2,1\n" for n in range(9))).offered
    assert (step.name, re.findall(step.pattern, "étape 31 : perte 2,0")) == ("étape", ["31"])


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["iteration 1/ 2 | ", "{'loss': ", "Epoch 1: ", "1%|", "step: 1 ",
                                   ":::MLLOG ", "step 1 ", "\n1 ", "a1"])  # fmt: skip
def test_no_megabyte_of_anything_takes_long_to_recognise(piece: str) -> None:
    """One line of any length, or many."""
    assert isinstance(recognise_log(piece * (2**20 // len(piece))).summary_text, str)
