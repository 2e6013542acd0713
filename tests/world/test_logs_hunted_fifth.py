"""Logs that somebody looked for who had just read the code; the answers were written down before the program ran. Siblings and what is well beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from sentinel.core.model import Status
from tests.world.case import Case, each
from tests.world.logs import of_growing_log
from tests.world.test_causes_drawn import FRAME
from tests.world.test_progress_drawn import GITHUB, NAN, rows
from tests.world.test_training_logs_drawn import COST, Told, assert_told


def ggml(split: str, n: int, total: int, loss: str) -> str:
    return f"\r{split} [{'█' * (8 * n // total):8s}] data={n:07d}/{total:07d} loss={loss} acc=42.86±0.07% t=00:20:25 ETA=00:00:00"


def ggml_epochs(loss: str, epochs: int = 3) -> str:
    return (
        "".join(
            "".join(ggml("train:", n, 1123, loss) for n in range(1, 1124, 6))
            + "".join(ggml("val:  ", n, 60, loss) for n in range(1, 61, 3))
            + "\n\n"
            for _ in range(epochs)
        )
        + "".join(ggml("train:", n, 1123, loss) for n in range(1, 601, 6))
        + "\r"
    )


def prefixed(prefix: str, text: str) -> str:
    return "".join(prefix + line for line in text.splitlines(keepends=True))


def docker(line: str, n: int = 0) -> str:
    return (
        json.dumps(
            {"log": line, "stream": "stderr", "time": f"2026-11-28T10:{n % 60:02d}:12.123456789Z"},
            separators=(",", ":"),
        )
        + "\n"
    )


def docker_text(text: str) -> str:
    return "".join(docker(line) for line in text.splitlines(keepends=True))


SKY = "(worker1, rank=1, pid=22249, ip=10.31.0.9) "
HEAD = "(head, rank=0, pid=1113) "
TABLE = "------------------------------------------------------------\n"
ELASTIC = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    + 60 * "="
    + "\ntrain_xformers.py FAILED\n"
    + TABLE
    + "Failures:\n[1]:\n  time      : 2023-08-05_13:59:34\n  host      : n2\n  rank      : 5 (local_rank: 1)\n"
    "  exitcode  : 1 (pid: 22640)\n  error_file: <N/A>\n"
    + TABLE
    + "Root Cause (first observed failure):\n[0]:\n  time      : 2023-08-05_13:59:34\n  host      : n2\n  rank      : 4 (local_rank: 0)\n  exitcode  : 1 (pid: 22639)\n  error_file: <N/A>\n"
    + 60 * "="
    + "\n"
)
AUTOTUNE = (
    "".join(
        f"E0912 11:54:{n}.366000 1121181 torch/_inductor/select_algorithm.py:2100] [7/0] {words}\n"
        for n in range(57, 60)
        for words in (
            "Runtime error during autotuning: ",
            "No valid triton configs. OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.. ",
            "Ignoring this choice.",
        )
    )
    + "AUTOTUNE bmm(8x50x256, 8x256x1018)\n"
    + "".join(
        f"  triton_bmm_{n} 0.0072 ms 100.0% ACC_TYPE='tl.float32', ALLOW_TF32=True, BLOCK_K=32, BLOCK_M=64, num_stages=5, num_warps=8\n"
        for n in (68, 79, 81, 82, 85)
    )
)


def intern(n: int) -> str:
    return (
        f"2024-11-24 02:{n % 60:02d}:28,531 INFO pipeline.py:770 in record_current_batch_training_metrics -- tflops=229.64161376788178 step={n} loss=2.17254{n} real_tgs=719.84 tgs (tokens/gpu/second)=720.46 tgs/last_tgs_1=720.46 lr=9.808683347597691e-05"
        f" loss_scale=16384.0 grad_norm={{'0_default': 2.15{n}, '1_fp32': 0.0}} micro_num=16 num_consumed_tokens={674234368 + 1048576 * n} inf_nan_skip_batches=3 num_samples_in_batch=102 acc=0.5494 perplexity=9.0888\n"
    )


def zero(n: int) -> str:
    return (
        f"(main_task pid=327757) step:{n} - global_seqlen/min:1166.000 - global_seqlen/max:1170.000 - critic/kl:nan - critic/kl_coeff:0.001 - critic/vf_loss:nan - critic/vf_clipfrac:0.000 - critic/vpred_mean:nan - critic/grad_norm:nan - mfu/critic:0.000"
        " - actor/entropy_loss:nan - actor/pg_loss:nan - actor/pg_clipfrac:0.000 - actor/ppo_kl:nan - actor/grad_norm:nan - critic/score/mean:0.000 - critic/rewards/mean:nan - response_length/mean:1024.000 - timing_s/gen:31.410\n"
    )


def trl(n: int) -> str:
    box = [
        "╭" + 34 * "─" + f" Step {n} " + 34 * "─" + "╮",
        "│ ┏━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┓ │",
        "│ ┃ Prompt               ┃ Completion                                    ┃ accuracy ┃ │",
        "│ ┡━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━┩ │",
        "│ │ USER                 │ ASSISTANT                                     │     0.00 │ │",
        "│ │ What does it print?  │ Traceback (most recent call last):            │          │ │",
        '│ │                      │   File "a.py", line 3, in <module>            │          │ │',
        "│ │                      │ ZeroDivisionError: division by zero           │          │ │",
        "│ │                      │ so the answer is an error.                    │          │ │",
        "│ └──────────────────────┴───────────────────────────────────────────────┴──────────┘ │",
        "╰" + 84 * "─" + "╯",
    ]
    return (
        f"{{'loss': 0.01{n}, 'grad_norm': 0.21{n}, 'learning_rate': 9.{n}e-07, 'reward': 0.51, 'reward_std': 0.2, 'kl': 0.0005, 'epoch': {n / 100:.2f}}}\n"
        + "\n".join(box)
        + "\n"
    )


TORCHFT = (
    "[rank0]:[titan] 2026-11-28 10:00:12,123 - torchft.manager - ERROR - got exception in all reduce -- skipping remaining: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:41234\n"
    'Traceback (most recent call last):\n  File "/opt/a/torchft/manager.py", line 372, in allreduce\n    work = self._pg.allreduce([tensor], ReduceOp.SUM)\n  File "/opt/a/torchft/process_group.py", line 812, in allreduce\n    raise self._error\n'
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:41234\n"
    "[rank0]:[titan] 2026-11-28 10:00:13,123 - torchft.manager - INFO - reconfiguring for quorum_id=4 store_prefixed_addr='10.0.0.1:29600/torchft/4/0'\n"
)


def titan(first: int, last: int) -> str:
    return rows(
        "[rank0]:[titan] 2026-11-28 10:01:12,123 - root - INFO - step: {n}  loss:  3.1{n}  grad_norm:  0.83  memory:  9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%",
        first,
        last,
    )


def alive(n: int) -> str:
    return f"\rtraining |{'█' * (40 * n // 1000):40s}| ▁▃▅ {n}/1000 [{n // 10}%] in {n // 20}s (~{50 - n // 20}s, 19.8/s) "


def deeprm(n: int) -> str:
    return (
        f"Iteration: \t {n}\nNumTrajs: \t 200\nNumTimesteps: \t {32549 + 13 * n % 700}\nLoss:     \t 0.12{n}063800573349\nMaxRew: \t -199.90956376956376\nMeanRew: \t -257.4375 +- 63.18571158682983\nMeanSlowdown: \t 8.0950{n}\n"
        f"MeanLen: \t 162.745 +- 13.351403\nMeanEntropy \t 2.397886\nElapsed time\t {97 + 7 * n % 9}.0672 seconds\n-----------------\n"
    )


def geno(n: int) -> str:
    return f"Epoch: {n}/40...\n--- Train loss: 0.54{n}  time: 1.08{n}\n-------- Saving weights: /shared/a/ae.M1.ex3.b_0_4/weights/min_valid.{n} time: 0.402458\n--- Valid loss: 0.54{n}  time: 0.207285 min loss: 0.54{n} epochs since: 0\n\n"


def mindocr(n: int) -> str:
    return (
        "".join(
            f"[WARNING] ME(3613:140537237112640,ForkServerPoolWorker-1:1):2024-03-07-06:39:44.{k}69.244 [mindspore/train/summary/_summary_adapter.py:304] There are no valid values in the ndarray(size=40960, shape=(1, 640, 64))\n"
            for k in range(2, 7)
        )
        + f"[2024-03-07 06:40:10] mindocr.utils.callbacks INFO - epoch: [1/3] step: [{n}/1000], loss: nan, lr: 0.000793, per step time: 223.489 ms, fps per card: 4.47 img/s\n"
    )


NOTEBOOK = (
    "---------------------------------------------------------------------------\nUnboundLocalError                         Traceback (most recent call last)\nCell In[13], line 1\n----> 1 trainer_stats = trainer.train()\n\n"
    "File ~/.local/lib/python3.12/site-packages/transformers/trainer.py:2241, in Trainer.train(self, resume_from_checkpoint, trial, ignore_keys_for_eval, **kwargs)\n   2239         hf_hub_utils.enable_progress_bars()\n   2240 else:\n-> 2241     return inner_training_loop(\n"
    "   2242         args=args,\n   2243         resume_from_checkpoint=resume_from_checkpoint,\n\nFile <string>:306, in _fast_inner_training_loop(self, batch_size, args, resume_from_checkpoint, trial, ignore_keys_for_eval)\n\n"
    "UnboundLocalError: cannot access local variable 'logits' where it is not associated with a value\n"
)


def vllm(n: int) -> str:
    """What the engine of a rollout tells each minute."""
    return (
        f"INFO 11-28 10:{n % 60:02d}:12 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s,"
        " Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.4%, Prefix cache hit rate: 61.2%\n"
    )


HUNTED = (
    Case("a-bar-of-ggml", GITHUB + "ggml-org/llama.cpp/issues/14424", ggml_epochs("3.02974±0.00998"), Told((595, 596, 597, 598, 599, 600, 601)), COST),
    Case("a-bar-of-ggml-that-is-nan", GITHUB + "ggml-org/llama.cpp, ggml/src/ggml-opt.cpp", ggml_epochs("nan±nan"), Told((595, 596, 597, 598, 599, 600, 601), (NAN,)), COST),
    Case("memory-of-metal", GITHUB + "ml-explore/mlx-lm/issues/236",
         "Iter 1: Val loss 3.495, Val took 2.509s\n" + rows("Iter {n}: Train loss 1.7{n}, Learning Rate 1.000e-05, It/sec 0.525, Tokens/sec 349.200, Trained Tokens 8{n}17, Peak mem 32.138 GB", 10, 110, 10)
         + "libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)\nzsh: abort      mlx_lm.lora --model ./Qwen3-8\n",
         Told((100,), shown=("Insufficient Memory",)), COST),
    Case("choices-that-are-ignored", GITHUB + "Physical-Intelligence/openpi/issues/654 and 505", AUTOTUNE + rows("Step {n}: grad_norm=0.6660, loss=0.05{n}, param_norm=1378.{n}", 100, 2100, 100), Told((2000,)), COST),
    Case("three-batches-that-were-skipped", GITHUB + "InternLM/InternEvo/issues/375", "".join(map(intern, range(630, 650))), Told((649,)), COST),
    Case("a-program-that-two-nodes-do-not-find", GITHUB + "skypilot-org/skypilot/issues/5181",
         "".join(f"{p}Starting distributed training, head node: 10.1.182.124\n{p}bash: torchrun: command not found\n" for p in (HEAD, SKY)), Told((None,), shown=("torchrun: command not found",)), COST),
    Case("a-traceback-behind-a-mark-of-skypilot", GITHUB + "skypilot-org/skypilot/issues/2355",
         prefixed(SKY, FRAME + "ValueError: Tokenizer class LlamaTokenizer does not exist or is not currently imported.\n" + ELASTIC), Told((None,), shown=("Tokenizer class LlamaTokenizer does not exist",)), COST),
    Case("a-fault-that-paddle-caught", GITHUB + "PaddlePaddle/Paddle/issues/37018",
         "".join(f"\reval model:   3% {n}/300 [00:08<04:12,  1.15it/s]" for n in range(11)) + "\n\n--------------------------------------\nC++ Traceback (most recent call last):\n--------------------------------------\n"
         "0   paddle::imperative::Tracer::TraceOp(std::string const&, paddle::imperative::NameVarBaseMap const&)\n1   paddle::imperative::PreparedOp::Run(paddle::imperative::NameVarBaseMap const&)\n\n----------------------\nError Message Summary:\n----------------------\n"
         'FatalError: `Segmentation fault` is detected by the operating system.\n  [TimeInfo: *** Aborted at 1661554098 (unix time) try "date -d @1661554098" if you are using GNU date ***]\n  [SignalInfo: *** SIGSEGV (@0x10) received by PID 1011 (TID 0x7f347a887700) from PID 16 ***]\n',
         Told((None, 10), shown=("Segmentation fault", "SIGSEGV")), COST),
    Case("all-losses-of-a-critic-and-an-actor", GITHUB + "Jiayi-Pan/TinyZero/issues/101", "".join(map(zero, range(3650, 3664))), Told((3663,), (NAN,)), COST),
    Case("an-error-that-a-model-wrote", GITHUB + "huggingface/trl, trl/trainer/utils.py, print_prompt_completions_sample", "".join(map(trl, range(10, 31))), Told((30, 0.3)), COST),
    Case("nan-within-json-of-docker", GITHUB + "moby/moby, daemon/logger/jsonfilelog", "".join(docker(f"step {n}/5000 | loss {'nan' if n > 90 else 2.31} | lr 3.0e-04\n", n) for n in range(80, 112)), Told((111,), (NAN,)), COST),
    Case("a-traceback-within-json-of-docker", GITHUB + "moby/moby, daemon/logger/jsonfilelog",
         "".join(docker(f"step {n}/5000 | loss 2.3{n} | lr 3.0e-04\n", n) for n in range(80, 112)) + docker_text(FRAME + "RuntimeError: The size of tensor a (128) must match the size of tensor b (127) at non-singleton dimension 1\n"),
         Told((111,), shown=("RuntimeError: The size of tensor a",)), COST),
    Case("a-traceback-behind-marks-of-cri", GITHUB + "kubernetes/kubernetes, pkg/kubelet/kuberuntime/logs/logs.go",
         "".join(f"2026-11-28T10:{n % 60:02d}:12.123456789Z stdout F step {n}/5000 | loss 2.3{n} | lr 3.0e-04\n" for n in range(80, 112)) + prefixed("2026-11-28T10:52:13.223456789Z stderr F ", FRAME + "KeyError: 'input_ids'\n"),
         Told((111,), shown=("KeyError: 'input_ids'",)), COST),
    Case("a-replica-that-was-lost-and-survived", GITHUB + "meta-pytorch/torchft, torchft/manager.py", titan(10, 40) + TORCHFT + titan(40, 80), Told((79,)), COST),
    Case("a-bar-that-is-alive", GITHUB + "rsalmei/alive-progress, README.md", "".join(map(alive, range(10, 400, 10))) + "\r", Told((390,)), COST),
    Case("a-traceback-of-a-notebook", GITHUB + "unslothai/unsloth/issues/2068", NOTEBOOK, Told((None,), shown=("cannot access local variable 'logits'",)), COST),
    Case("warnings-between-rows-that-are-nan", GITHUB + "mindspore-lab/mindocr/issues/678", "".join(map(mindocr, range(50, 1000, 50))), Told((950, 1), (NAN,)), COST),
    Case("an-iteration-of-ten-lines", GITHUB + "hongzimao/deeprm/issues/10", "".join(map(deeprm, range(14))), Told((13,)), COST),
    Case("an-epoch-with-dots-behind-its-total", GITHUB + "kausmees/GenoCAE/issues/32", "".join(map(geno, range(5, 26))), Told((25,)), COST),
)  # fmt: skip

SPINNER = ("▁▂▃", "▂▄▆", "▇▇▆", "▅▃▁")


def spun(n: int) -> str:
    return alive(n).replace("▁▃▅", SPINNER[n // 10 % 4])


def mmcv(n: int, behind: str = "") -> str:
    return f"\r[{'>' * (38 * n // 3849):38s}] {n}/3849, 4.0 task/s, elapsed: 799s, ETA:   {(3849 - n) // 4}s{behind}"


def told_before(loss: str, epochs: int) -> str:
    """The loss stands in the words before a bar."""
    return "".join(
        "".join(
            f"\rEpoch: {e}/9, step {n} (loss: {loss}): {100 * n // 64:3d}%|████| {n}/64 [04:02<00:00,  3.78s/it]"
            for n in range(1, 65, 3 + e)
        )
        + "\n"
        for e in range(epochs)
    )


STACK = "[ Stack-Trace: ]\nkaldi::nnet3::Read(int)\nkaldi::nnet3::Nnet::Read(std::istream&, bool)\nstd::map<int, std::string>::at(int const&) const\nmain\n__libc_start_main\n_start\n"
SIBLINGS = (
    Case("a-spinner-beside-the-count", "alive-progress, alive_progress/styles/internal.py", "".join(map(spun, range(10, 400, 10))) + "\r", Told((390,)), COST),
    Case("a-bar-of-one-sign", "a loop of one's own", "".join(f"[{'=' * (n // 20)}>{'.' * (20 - n // 20)}] {n}/400\n" for n in range(10, 400, 10)), Told((390,)), COST),
    Case("a-bar-of-memory", "a loop of one's own: nothing of a training", "".join(f"vram |{'█' * (n % 9):9s}| {n * 37 % 80}/80\n" for n in range(10, 60)), Told((None,)), COST),
    Case("a-small-loss-before-a-bar", GITHUB + "meta-llama/llama-cookbook/issues/300", told_before("1.9040994346141815e-05", 3), Told((61, 64)), COST),
    Case("no-number-before-a-bar", GITHUB + "meta-llama/llama-cookbook/issues/300", told_before("0.19040994346141815", 1) + told_before("nan", 3), Told((61, 64), (NAN,)), COST),
    Case("an-error-and-another-stack-of-kaldi", "Kaldi 5.5, src/base/kaldi-error.cc", "ERROR (nnet3-copy[5.5]:Read():nnet-nnet.cc:611) Failed to read token\n\n" + STACK, Told((None,), shown=("Failed to read token",)), COST),
    Case("a-log-of-kaldi-that-is-well", "Kaldi 5.5, src/base/kaldi-error.cc", "LOG (nnet3-copy[5.5]:Read():nnet-nnet.cc:611) Read a model\n\n" + STACK, Told((None,)), COST),
    Case("a-cache-that-is-not-there", "a program of one's own, which goes on", "ERROR: the cache is not there\nread a.txt\nread b.txt\nread c.txt\nread d.txt\ndone\n", Told((None,)), COST),
    Case("killed-directly-behind-a-bar", "mmcv 1, mmcv/utils/progressbar.py; bash", "".join(map(mmcv, range(1, 3218, 8))) + "Killed\n", Told((None, 3217), shown=("killed",)), COST),
    Case("a-word-behind-a-bar-at-its-end", "mmcv 1, mmcv/utils/progressbar.py", "".join(map(mmcv, range(1, 3850, 8))) + mmcv(3849, "Evaluating") + "\n", Told((None, 3841, 3849)), COST),
)  # fmt: skip


@each(*HUNTED, *SIBLINGS)
def test_a_log_that_was_hunted_a_fifth_time(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_told(case, tmp_path, record_property)


def test_an_engine_that_idles_while_the_step_stands(tmp_path: Path) -> None:
    steps = [f"step {n} | loss {3 - n / 900:.3f} | lr 3.0e-04\n" for n in range(1, 61)]
    told = [one.status for one in of_growing_log(tmp_path, [*steps, *map(vllm, range(61, 91))])]
    assert 60 < told.index(Status.CRITICAL) <= 90
