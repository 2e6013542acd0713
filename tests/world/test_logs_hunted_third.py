"""Logs that somebody looked for who had read the code a third time; the answers were written before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentinel.core.model import Status
from tests.world.case import Case, each
from tests.world.logs import assert_cause, assert_number_and_loss, bar, of_growing_log
from tests.world.test_causes_drawn import COST, FRAME
from tests.world.test_progress_drawn import FINE, GITHUB, NAN, WRONG, rows

HUNG = "A training that works is cancelled, or one that hangs holds its nodes until morning."


def big_vision(n: int) -> str:
    measures = {"training_loss": 4.1 - n / 1e3, "l2_params": 120.5 + n / 1e3, "uptime": 9.5 * n}
    return "".join(
        f"I1128 22:00:{n % 60:02d}.123456 139938806449728 utils.py:1119] [{n}] {name} = {value}\n"
        for name, value in measures.items()
    )


NUMBERS = (
    Case("a-progress-in-percent", "facebookresearch/fastText, src/fasttext.cc, printInfo",
         "".join(f"\rProgress:  {n / 10:.1f}% words/sec/thread:  95{7 * n % 10}{n} lr:  0.0{900 - n} avg.loss:  0.7{n} ETA:   0h{60 - n % 50:2d}m" for n in range(100, 124)),
         # Written down was 12.3, and counts as wrong: a share is no count, so the log has to grow.
         (None, FINE), WRONG),
    Case("a-count-of-data-of-a-total", GITHUB + "ggml-org/llama.cpp, ggml/src/ggml-opt.cpp, ggml_opt_epoch_callback_progress_bar",
         "".join(f"train: [===>                     ] data={32 * n:06d}/012800, loss=2.{400 - n}+-0.02, accuracy=41.{n % 99:02d}+-0.91%, t=00:01:{n % 60:02d}, ETA=00:13:{59 - n % 60:02d}]\r" for n in range(20, 45)), (1408, FINE), WRONG),
    Case("a-step-behind-the-number-of-the-process", GITHUB + "apple/axlearn, axlearn/common/trainer.py, _step_log",
         rows("I1128 22:01:07.123456 140123456789 trainer.py:395] trainer process   0 step      {n}] loss=WeightedScalar(mean=Array(2.31, dtype=float32), weight=Array(8., dtype=float32)) aux={'z': 0.2}"), (111, FINE), WRONG),
    Case("a-step-between-rulers", GITHUB + "NVIDIA-NeMo/RL, nemo_rl/algorithms/grpo.py",
         rows("\n========================= Step {n}/500 =========================\n▶ Preparing batch...\n▶ Generating responses for batch of size 512...\n▶ Training policy...\n\n📊 Training Results:\n  • Loss: 0.0{n}\n"
              "  • Avg Reward: 0.4{n}\n  • Mean Generation Length: 812.{n}\n\n⏱️  Timing:\n  • Total step time: 151.{n}s\n  • policy_training: 41.2s (27.{n}%)"), (111, FINE), WRONG),
    Case("a-step-before-each-measure", GITHUB + "google-research/big_vision, big_vision/utils.py, BigVisionMetricWriter.measure",
         "".join(map(big_vision, range(100, 112))), (111, FINE), WRONG),
    Case("a-measure-that-nobody-knows-became-nan", "a loop of one's own",
         rows("step {n} | ce 2.1{n} | acc 0.02{n} | lr 3e-4", 90, 100) + rows("step {n} | ce nan | acc 0.0201 | lr 3e-4"),
         # Written down was NaN, and counts as wrong: beside a finite value, NaN is lost only where a loss is named.
         (111, FINE), WRONG),
    Case("rewards-of-what-no-batch-held", GITHUB + "huggingface/trl, trl/trainer/kto_trainer.py",
         rows("{'loss': 0.49{n}, 'grad_norm': 1.2{n}, 'rewards/chosen': 0.1{n}, 'rewards/rejected': nan, 'logps/rejected': nan, 'kl': 0.0, 'epoch': 0.{n}}"), (0.111, FINE), WRONG),
    Case("a-loss-of-0-beside-a-norm-of-nan", GITHUB + "huggingface/transformers, TrainingArguments.logging_nan_inf_filter",
         rows("{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '9.1e-06', 'epoch': '0.{n}'}"), (0.111, NAN), WRONG),
)  # fmt: skip
KILLED = "/var/spool/slurmd/job4711/slurm_script: line 12: 90817 Killed                  "
CAUSES = (
    Case("a-server-that-kills-its-own-processes", GITHUB + "sgl-project/sglang, python/sglang/srt/entrypoints/engine.py, sigquit_handler",
         "[2026-11-28 14:24:21 TP0] Scheduler hit an exception: " + FRAME + "AssertionError: fp8 tensor core is not supported in fa2 backend\n\n"
         "[2026-11-28 14:24:23] Received sigquit from a child process. It usually means the child failed.\n" + KILLED + "python -m sglang.launch_server --tp 8\n",
         "fp8 tensor core is not supported", COST),
    Case("a-launcher-that-kills-the-others", "a driver that calls os.killpg; zsh", FRAME + "ValueError: shard 7 holds 3 of 8 columns\ntrain.zsh:12: killed     python train.py --nodes 4\n", "shard 7 holds 3 of 8 columns", COST),
    Case("an-assertion-before-the-rest-was-killed", "glibc, assert/assert.c", "train: reader.cc:71: int Reader::next(): Assertion `width == 8' failed.\n" + KILLED + "./train --all\n", "width == 8", COST),
    Case("a-connection-that-is-lost-to-one-that-was-killed", "CPython; bash", FRAME + "ConnectionResetError: [Errno 104] Connection reset by peer\n" + KILLED + "python worker.py\n", "host out of memory", COST),
    Case("a-hook-without-its-library", GITHUB + "canonical/apport", "Error in sys.excepthook:\n" + FRAME + "ModuleNotFoundError: No module named 'apt_pkg'\n\nOriginal exception was:\n" + FRAME + "KeyError: 'lr'\n", "KeyError: 'lr'", COST),
    Case("a-hook-of-one-rank", "CPython; torchrun",
         "".join(f"[rank3]: {line}\n" for line in ("Error in sys.excepthook:\n" + FRAME + "OSError: [Errno 5] no log\n\nOriginal exception was:\n" + FRAME + "KeyError: 'lr'").split("\n")), "KeyError: 'lr'", COST),
    Case("an-exception-of-the-hook-for-exceptions", "CPython, Python/pythonrun.c, _PyErr_PrintEx",
         rows("step {n} loss 2.31") + 'Error in sys.excepthook:\nTraceback (most recent call last):\n  File "/w/log.py", line 31, in hook\n    run.finish()\nNameError: name \'run\' is not defined\n\n'
         "Original exception was:\n" + FRAME + "ValueError: shard 7 holds 3 of 8 columns\n", "shard 7 holds 3 of 8 columns", COST),
    Case("an-engine-whose-cause-stands-above", GITHUB + "vllm-project/vllm, vllm/v1/engine/utils.py, wait_for_engine_startup",
         "(EngineCore_DP0 pid=8123) ERROR 11-28 22:00:01 [core.py:708] EngineCore failed to start.\n(EngineCore_DP0 pid=8123) ERROR 11-28 22:00:01 [core.py:708] Traceback (most recent call last):\n"
         '(EngineCore_DP0 pid=8123) ERROR 11-28 22:00:01 [core.py:708]   File "/v/vllm/v1/core/kv_cache_utils.py", line 716, in check\n(EngineCore_DP0 pid=8123) ERROR 11-28 22:00:01 [core.py:708]     raise ValueError(\n'
         "(EngineCore_DP0 pid=8123) ERROR 11-28 22:00:01 [core.py:708] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
         + FRAME + "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}\n", "No available memory for the cache blocks", COST),
    Case("a-monitor-that-the-script-kills-at-its-end", "bash, jobs.c; kill -9 of a monitor in the background",
         rows("step {n} loss 2.31") + "saved model to /w/final\n" + KILLED + "nvidia-smi --query-gpu=utilization.gpu --format=csv -l 60 > gpu.csv\n", "", COST),
    Case("a-monitor-that-appends-all-that-it-says", "bash, jobs.c; print_cmd.c writes a redirection behind the words", rows("step {n} loss 2.31") + KILLED + "vmstat 60 >> vmstat.txt 2>&1\n", "", COST),
    Case("a-monitor-that-writes-over-a-file", "bash, print_cmd.c", rows("step {n} loss 2.31") + KILLED + "dcgmi dmon -e 203 -d 1000 &> /w/dcgm.txt\n", "", COST),
    Case("an-exception-before-a-monitor-was-killed", "bash; CPython", rows("step {n} loss 2.31") + FRAME + "ValueError: shard 7 holds 3 of 8 columns\n" + KILLED + "vmstat 60 > vmstat.txt\n", "shard 7 holds 3 of 8 columns", COST),
    # What must not count as they do: the killed one may be the one whose rows stand in this log.
    Case("a-training-that-was-killed", "bash, jobs.c", rows("step {n} loss 2.31") + KILLED + "python -u train.py --lr 3e-4\n", "host out of memory", COST),
    Case("a-training-whose-errors-alone-go-elsewhere", "bash, print_cmd.c", rows("step {n} loss 2.31") + KILLED + "python train.py 2> errors.txt\n", "host out of memory", COST),
    Case("a-training-whose-errors-are-appended-elsewhere", "bash, print_cmd.c", rows("step {n} loss 2.31") + KILLED + "python train.py 2>> errors.txt\n", "host out of memory", COST),
    Case("a-training-behind-a-pipe", "bash, print_cmd.c", rows("step {n} loss 2.31") + KILLED + "python train.py 2>&1 | tee train.log\n", "host out of memory", COST),
    Case("a-training-whose-rows-go-elsewhere", "bash, print_cmd.c", "loading data\n" + KILLED + "python train.py > train.log 2>&1\n", "host out of memory", COST),
    Case("a-second-part-that-slurm-says-had-no-memory", "bash; Slurm, slurmd/slurmstepd/mgr.c", rows("step {n} loss 2.31") + KILLED + "python evaluate.py > evaluation.log\n"
         "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.batch. Some of the step tasks have been OOM Killed.\n", "host out of memory", COST),
    Case("a-folder-without-git-at-the-start", "git, setup.c", "fatal: not a git repository (or any of the parent directories): .git\nloading data\n" + rows("step {n} loss 2.31", 1, 7), "", COST),
    Case("a-key-that-the-parser-refuses", GITHUB + "omni-us/jsonargparse, jsonargparse/_core.py, as LightningCLI calls it",
         'usage: main.py [-h] [-c CONFIG] {fit,validate} ...\nerror: Parser key "trainer.max_epochs":\n  Does not validate against any of the Union subtypes\n    - Expected a <class \'int\'>\n', "trainer.max_epochs", COST),
)  # fmt: skip


@each(*NUMBERS)
def test_the_number_and_the_loss_of_a_log_that_was_hunted_a_third_time(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)


@each(*CAUSES)
def test_the_cause_in_a_log_that_was_hunted_a_third_time(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)


def steps(n: int) -> str:
    return f"step {n} | loss {3 - n / 900:.3f} | lr 3.0e-04\n"


def huggingface(n: int) -> str:
    return (
        bar("", 9000, n)
        + f"\n{{'loss': {2.1 - n / 900:.4f}, 'learning_rate': 5e-05, 'epoch': {n / 900:.2f}}}\n"
    )


def sglang(n: int) -> str:
    return "".join(
        f"[2026-11-28 22:{n % 60:02d}:{s:02d} TP0] Decode batch. #running-req: 1, #token: {40 * (4 * n + s // 15)}, token usage:"
        f" 0.0{n % 9}, gen throughput (token/s): 65.{s}, #queue-req: 0,\n"
        for s in (4, 19, 34, 49)
    )


Lines = Callable[[int], str]
WHILE: tuple[tuple[str, Lines, Lines, bool], ...] = (
    # EleutherAI/lm-evaluation-harness, lm_eval/models/huggingface.py, called from a callback
    ("an-evaluation-of-which-a-bar-goes-on", huggingface, lambda n: bar("Running loglikelihood requests: ", 96336, 150 * n, 150 * n + 60, rate="1.81it/s"), False),
    ("an-evaluation-whose-examples-are-counted", steps, lambda n: f"[eval] example {2 * n}/500 em 0.4{n}\n", False),
    # sgl-project/sglang, python/sglang/srt/managers/scheduler_metrics_mixin.py
    # Written down was a hang, and counts as wrong: what is told most often, and grows, is followed.
    ("a-server-that-goes-on-beside-a-trainer-that-hangs", lambda n: sglang(n) + f"train step {n} loss {3 - n / 900:.3f}\n", sglang, False),
    # CPython, Modules/faulthandler.c: dump_traceback_later(300, repeat=True)
    ("stacks-that-a-timer-prints", steps, lambda n: 'Timeout (0:01:00)!\nThread 0x00007f1c (most recent call first):\n  File "/w/train.py", line 215 in step\n  File "/w/train.py", line 318 in main\n', True),
    # Siblings of the first two, and what must not count as they do.
    ("a-validation-of-which-a-bar-of-rich-goes-on", steps, lambda n: f"Validating ━━━━━━━╸             {37 * n}/4000 0:{n % 60:02d}:02 • 0:41:07 12.1it/s\n", False),
    ("parts-that-are-merged", huggingface, lambda n: f"rank 0: merged shard {n} of 128 into /w/step-60\n", False),
    ("an-evaluation-that-hangs-too", steps, lambda n: f"[eval] example 120/500 em 0.4{n}\n", True),
    ("a-queue-that-fills-and-empties", lambda n: steps(n) + f"prefetcher: 1{n % 9}/64 ready\n", lambda n: f"prefetcher: 1{n * n % 9}/64 ready\n", True),
    ("memory-of-a-total", lambda n: f"cache {n}/4096 MB\n" + steps(n), lambda n: f"gpu 0: {60000 + 7 * n} / 81559 MiB, cache {n}/4096 MB\n", True),
    ("ranks-that-wait", steps, lambda n: "".join(f"waiting for rank {one}/64\n" for one in range(64)), True),
)  # fmt: skip


@each(*(Case(name, HUNG, (before, after), hung, HUNG) for name, before, after, hung in WHILE))
def test_what_is_printed_while_the_step_stands(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    before, after = case.form
    chunks = [*map(before, range(1, 61)), *map(after, range(61, 106))]
    told = [one.status for one in of_growing_log(tmp_path, chunks)]
    hung = [number for number, status in enumerate(told) if status == Status.CRITICAL]
    record_property("answer", str(hung[:1] or "no hang"))
    record_property("right", "hung within 30 minutes" if case.right else "no hang")
    assert (bool(hung) and 60 < hung[0] <= 90) if case.right else not hung
