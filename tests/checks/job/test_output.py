"""Rules of what people are shown of a dead job's output: its last step, and what ended it."""

import pytest

from sentinel.checks.job.output import find_error_line, find_last_step, make_excerpt

MEGATRON = (
    " iteration     5427/  250000 | elapsed time per iteration (ms): 4225.8 | lm loss: 2.1 |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |"
)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (MEGATRON, "iteration 5427"),
        (
            "iteration 7\nslurmstepd: error: *** STEP 4711.0 ON node-3 CANCELLED AT 12:00 ***",
            "iteration 7",
        ),
        ("slurmstepd: error: *** STEP 4711.batch ON node-3 CANCELLED AT 12:00 ***", ""),
        (" 12%|##   | 2905/25120 [2:12:37<17:37:09,  2.86s/it]WARNING: x", "step 2905"),
        ("Steps:  38%|###  | 30499/80000 [5:49:08<14:42:22, 1.07s/it]", "step 30499"),
        (
            "Epoch 0:   6%|# | 32040/500150 [6:28:43<9:39:17, loss=2, global_step=3.2e+4]",
            "batch 32040",
        ),
        ("global_step=999.0, consumed_samples=256000.0", "global_step 999"),
        (
            "completed step: 48, seconds: 64.6, loss: 6.5\n[process=15][step=0][wait] Resetting",
            "step 48",
        ),
        ("Number of steps/epoch 0, total number of steps 0", ""),
        ("slurmstepd: error: Step 4711.0 exceeded memory limit (7 > 6), being killed", ""),
        (
            "  0%|  | 0/50 [00:00<?, ?it/s]  2%|# | 1/50 [10:38<8:41:21, 638.39s/it]slurmstepd: error:",
            "step 1",
        ),
        ("INFO -   Total optimization steps = 1000", ""),
        ("train.py --logging-steps 10", ""),
        ("Invalidate trace cache @ step 1: expected module 15, but got module 313", ""),
        ("399/1932 batches | ms/batch 4.5376 | loss 5.7", ""),
        ("Loading checkpoint shards: 100%|####| 4/4 [00:01<00:00]", ""),
    ],
)
def test_the_last_step_is_one_that_was_done(text: str, step: str) -> None:
    """Not a step of Slurm, not a count of bad ones, and none that was still to come."""
    assert find_last_step(text) == step


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "n1:1:2 [0] NCCL WARN Connection closed by remote peer n2<4>\n"
            "[rank0]: torch.distributed.DistBackendError: NCCL error in: x\n"
            "srun: error: node-2: task 9: Out Of Memory\n",
            "srun: error: node-2: task 9: Out Of Memory",
        ),
        (
            "Traceback (most recent call last):\nModuleNotFoundError: apex\nstep 7 loss 2.0\n"
            "[rank2]: KeyError: 'x'\n",
            "[rank2]: KeyError: 'x'",
        ),
        (
            "UserWarning: this may fail with CUDA errors\nslurmstepd: error: couldn't chdir to `/x'\n"
            "[rank1]:[E] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL\n",
            "[rank1]:[E] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL",
        ),
        (
            "errors.ChildFailedError:\n  traceback : Signal 11 (SIGSEGV) received by PID 7\n",
            "traceback : Signal 11 (SIGSEGV) received by PID 7",
        ),
        ("errors.ChildFailedError:\n", "errors.ChildFailedError:"),
        (
            " 12%|## | 29/99 [01:02<03:04, 2s/it]WARNING:api:Received 1 death signal, shutting down workers\n"
            "Traceback (most recent call last):\n  f()\nSignalException: Process 7 got signal: 1\n",
            "WARNING:api:Received 1 death signal, shutting down workers",
        ),
        ("[rank2]: KeyError: 'x'\nstep 8\n", "[rank2]: KeyError: 'x'"),
        (
            "{'loss': 2.0, 'epoch': 0.1}\n 12%|## | 29/99 [01:02<03:04, 2s/it]RuntimeError: CUDA error: x\n",
            "RuntimeError: CUDA error: x",
        ),
        ("step 8\n", ""),
        ("step 8", ""),
    ],
)
def test_the_cause_is_what_came_first_or_what_nothing_else_brings_about(
    text: str, said: str
) -> None:
    """Warnings, what was before the last step, and what follows upon another error are none, unless
    there is nothing else."""
    assert find_error_line(text) == said


def test_last_step_and_cause_are_shown_also_where_launchers_say_much_after_them() -> None:
    """A table of torchrun and the frames of a library are longer than what is shown."""
    frames = [f"frame {'abcdefghijklmnopqrstuvwxyz'[n]}: c10::Error" for n in range(26)]
    step, why = "iteration 7 loss 2.0", "[rank3]: KeyError: 'x'"
    text = make_excerpt(["starts", step, why, *frames], 20)
    assert text.splitlines() == [step, why, "…", *frames[-17:]]
    assert (find_last_step(text), find_error_line(text)) == ("iteration 7", why)
    assert make_excerpt([step, why], 20).splitlines() == [step, why]


def test_what_was_new_at_the_end_is_shown_above_the_last_lines() -> None:
    """The launcher's lines alone say nothing of why. What came while all was well is not new."""
    steps = [f"step {n} loss 1.{n}" for n in range(30)]
    rejected = "rdma_cm: event REJECTED from 10.0.0.4, private data version 2"
    died = "[ERROR] failed (exitcode: 1) local_rank: 3 (pid: 986) of binary: /usr/bin/python"
    table = [f"row {'abcdefghijklmnopqrstuvwxyz'[n]} of the launcher's table" for n in range(26)]
    noise = "evaluating part a"
    text = make_excerpt([noise, *steps, noise, rejected, died, *table], 20)
    assert text.splitlines()[:3] == [steps[-1], rejected, "…"]
    silent = "the pool of hosts is empty"
    text = make_excerpt([noise, *steps, noise, silent, died, *table], 20)
    assert text.splitlines()[:4] == [steps[-1], silent, died, "…"]
    assert silent not in make_excerpt([noise, *steps, silent, *table], 20).splitlines()


def test_lines_that_differ_only_in_padded_numbers_are_of_one_form() -> None:
    """`iteration      9` and `iteration     10` (Megatron's training_log pads with %8d): the quoted
    lines would jump from 9 to the last ones without a word."""
    lines = [f"iteration {n:8d}/  100000 | lm loss {6 / (n + 1):.4f}" for n in range(120)]
    assert make_excerpt(lines, 20).splitlines() == lines[-5:]
    assert make_excerpt([*lines, "done"], 20).splitlines() == [*lines[-5:], "done"]
