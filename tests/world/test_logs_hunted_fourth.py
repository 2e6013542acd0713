"""Logs that somebody looked for who had read the rules that took the place of lists; the answers were written before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentinel.core.model import Status
from tests.world.case import Case, each
from tests.world.logs import assert_cause, assert_number_and_loss, of_growing_log
from tests.world.test_causes_drawn import COST
from tests.world.test_logs_hunted_third import HUNG
from tests.world.test_progress_drawn import FINE, GITHUB, NAN, WRONG, rows

RLLIB = (
    "agent_timesteps_total: {n}000\ninfo:\n  learner:\n    default_policy:\n      learner_stats:\n        cur_lr: 5.0e-05\n        kl: .nan\n"
    "        policy_loss: .nan\n        total_loss: .nan\niterations_since_restore: {n}\ntime_this_iter_s: 3.1{n}\ntraining_iteration: {n}\ntrial_id: default\n"
)

NUMBERS = (
    Case("no-number-in-yaml", GITHUB + "ray-project/ray, python/ray/tune/logger/logger.py, pretty_print", rows(RLLIB), (111, NAN), WRONG),
    # Written down was NaN, and counts as wrong: one value alone is NaN as well where a metric cannot be measured. Only a loss is none.
    Case("a-score-that-is-no-number", GITHUB + "deeplearning4j/deeplearning4j, ScoreIterationListener.java",
         rows("22:01:07.123 [main] INFO  o.d.o.l.ScoreIterationListener - Score at iteration {n} is 0.7{n}", 90, 100) + rows("22:01:09.123 [main] INFO  o.d.o.l.ScoreIterationListener - Score at iteration {n} is NaN"), (111, FINE), WRONG),
    Case("a-trial-and-the-best-one", GITHUB + "optuna/optuna, optuna/study/study.py, _log_completed_trial",
         rows("[I 2026-11-28 22:01:07,123] Trial {n} finished with value: 0.83{n} and parameters: {'lr': 0.001{n}}. Best is trial 30 with value: 0.8102."), (111, FINE), WRONG),
    Case("a-step-that-is-an-array", "JAX, jax/_src/array.py, ArrayImpl.__repr__, of print(metrics)", rows("{'loss': Array(2.3{n}, dtype=float32), 'step': Array({n}, dtype=int32), 'lr': Array(0.0003, dtype=float32)}"), (111, FINE), WRONG),
    Case("a-colon-of-full-width", "a loop of one's own, in Chinese", rows("第{n}步 loss：2.3{n}", 90, 100) + rows("第{n}步 loss：nan"), (111, NAN), WRONG),
    # Siblings of the last one: the number of the step was taken for a part of the loss's name, so each row had a loss of its own.
    Case("a-step-glued-to-its-number", "a loop of one's own", rows("step{n} loss: 2.3{n}", 90, 100) + rows("step{n} loss: nan"), (111, NAN), WRONG),
    Case("an-epoch-in-brackets-behind-the-loss", "a loop of one's own", rows("loss (epoch {n}): 2.3{n}", 90, 100) + rows("loss (epoch {n}): nan"), (111, NAN), WRONG),
    Case("a-number-within-the-name", "a loop of one's own", rows("iter {n} iter{n}_loss: 2.3{n}", 90, 100) + rows("iter {n} iter{n}_loss: nan"), (111, NAN), WRONG),
    # What must not count as they do: numbers that tell one loss from another, and one NaN among finite ones.
    Case("two-losses-with-numbers", "a loop of one's own", rows("step {n} loss1: nan loss2: 2.3{n}"), (111, NAN), WRONG),
    Case("one-nan-of-many-steps", "a loop of one's own", rows("step{n} loss: 2.3{n}", 90, 100) + "step100 loss: nan\n" + rows("step{n} loss: 2.3{n}", 101, 112), (111, FINE), WRONG),
    Case("finite-numbers-in-yaml", GITHUB + "ray-project/ray, python/ray/tune/logger/logger.py, pretty_print", rows(RLLIB.replace(".nan", "0.1{n}")), (111, FINE), WRONG),
    Case("a-wrapped-number-of-something-else", "NumPy 2, repr of a scalar", rows("{'loss': np.float64(2.3{n}), 'port': np.int64(29500), 'step': np.int64({n})}"), (111, FINE), WRONG),
    Case("a-shard-of-so-many", "a loop of one's own: nothing of a loss", rows("shard[ {n}/5004]\tread 0.412"), (None, FINE), WRONG),
)  # fmt: skip
ROWS = rows("step {n} loss 2.31")
CAUSES = (
    Case("a-step-that-did-not-end", GITHUB + "SchedMD/slurm, src/slurmd/slurmstepd/mgr.c", ROWS + "slurmstepd: error: *** STEP 63532.0 STEPD TERMINATED ON cn106 AT 2026-11-28T09:44:56 DUE TO JOB NOT ENDING WITH SIGNALS ***\n",
         "NOT ENDING WITH SIGNALS", COST),
    Case("a-program-that-uv-does-not-find", GITHUB + "astral-sh/uv, crates/uv/src/commands/project/run.rs", "error: Failed to spawn: `torchrun`\n  Caused by: No such file or directory (os error 2)\n", "Failed to spawn", COST),
    Case("an-argument-that-fire-does-not-know", GITHUB + "google/python-fire, fire/core.py",
         "ERROR: Could not consume arg: --lrr=1e-4\nUsage: train.py <flags>\n  optional flags:        --lr | --epochs | --data\n\nFor detailed information on this command, run:\n  train.py --help\n", "Could not consume arg", COST),
    Case("an-option-that-tyro-does-not-know", GITHUB + "brentyi/tyro, src/tyro/_argparse_formatter.py",
         "╭─ Unrecognized options ──────────────────────╮\n│ Unrecognized options: --lrr                 │\n│ ─────────────────────────────────────────── │\n│ For full helptext, run train.py --help      │\n╰─────────────────────────────────────────────╯\n",
         "Unrecognized options: --lrr", COST),
    Case("a-program-of-another-machine", "runc; Linux, fs/exec.c, ENOEXEC", "exec /opt/conda/bin/python: exec format error\n", "exec format error", COST),
    Case("a-heap-that-is-full", "Node.js, deps/v8/src/api/api.cc, and src/node_errors.cc",
         ROWS + "\n<--- Last few GCs --->\n\n[4711:0x5f1]    81234 ms: Mark-Compact 4043.1 (4130.9) -> 4027.2 (4131.1) MB, 812.04 / 0.00 ms  (average mu = 0.12, current mu = 0.02) allocation failure; scavenge might not succeed\n\n\n<--- JS stacktrace --->\n\n"
         "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n----- Native stack trace -----\n\n 1: 0xb8ced1 node::OOMErrorHandler(char const*, v8::OOMDetails const&) [node]\n 2: 0xf06460  [node]\n", "heap out of memory", COST),
    Case("a-unit-that-was-killed", "systemd, src/run/run.c, --wait", ROWS + "Finished with result: signal\nMain processes terminated with: code=killed/status=KILL\nService runtime: 2h 3min 12.381s\nCPU time consumed: 12h 1min 3s\n", "code=killed", COST),
    Case("a-unit-that-ended-well", "systemd, src/run/run.c, --wait", ROWS + "Finished with result: success\nMain processes terminated with: code=exited/status=0\nService runtime: 2h 3min 12.381s\nCPU time consumed: 12h 1min 3s\n", "", COST),
    Case("a-unit-that-ended-with-1", "systemd, src/run/run.c, --wait", ROWS + "Finished with result: exit-code\nMain processes terminated with: code=exited/status=1\nService runtime: 3.012s\nCPU time consumed: 1s\n", "status=1", COST),
    Case("a-unit-that-dumped-core", "systemd, src/core/service.c, service_sigchld_event", ROWS + "Nov 28 22:00:01 n1 systemd[1]: train.service: Main process exited, code=dumped, status=11/SEGV\n", "code=dumped", COST),
    Case("a-command-that-was-timed", "GNU time 1.9, src/time.c",
         ROWS + "Command terminated by signal 9\n\tCommand being timed: \"python train.py\"\n\tUser time (seconds): 812.31\n\tSystem time (seconds): 31.02\n\tPercent of CPU this job got: 99%\n\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:02:03\n"
         "\tMaximum resident set size (kbytes): 91234567\n\tMajor (requiring I/O) page faults: 12\n\tSwaps: 0\n\tExit status: 0\n", "signal 9", COST),
    Case("a-step-without-its-daemon", GITHUB + "SchedMD/slurm, src/api/step_launch.c, step_launch_notify_io_failure",
         ROWS + "srun: error: step_launch_notify_io_failure: aborting, io error with slurmstepd on node 3\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nsrun: error: Timed out waiting for job step to complete\n",
         "io error with slurmstepd", COST),
    Case("a-job-of-the-shell", "bash, jobs.c, with set -m", ROWS + "[1]+  Exit 137                python train.py --lr 1e-4\n", "Exit 137", COST),
    Case("a-driver-s-error-of-rust", GITHUB + "coreylowman/cudarc, src/driver/result.rs", ROWS + 'Error: DriverError(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")\n', "CUDA out of memory", COST),
    Case("a-command-that-was-broken-off", GITHUB + "pallets/click, src/click/core.py, Abort", ROWS + "Aborted!\n", "Aborted!", COST),
)  # fmt: skip


@each(*NUMBERS)
def test_the_number_and_the_loss_of_a_log_that_was_hunted_a_fourth_time(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)


@each(*CAUSES)
def test_the_cause_in_a_log_that_was_hunted_a_fourth_time(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)


def steps(n: int) -> str:
    return f"step {n} | loss {3 - n / 900:.3f} | lr 3.0e-04\n"


def french(n: int) -> str:
    return f"Step 18 {100 + n} | loss {3 - n / 900:.4f}\n"


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def spinner(n: int) -> str:
    return f"\r{SPINNER[n % 10]} training step {n}/9000 loss {3 - n / 900:.3f} 0:{n % 60:02d}:04"


Lines = Callable[[int], str]
WHILE: tuple[tuple[str, Lines, Lines, bool], ...] = (
    # huggingface/huggingface_hub, src/huggingface_hub/utils/_http.py, http_backoff
    ("a-file-that-is-asked-for-again", steps, lambda n: f"'The read operation timed out' thrown while requesting GET https://hub.example/data/{n}\nRetrying in {2 ** (n % 4)}s [Retry {1 + n % 5}/5].\n", True),
    # Textualize/rich, rich/spinner.py, with a timer
    ("a-spinner-that-turns-on", spinner, lambda n: "".join(f"\r{SPINNER[(n + m) % 10]} training step 60/9000 loss 2.933 0:{n % 60:02d}:{10 + m:02d}" for m in range(20)), True),
    # CPython, Lib/locale.py, fr_FR: a blank between thousands
    ("thousands-with-a-blank", french, french, False),
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
