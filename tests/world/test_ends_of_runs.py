"""Which lines are shown of an end: what was new when it ended; the answers were written before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.world.case import Case, each
from tests.world.logs import of_growing_log, of_whole_log
from tests.world.test_causes_drawn import COST, ELASTIC, FRAME, GITHUB, of_rank

STEPS = "".join(f"step: {n} | loss: 1.{n} | lr: 1e-4\n" for n in range(100, 141))
DIED = "[rank{0}]:[E1109 15:39:3{0}.511287 ProcessGroupNCCL.cpp:684] [Rank {0}] Some NCCL operations have failed or timed out.\n"
REMOTE = "[rank{0}]:[E1109 15:39:3{0}.611287 ProcessGroupNCCL.cpp:1896] [PG ID 0 Rank {0}] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.25.1\n"
OTHERS = "".join(DIED.format(n) + REMOTE.format(n) for n in (7, 1, 4))
BACKEND = (
    FRAME
    + "torch.distributed.DistBackendError: NCCL error in: /pytorch/NCCLUtils.cpp:77, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. \n"
)
INFO = "".join(
    f"node-2:811:{900 + n} [{n % 8}] NCCL INFO Channel {n:02d}/0 : {n}[3] -> {n + 1}[4] [send] via NET/IB/{n % 4}/GDRDMA\n"
    for n in range(300)
)
CONFIG = "".join(f"  model.layer_{n // 26}.{chr(97 + n % 26)}_option: {n}\n" for n in range(900))
TORCHRUN = (
    "W0308 08:19:24.158000 4711 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 987 closing signal SIGTERM\n"
    "E0308 08:19:24.322000 4711 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 3 (pid: 986) of binary: /usr/bin/python\n"
    + ELASTIC
    + "train.py FAILED\n" + "-" * 60 + "\nFailures:\n  <NO_OTHER_FAILURES>\n" + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-03-08_08:19:24\n"
    "  host      : node-3\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 986)\n  error_file: <N/A>\n"
    "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n" + "=" * 60 + "\n"
)  # fmt: skip
WORKER = 'Original Traceback (most recent call last):\n  File "/e/torch/utils/data/_utils/worker.py", line 349, in _worker_loop\n    data = fetcher.fetch(index)\n'


def warn(said: str, rest: str = BACKEND) -> str:
    """What NCCL says at its level for errors, and what follows it."""
    return f"\nnode-7:1182:1260 [3] misc/ibvwrap.cc:278 NCCL WARN {said}\nnode-7:1182:1260 [3] NCCL INFO transport/net_ib.cc:1403 -> 2\n{rest}"


CARRIED = (
    Case("a-pin-memory-thread", "PyTorch 2.5, torch/utils/data/_utils/pin_memory.py and torch/_utils.py",
         STEPS + of_rank(5, FRAME + "RuntimeError: Caught RuntimeError in pin memory thread for device 5.\n" + WORKER.replace("worker.py", "pin_memory.py")
                         + "RuntimeError: cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned\n"),
         ("rank 5", "only dense CPU tensors"), COST),
    Case("a-worker-behind-a-logger", "PyTorch 2.5, torch/_utils.py; Python, logging",
         STEPS + "".join(f"2026-01-02 03:04:05,{n:03d} ERROR trainer: {line}\n" for n, line in enumerate(
             (FRAME + "KeyError: Caught KeyError in DataLoader worker process 0.\n" + WORKER + "KeyError: 'shard-00417'\n").splitlines())),
         ("KeyError: 'shard-00417'", ""), COST),
    Case("a-worker-of-torchrun-s-tee", "PyTorch 2.5, torch/distributed/elastic/multiprocessing/tail_log.py",
         STEPS + "".join(f"[default3]:{line}\n" for line in (FRAME + "ValueError: Caught ValueError in DataLoader worker process 2.\n" + WORKER
                                                             + "ValueError: bad token id 128256\n").splitlines()) + TORCHRUN,
         ("bad token id", ""), COST),
    Case("a-rank-that-was-spawned", "PyTorch 2.5, torch/multiprocessing/spawn.py",
         STEPS + FRAME + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 3 terminated with the following error:\n" + FRAME
         + "IndexError: index 417 is out of bounds for axis 0 with size 400\n", ("index 417 is out of bounds", ""), COST),
    Case("a-task-of-ray", "Ray 2.40, python/ray/exceptions.py",
         STEPS + FRAME + "ray.exceptions.RayTaskError(FileNotFoundError): ray::RayTrainWorker.execute() (pid=4711, ip=10.0.0.4)\n"
         '  File "/w/data.py", line 67, in load\n    open(path)\nFileNotFoundError: [Errno 2] No such file or directory: \'/data/shard-00417.arrow\'\n',
         ("shard-00417.arrow", ""), COST),
    Case("a-rank-that-saved", "PyTorch 2.5, torch/distributed/checkpoint/api.py",
         STEPS + FRAME + "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([3])\n"
         'Traceback (most recent call last): (RANK 3)\n  File "/e/torch/distributed/checkpoint/utils.py", line 163, in reduce_scatter\n    local_data = map_fun()\n'
         "ValueError: Size mismatch between saved torch.Size([4]) and current: torch.Size([8]) for lm_head\n", ("Size mismatch between saved", ""), COST),
    Case("conda-run-says-see-above", "conda 24, conda/cli/main_run.py",
         "dataset of 417 shards\n" + FRAME + "KeyError: 'labels'\n\nERROR conda.cli.main_run:execute(49): `conda run python train.py` failed. (See above for error)\n",
         ("KeyError: 'labels'", ""), COST),
    Case("a-launcher-of-deepspeed", "DeepSpeed 0.16, deepspeed/launcher/launch.py",
         STEPS + "dl-4: no batch for 1800 s, the pool is empty\n[2026-01-02 03:04:05,678] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4711\n"
         "[2026-01-02 03:04:05,700] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', '-u', 'train.py'] exits with return code = 1\n"
         + FRAME + "subprocess.CalledProcessError: Command '['deepspeed', 'train.py']' returned non-zero exit status 1.\n", ("", "the pool is empty"), COST),
)  # fmt: skip

UNLISTED = (
    Case("versions-of-nccl-differ", "NCCL 2.22, src/init.cc", INFO + warn("Mismatched NCCL version detected : rank 3 version 22203 rank 0 version 22105"),
         ("", "Mismatched NCCL version"), COST),
    Case("a-proxy-of-nccl", "NCCL 2.22, src/proxy.cc",
         STEPS + warn("[Proxy Service 5] Failed to execute operation Setup from rank 5, retcode 3", OTHERS), ("node-7", "Failed to execute operation"), COST),
    Case("a-service-thread-of-nccl", GITHUB + "NVIDIA/nccl/issues/1905", STEPS + warn("[Service thread] Accept failed Resource temporarily unavailable", OTHERS),
         ("node-7", "Accept failed"), COST),
    Case("a-queue-pair-without-memory", GITHUB + "NVIDIA/nccl/issues/1710", INFO + warn("Call to ibv_create_qp failed with error Cannot allocate memory errno 12"),
         ("", "ibv_create_qp"), COST),
    Case("a-wrong-type-of-socket", GITHUB + "NVIDIA/nccl-tests/issues/188", INFO + warn("socketFinalizeAccept: wrong type 4 != 3"), ("", "wrong type 4 != 3"), COST),
    Case("srun-refuses-two-wishes", GITHUB + "snakemake/snakemake-executor-plugin-slurm/issues/373",
         "Loading singularity/3.11\nsrun: fatal: SLURM_TRES_PER_TASK is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU\n", ("mutually exclusive", ""), COST),
    Case("srun-and-its-memory", GITHUB + "snakemake/snakemake/issues/2912",
         CONFIG + "srun: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.\n", ("mutually exclusive", ""), COST),
    Case("an-image-that-is-not-mounted", GITHUB + "apptainer/apptainer/issues/3645",
         "INFO:    Detected Singularity user configuration directory\nFATAL:   container creation failed: mount hook function failure: could not open /dev/loop0: permission denied\n"
         "srun: error: node-3: task 0: Exited with exit code 255\n", ("container creation failed", "could not open /dev/loop0"), COST),
    Case("conda-is-not-there", "bash 5.2, execute_cmd.c",
         "/var/spool/slurmd/job04711/slurm_script: line 12: conda: command not found\n" + FRAME + "ModuleNotFoundError: No module named 'torch'\n",
         ("", "conda: command not found"), COST),
    Case("an-assertion-of-a-kernel", "PyTorch 2.5, aten/src/ATen/native/cuda/IndexKernel.cu",
         STEPS + "".join(f"/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [0,0,0], thread: [{n},0,0] Assertion `-sizes[i] <= index && index < sizes[i]` failed.\n"
                         for n in range(64)) + FRAME + "torch.AcceleratorError: CUDA error: device-side assert triggered\n",
         ("-sizes[i] <= index", "device-side assert"), COST),
    Case("an-assertion-of-malloc", "glibc 2.39, malloc/malloc.c; Open MPI 4.1, opal/util/stacktrace.c",
         STEPS + "python: malloc.c:2617: sysmalloc: Assertion `(old_top == initial_top (av) && old_size == 0)' failed.\n"
         "[node-3:01234] *** Process received signal ***\n[node-3:01234] Signal: Aborted (6)\n[node-3:01234] Signal code:  (-6)\n[node-3:01234] [ 0] /lib/libc.so.6(+0x42520)[0x7f]\n"
         "[node-3:01234] *** End of error message ***\n", ("", "old_top == initial_top"), COST),
    Case("an-adapter-that-rejects", "rdma-core 50, librdmacm/cma.c", STEPS + "rdma_cm: event REJECTED from 10.0.0.4, private data version 2\n" + TORCHRUN, ("", "event REJECTED"), COST),
    Case("a-server-of-data", "a training's own log",
         STEPS + "dl-server-4: shard index 00417 is empty\n" + "".join(f"rank {n} saw the end of its data\n" for n in range(8)) + TORCHRUN,
         ("", "shard index 00417 is empty"), COST),
    Case("mpi-was-aborted", "Open MPI 4.1, help-mpi-api.txt",
         INFO + "tokenizer /data/tok.model: 0 pieces\n" + "-" * 74 + "\nMPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n\n"
         "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\nYou may or may not see output from other processes, depending on\n"
         "exactly when Open MPI kills them.\n" + "-" * 74 + "\n", ("rank 5", "0 pieces"), COST),
    Case("a-driver-of-hydra", "Hydra 1.3, hydra/_internal/utils.py",
         CONFIG + "Error executing job with overrides: ['trainer.devices=8']\n" + FRAME + "omegaconf.errors.ConfigAttributeError: Key 'tp_size' is not in struct\n    full_key: model.tp_size\n\n"
         "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n" + TORCHRUN, ("tp_size", ""), COST),
    Case("a-coordinator-of-jax", GITHUB + "jax-ml/jax/issues/20055",
         "".join(f"I1115 16:00:39.451247 140641718562816 trainer.py:501] Training: step {n}\n" for n in range(180, 199))
         + "2026-11-15 16:03:15.140058: W xla/tsl/distributed_runtime/coordination/coordination_service.cc:954] /job:jax_worker/replica:0/task:11 unexpectedly tried to connect"
         " with a different incarnation. It has likely restarted.\n" + FRAME + "jax.errors.JaxRuntimeError: UNAVAILABLE: Socket closed\n", ("", "different incarnation"), COST),
    Case("a-rank-of-composer", "composer 0.28, composer/cli/launcher.py",
         STEPS + "ERROR:composer.cli.launcher:Rank 3 crashed with exit code 1.\nWaiting up to 30 seconds for all training processes to terminate. Press Ctrl-C to exit immediately.\n"
         "Global rank 0 (PID 811) exited with code -15\nGlobal rank 3 (PID 814) exited with code 1\n----------Begin global rank 3 STDOUT----------\nBuilding eval loader...\n"
         "----------End global rank 3 STDOUT----------\n----------Begin global rank 3 STDERR----------\n" + FRAME + "ValueError: stream c4 has no shard 00417\n"
         "----------End global rank 3 STDERR----------\nERROR:composer.cli.launcher:Global rank 0 (PID 811) exited with code -15\n", ("has no shard 00417", ""), COST),
    Case("a-tune-that-does-not-know-an-option", "torchtune 0.6, torchtune/_cli/tune.py; Lib/argparse.py",
         "usage: tune run [TORCHRUN-OPTIONS] <recipe> --config <config> [RECIPE-OPTIONS]\ntune run: error: argument --nproc-per-node: invalid int value: 'all'\n",
         ("invalid int value", ""), COST),
)  # fmt: skip

NOISE = "".join(
    f"evaluation: part {word} took 3 s\n"
    for word in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
)
"""More lines than are shown of an end."""

FAILED_READ = "shard-00417: read: Input/output error\n"
SURVIVED = (
    Case("a-cache-over-its-quota", "Triton 3.1, python/triton/runtime/cache.py",
         "triton: Failed to create cache: [Errno 122] Disk quota exceeded: '/home/a/.triton'\n" + "".join(f"INFO: loading shard {n} of 40\n" for n in range(1, 41))
         + FRAME + "ValueError: vocabulary of 128256, embedding of 128000\n", ("ValueError", ""), COST),
    Case("a-cache-that-is-read-only", GITHUB + "imgag/megSAP/issues/332",
         "mkdir -p failed for path /home/a/.config/matplotlib: [Errno 30] Read-only file system: '/home/a/.config'\n"
         + "".join(f"Loading extension {n}/60\n" for n in range(1, 61)), ("", ""), COST),
    Case("a-log-of-tee", "coreutils 9, src/tee.c",
         "tee: /logs/copy.out: No space left on device\n" + "".join(f"[{n}/50] tokenizing part {n}\n" for n in range(1, 51)) + FRAME + "KeyError: 'text'\n",
         ("KeyError: 'text'", ""), COST),
    Case("the-thirty-first-read", "glibc 2.39, strerror(3)",
         "".join(f"{FAILED_READ}step: {n} | loss: 1.{n} | lr: 1e-4\nstep: {n + 1} | loss: 1.{n} | lr: 1e-4\n" for n in range(100, 160, 2)) + FAILED_READ
         + "srun: error: node-3: task 5: Exited with exit code 74\n", ("", "Input/output error"), COST),
    Case("the-thirty-first-retry", "a training's own log",
         "".join(f"WARNING data server 4 gave nothing\n{n:5d}/900 loss 1.{n} lr 1e-4\n{n + 1:5d}/900 loss 1.{n} lr 1e-4\n" for n in range(100, 160, 2))
         + "WARNING data server 4 gave nothing\n" + TORCHRUN, ("", "data server 4 gave nothing"), COST),
    Case("thirty-reads-that-were-tried-again", "glibc 2.39, strerror(3)",
         "".join(f"{FAILED_READ}step: {n} | loss: 1.{n} | lr: 1e-4\nstep: {n + 1} | loss: 1.{n} | lr: 1e-4\n" for n in range(100, 160, 2)), ("", ""), COST),
    Case("a-disk-that-is-full-at-the-end", "glibc 2.39, strerror(3)", STEPS + FRAME + "OSError: [Errno 28] No space left on device: '/ckpt/step_140/3.distcp'\n" + OTHERS,
         ("disk", "3.distcp"), COST),
    Case("a-run-that-ends-well", "a training's own log", CONFIG + STEPS + "saved /ckpt/step_140\nnothing was left to do\nTraining completed.\n", ("", ""), COST),
    Case("new-lines-while-all-is-well", "a training's own log", STEPS + "evaluating on part 7\na line of another kind\nwarming the cache of node-3\n", ("", ""), COST),
)  # fmt: skip


def assert_shown(case: Case, cause: str, details: str) -> None:
    """The first words stand in the cause, the others anywhere. With neither, there is no error."""
    first, anywhere = case.right
    assert bool(cause) == bool(first or anywhere), cause
    assert first in cause
    assert anywhere in cause + details


@each(*CARRIED, *UNLISTED, *SURVIVED)
def test_what_was_new_at_the_end_is_shown(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    seen = of_whole_log(tmp_path, case.form)
    record_property("answer", f"{seen.cause} | {seen.details}")
    assert_shown(case, seen.cause, seen.details)


@pytest.mark.parametrize(
    "case",
    [one for one in (*CARRIED, *UNLISTED) if one.form.startswith(STEPS)],
    ids=lambda c: c.name,
)
def test_what_was_seen_in_an_earlier_look_is_not_new(case: Case, tmp_path: Path) -> None:
    """A look that finds only the end still knows what the training printed while it was well."""
    end = NOISE + case.form.removeprefix(STEPS)
    looks = of_growing_log(tmp_path, [STEPS, NOISE + STEPS.replace("step: 1", "step: 2"), end])
    assert not looks[1].cause
    assert_shown(case, looks[2].cause, looks[2].details)


def test_only_the_earlier_looks_tell_what_is_new(tmp_path: Path) -> None:
    """More lines of a healthy training than are shown stand between the cause and the launcher's words."""
    cause = "dl-server-4: shard index 00417 is empty\n"
    well = [STEPS, NOISE + STEPS.replace("step: 1", "step: 2")]
    last = of_growing_log(tmp_path, [*well, cause + NOISE + TORCHRUN])[-1]
    assert cause.strip() in last.details
    assert "evaluation" not in last.details
    (tmp_path / "training.log").unlink()
    assert "evaluation" in of_growing_log(tmp_path, [STEPS, cause + NOISE + TORCHRUN])[-1].details
