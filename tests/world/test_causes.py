"""Causes in logs: what came first, and what only sounds like an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentinel.checks.job.output import find_error_line
from tests.world.case import Case, each
from tests.world.logs import assert_cause

STEPS = "".join(f"step {n} loss 1.9\n" for n in range(10, 20))
TRACE = 'Traceback (most recent call last):\n  File "/w/train.py", line 288, in main\n    f()\n'
WATCHDOG = (
    "[rank{r}]:[E308 13:41:45.510 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=4539, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600061"
    " milliseconds before timing out.\n"
)
ECHO = "An echo is repaired at night, and the cause stays."
FALSE_CAUSE = "Somebody looks for an error that there is not."

WHOLE = (
    Case("a-bare-exception", "fairseq data loaders raise Exception itself", STEPS + TRACE
         + "Exception: shard 417 has 81920 documents, the index says 81925\n",
         "shard 417 has 81920 documents", ECHO),
    Case("an-exception-of-the-script-itself", "CPython 3.11: a class of __main__ by its bare name",
         STEPS + TRACE + "BadShard: 417\n", "BadShard: 417", ECHO),
    Case("ray-carries-it", "Ray 2.9, exceptions.py: RayTaskError.__str__", STEPS + TRACE
         + "ray.exceptions.RayTaskError(ValueError): ray::f() (pid=99, ip=10.0.0.7)\n"
         '  File "/w/reward.py", line 29, in f\n    g()\nValueError: the server sent no reward\n',
         "ValueError: the server sent no reward", ECHO),
    Case("behind-stamps-that-change", "Python's logging with a handler that splits lines",
         STEPS + "".join(f"2026-03-08 10:00:0{n},12{n} ERROR train: {line}\n" for n, line in enumerate(
             [*TRACE.splitlines(), "KeyError: 'input_ids'"])),
         "KeyError: 'input_ids'", ECHO),
    Case("within-json", "structlog 24 with format_exc_info and JSONRenderer",
         STEPS + '{"event": "crashed", "level": "error", "exception": "Traceback (most recent call last):\\n'
         '  File \\"/w/train.py\\", line 9, in main\\n    f()\\nZeroDivisionError: no batch"}\n',
         "ZeroDivisionError: no batch", ECHO),
    Case("an-old-watchdog-names-its-rank-within", "PyTorch 2.0, ProcessGroupNCCL.cpp",
         STEPS + "[E ProcessGroupNCCL.cpp:828] [Rank 5] Watchdog caught collective operation timeout:"
         " WorkNCCL(SeqNum=37, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1805402 milliseconds\n"
         "terminate called after throwing an instance of 'std::runtime_error'\n",
         "NCCL timeout of rank 5", ECHO),
    Case("an-http-error-before-the-watchdogs", "datasets 2.19: the hub answers 429 to one rank",
         STEPS + "".join(f"[rank3]: {line}\n" for line in [*TRACE.splitlines(),
             "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://a/b"])
         + WATCHDOG.format(r=1) + WATCHDOG.format(r=0),
         "of rank 3 ([rank3]: requests.exceptions.HTTPError: 429", ECHO),
    Case("a-watchdog-that-spoke-sooner", "PyTorch 2.4: the ranks write into one file, one of them late",
         STEPS + WATCHDOG.format(r=1) + "".join(
             f"[rank3]: {line}\n" for line in [*TRACE.splitlines(), "ValueError: token 99 of 50"]),
         "ValueError: token 99 of 50", ECHO),
    Case("shared-memory-is-no-disk", "PyTorch 1.13 in a container with 64 MB of /dev/shm",
         STEPS + TRACE + "RuntimeError: unable to write to file </torch_72_78_1>: No space left on device (28)\n"
         "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared"
         " memory (shm).\n", "shared memory (/dev/shm)", ECHO),
    Case("nccl-s-segment-in-shared-memory", "NCCL 2.18, misc/shmutils.cc",
         STEPS + "node-3:71:99 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-AbC to"
         " 33030532 bytes, error: No space left on device (28)\n", "shared memory (/dev/shm)", ECHO),
    Case("a-full-disk-is-no-shared-memory", "glibc, strerror(3)", STEPS + TRACE
         + "OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_19'\n", "disk", ECHO),
    Case("a-host-by-its-address", "pdsh 2.34 over a hostfile of addresses", STEPS
         + "".join(f"10.0.7.172: {line}\n" for line in [*TRACE.splitlines(),
             "RuntimeError: CUDA error: an illegal memory access was encountered"]),
         "CUDA error on 10.0.7.172", ECHO),
    Case("the-batch-is-made-smaller", "Composer 0.17, trainer.py: device_train_microbatch_size auto",
         STEPS + "trainer.py:240: RuntimeWarning: CUDA out of memory detected. Train microbatch size will be"
         " decreased from 64 -> 32.\n", "", FALSE_CAUSE),
    Case("a-batch-size-finder", "Lightning 2.2, tuner/batch_size_scaling.py",
         STEPS + "Batch size 512 failed with CUDA out of memory, trying again with batch size 256\n", "", FALSE_CAUSE),
    Case("a-kernel-is-left-out", "XLA in JAX 0.4.30, gemm_fusion_autotuner.cc",
         STEPS + "W0308 03:12:05.1 71 gemm_fusion_autotuner.cc:790] RESOURCE_EXHAUSTED: Out of memory while"
         " trying to allocate 12884901888 bytes.\n", "", FALSE_CAUSE),
    Case("a-printed-environment", "env(1) at the start of a batch script",
         STEPS + "CUDA_ERROR_LEVEL=50\nSLURM_JOB_COMMENT=NCCL error of last night\nHSA_STATUS_ERROR_ABORT=0\n",
         "", FALSE_CAUSE),
    Case("a-printed-setting", "Hydra 1.3 prints its configuration",
         STEPS + "watchdog: mode=oom_killer\n{'on_fail': 'CUDA error', 'policy': 'Killed'}\n", "", FALSE_CAUSE),
    Case("a-message-in-a-structured-line-is-one", "logrus 1.9: the control of the above",
         STEPS + 'time="03:12" level=error msg="CUDA error: an illegal memory access was encountered"\n',
         "CUDA error", ECHO),
    Case("a-dictionary-with-a-message-is-one", "a JSON logger: the control of the above",
         STEPS + "{'level': 'error', 'message': 'CUDA out of memory. Tried to allocate 2.00 GiB'}\n",
         "CUDA out of memory", ECHO),
    Case("slurmstepd-goes-on-elsewhere", "Slurm 23.11, src/slurmd/slurmstepd/task.c: the control of a script that is not there",
         "slurmstepd: error: couldn't chdir to `/scratch/run': No such file or directory: going to /tmp instead\n" + STEPS,
         "", FALSE_CAUSE),
    Case("an-autotuner-s-check", "XLA 2025, logged at E: the control of a check that fails", STEPS
         + "2025-04-23 20:35:34.6: E external/xla/xla/service/gpu/autotuning/gemm_fusion_autotuner.cc:77] Check failed: x == y\n",
         "", FALSE_CAUSE),
    Case("a-lock-of-pmix-s-store", "Dell's llama2_70b_lora of MLPerf Training 5.1: it is printed, and the run succeeds",
         "0: [node076:446095] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 168\n" + STEPS, "", FALSE_CAUSE),
    Case("pmix-cannot-go-on", "OpenPMIX, src/util/error.c: the control of the above",
         STEPS + "[node076:446095] PMIX ERROR: UNREACHABLE in file ptl_tcp_component.c at line 1884\n", "MPI start-up", ECHO),
    Case("verl-ends-well", "verl 0.4: raylet complains when the driver leaves",
         "".join(f"(TaskRunner pid=3) step:{n} - actor/pg_loss:0.2 - timing_s/step:9.1\n" for n in range(36, 41))
         + "(TaskRunner pid=3) 'Final validation metrics: {'val-core/gsm8k/mean@1': 0.77}'\n"
         "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n",
         "", FALSE_CAUSE),
    Case("verl-dies-on-the-way", "verl 0.4: the control of the above",
         "".join(f"(TaskRunner pid=3) step:{n} - actor/pg_loss:0.2 - timing_s/step:9.1\n" for n in range(6, 21))
         + "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n",
         "rank died", ECHO),
)  # fmt: skip


@each(*WHOLE)
def test_the_first_cause_is_told_and_no_benign_line(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)


LINES = (
    Case("a-loss-that-was-no-number", "nanoGPT and srun: the job was cancelled by a person",
         STEPS + "step 20 loss nan\nstep 21 loss nan\nstep 22 loss nan\nsrun: Job step aborted\n",
         "step 20 loss nan", ECHO),
    Case("a-nan-in-an-array", "JAX 0.4", STEPS
         + "".join(f"step {n} {{'loss': Array(nan, dtype=float32)}}\n" for n in range(20, 29)),
         "step 20 {'loss': Array(nan, dtype=float32)}", ECHO),
    Case("a-cause-that-is-told-comes-before-the-nan", "PyTorch 2.4", STEPS + "step 20 loss nan\n" * 5
         + "RuntimeError: CUDA error: device-side assert triggered\n",
         "RuntimeError: CUDA error: device-side assert triggered", ECHO),
    Case("a-setting-is-no-cause", "a watchdog that prints its settings", "mode=oom_killer\n" + STEPS, "", FALSE_CAUSE),
    Case("the-kill-itself-is-one", "Slurm 23.11, slurmstepd: the control of the above",
         STEPS + "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been"
         " OOM Killed.\n", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.", ECHO),
    Case("the-exception-of-one-before-the-watchdogs", "PyTorch 2.4", STEPS + WATCHDOG.format(r=1)
         + "".join(f"[rank3]: {line}\n" for line in [*TRACE.splitlines(), "ValueError: token 99 of 50"]),
         "[rank3]: ValueError: token 99 of 50", ECHO),
    Case("a-microbatch-that-is-halved", "Composer 0.17", STEPS + "RuntimeWarning: CUDA out of memory detected."
         " Train microbatch size will be decreased from 64 -> 32.\nstep 20 loss 1.8\n", "", FALSE_CAUSE),
)  # fmt: skip


@each(*LINES)
def test_the_line_that_says_why_a_job_ended(case: Case) -> None:
    told = find_error_line(case.form)
    assert told.startswith(case.right)
    assert bool(told) == bool(case.right)
