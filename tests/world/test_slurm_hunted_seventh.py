"""Forms of Slurm and cron that were looked for when rules had taken the place of lists; expectations first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from msgspec.structs import replace

from sentinel.chain import scripts_submit
from sentinel.chain.scripts import find_scripts
from sentinel.slurm.sbatch_words import read_script_options
from sentinel.slurm.submission import resubmit_argv
from tests.checks.job.test_revival import Dying
from tests.slurm.test_submission import PLAIN
from tests.world.case import Case, each
from tests.world.slurm_answers import returns
from tests.world.test_chains_drawn import times
from tests.world.test_slurm_hunted_again import DOUBLE, NIGHT
from tests.world.test_slurm_hunted_fourth import outcome, revived

BEGUN = "iteration 7 loss 2.1\n"
WORKER = BEGUN + "RuntimeError: DataLoader worker (pid 8102) is killed by signal: {}.\n"
TRACED = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    main()\n'
ENVIRONMENT = "https://slurm.schedmd.com/sbatch.html, INPUT ENVIRONMENT VARIABLES"


def failed(said: str, code: int = 1) -> bool:
    """Whether a training whose job fails so is submitted again."""
    return revived(said, exit_code=code)


def how_often(said: str, times: int = 3) -> int:
    """How often it is submitted again in a day, if it dies so each time, a few steps apart."""
    with TemporaryDirectory() as folder:
        dying = Dying(Path(folder))
        return sum(bool(dying.dies(said.format(step), exit_code=1)) for step in range(times))


def typed_with_account() -> tuple[str, ...]:
    """The command for a job whose account and partition came from the environment."""
    options = ("--job-name=llm", "--partition=prod", "--account=proj", "--nodes=8")
    line = "sbatch /work/train.sh a.yaml"
    return resubmit_argv(replace(PLAIN, name="llm", options=options, line=line), exact=True)


def judged(**firsts: str) -> dict[str, str]:
    """What becomes of scripts, by name (`_` for the dot) and first line: `runs`, `told` or `silent`."""
    with TemporaryDirectory() as base:
        folder = Path(base) / "cron.daily"
        folder.mkdir()
        for name, first in firsts.items():
            (folder / name.replace("_", ".")).write_text(f"{first}\ntrue\n")
            (folder / name.replace("_", ".")).chmod(0o755)
        found = {os.path.basename(one.path): one for one in find_scripts(base, {0, os.geteuid()})}
    return {
        name: "silent" if one is None else "told" if one.refused else "runs"
        for name in firsts
        for one in [found.get(name.replace("_", "."))]
    }


def passed_on(name: str) -> bool:
    """Whether a script's sbatch gets this variable of sentinel's environment."""
    with patch.dict(os.environ, {name: "west"}):
        return name in scripts_submit._script_environment()


CASES = (
    Case("a-worker-that-was-ended", "https://github.com/pytorch/pytorch/issues/4507", lambda: failed(WORKER.format("Terminated")), False, DOUBLE),
    Case("a-worker-without-memory", "https://github.com/mittagessen/kraken/issues/266", lambda: failed(WORKER.format("Killed")), False, DOUBLE),
    Case("a-worker-with-a-fault", "https://github.com/MhLiao/DB/issues/94", lambda: failed(WORKER.format("Segmentation fault")), True, NIGHT),
    Case("interrupted-below-click", "https://github.com/pallets/click, src/click/core.py: Abort", lambda: failed(BEGUN + "Aborted!\n"), False, DOUBLE),
    Case("cancelled-below-ray", "https://github.com/ray-project/ray, python/ray/exceptions.py", lambda: failed(BEGUN + TRACED + "ray.exceptions.TaskCancelledError: Task: TaskID(c8ef45) was cancelled.\n"), False, DOUBLE),
    Case("an-account-of-the-environment", f"https://github.com/facebookincubator/submitit/issues/1665; {ENVIRONMENT}", lambda: {"--account=proj", "--partition=prod"} <= {*typed_with_account()}, True, DOUBLE),
    Case("a-cluster-of-the-environment", ENVIRONMENT, lambda: [passed_on(name) for name in ("SBATCH_CLUSTERS", "SLURM_CLUSTERS")], [False, False], DOUBLE),
    Case("midnight", "https://man7.org/linux/man-pages/man5/crontab.5.html, @midnight", lambda: [times(one, "UTC", "2026-11-28 12:00", "2026-11-29 12:00") for one in ("@midnight", "@annually")], [["29 00:00"], []], NIGHT),
    Case("a-line-of-sinfo-as-reason", "https://github.com/awslabs/awsome-distributed-ai/issues/185", lambda: returns("Kill task failed root 2024-01-25T15:12:23 ip-10-0-1-23", "root"), False, DOUBLE),
    Case("a-step-that-cannot-be-made", "slurm, src/common/slurm_errno.c: ESLURM_INVALID_GRES", lambda: failed("srun: error: Unable to create step for job 4711: Invalid generic resource (gres) specification\n"), False, DOUBLE),
    Case("a-build-for-other-gpus", "https://github.com/pytorch/pytorch/issues/31285", lambda: failed(TRACED + "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"), False, DOUBLE),
    Case("a-gpu-that-is-not-there", "pytorch, c10/cuda/CUDAException.cpp: cudaErrorInvalidDevice", lambda: how_often("iteration {} loss 2.1\n" + TRACED + "RuntimeError: CUDA error: invalid device ordinal\n") <= 1, True, DOUBLE),
    Case("a-program-that-is-not-there", "slurm, src/slurmd/slurmstepd/task.c: execve()", lambda: failed("slurmstepd: error: execve(): /w/train: No such file or directory\n", 2), False, DOUBLE),
    Case("a-full-quota", "errno(3), EDQUOT, in public threads", lambda: failed(BEGUN + TRACED + "OSError: [Errno 122] Disk quota exceeded\n"), False, DOUBLE),
    Case("names-of-public-job-scripts", "https://github.com/VectorInstitute/FL4Health/pull/155; gt-crnch-rg/read-the-docs, using-scrontab-slurm", lambda: judged(launch_slrm="#!/bin/bash", task_job="#!/bin/bash", nightly_zsh="#!/bin/zsh", fetch_R="#!/usr/bin/env Rscript"), {"launch_slrm": "told", "task_job": "told", "nightly_zsh": "runs", "fetch_R": "runs"}, NIGHT),
    Case("a-submission-that-is-only-tested", "slurm, src/sbatch/sbatch.c: --test-only", lambda: outcome("", "sbatch: Job 4711 to start at 2026-11-29T03:15:00 using 8 processors on nodes n1 in partition prod", 0) == "ACCEPTED", False, DOUBLE),
    Case("another-cluster-in-three-forms", "https://man7.org/linux/man-pages/man3/getopt_long.3.html", lambda: [read_script_options(f"#!/bin/sh\n#SBATCH {option}\n".encode()).clusters for option in ("--cluster=west", "-Mwest", '--clusters "west"')], ["west"] * 3, DOUBLE),
)  # fmt: skip

# Looked for when those had been mended, and what is well beside them. Nothing is asked for while an output is not read, so
# a right "no" needs a "yes" of the same kind.
DUPLICATE = (
    "n1:12:34 [1] init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 4000\n"
    f"{TRACED}torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, invalid usage, NCCL version 2.18.1\n"
)
LISTENS = f"{TRACED}RuntimeError: The server socket has failed to listen on any local network address. (errno: 98 - Address already in use).\n"
TIMED_OUT = "[E ProcessGroupNCCL.cpp:474] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE) ran for 1800000 milliseconds before timing out.\n"
ENDED_STEP = "slurmstepd: error: *** STEP 4711.0 ON n1 CANCELLED AT 2026-11-29T03:15:00 ***\nsrun: error: n1: task 0: Terminated\n"
LATER = (
    Case("errors-of-files", "errno(3), and nfs(5) for EIO", lambda: [failed(f"{BEGUN}{TRACED}{error}\n") for error in ("PermissionError: [Errno 13] Permission denied: '/data/x'", "OSError: [Errno 28] No space left on device", "OSError: [Errno 5] Input/output error")], [False, False, True], DOUBLE),
    Case("errors-of-nccl", "https://github.com/NVIDIA/nccl, src/init.cc, and public threads", lambda: [failed(BEGUN + said) for said in (DUPLICATE, LISTENS, TIMED_OUT)], [False, True, True], DOUBLE),
    Case("a-step-that-was-cancelled", "https://slurm.schedmd.com/scancel.html, JOB_ID.STEP_ID", lambda: failed(BEGUN + ENDED_STEP, 143), False, DOUBLE),
    Case("several-options-and-a-comment-in-a-line", "slurm, src/sbatch/opt.c", lambda: [read_script_options(f"#!/bin/sh\n{line}\n".encode()).clusters for line in ('#SBATCH --comment "a b" -M west', "#SBATCH -M west # fast", "# SBATCH -M west", "##SBATCH -M west")], ["west", "west", None, None], DOUBLE),
)  # fmt: skip


@each(*CASES, *LATER)
def test_a_form_of_slurm_or_cron_that_was_hunted_a_seventh_time(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
