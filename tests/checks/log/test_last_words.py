"""What a log ends with, where no known error says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel.checks.log.last_words import find_last_words
from tests.world.logs import of_growing_log, of_whole_log

STEPS = "".join(f"step {n} loss 1.9\n" for n in range(10, 20))


@pytest.mark.parametrize(
    "line",
    [
        "Error: Failed to open file 'dev/data/x.bin' at train_gpt2.cu:1400",
        "2026-01-02 03:04:05.678 | ERROR    | __main__:main:12 - Training failed: bad shape",
        "[03:04:05] CRITICAL the shard 7 has no end",
        '{"severity": "ERROR", "message": "boom"}',
        "time=2026-01-02T03:04:05Z level=error msg=boom",
        "tar: x.tar: Cannot open: No such file or directory",
        "mymod.ShapeError: (3, 4)",
        "command terminated with exit code 137",
        "./run.sh: line 12: 12345 Terminated              python train.py",
        "make: *** [Makefile:12: train] Error 1",
        "[rank3]: Unable to read the index of shard 7",
    ],
)
def test_the_last_words_of_a_program_are_told(line: str, tmp_path: Path) -> None:
    """A trace, a ruler or a good-bye may stand below."""
    text = STEPS + line + "\n    at f (x.c:3)\n----------\nBye.\n"
    assert line[-20:] in of_whole_log(tmp_path, text).cause


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: no cache at /x, falling back to the hub",
        "Failed to import flash_attn, using sdpa",
        "2026 E external/xla/cuda_fft.cc:485] Unable to register cuFFT factory: one is registered",
        "evaluation: 0 errors, error: 0.12",
        "error_rate: 0.31",
        "INFO the error budget is not used up",
        "Exception ignored in: <function f at 0x7f>\nTraceback (most recent call last):\n"
        "  File \"x.py\", line 3, in f\nAttributeError: 'NoneType' object has no attribute 'g'",
        "Error in the first sample\n" + "loading shard\n" * 5,
        "ERROR: one sample was bad\nstep 20 loss 1.9\nstep 21 loss 1.9",
        "Training finished with exit code 0",
    ],
)
def test_what_a_program_gets_over_are_no_last_words(line: str, tmp_path: Path) -> None:
    assert of_whole_log(tmp_path, STEPS + line + "\n").cause == ""


@pytest.mark.parametrize(
    "line",
    [
        "Error: please use --bf16 instead of --fp16 on this device",
        "ValueError: You can't train a model in 8-bit using device_map='auto'",
        "Worker 3 unresponsive for 600 s",
        "dataset size: expected 100 got 90",
        "Port 29500 is already in use",
        "[2026-01-02 03:04:05] Job was evicted from the node",
        "Received SIGTERM, saving checkpoint",
        "run.pl: 8 / 8 failed, log is in exp/fbank.*.log",
        "Too many bad batches",
        " Must have more residues than processors!",
    ],
)
@pytest.mark.parametrize(
    "after", ["", "Shutting down...\nElapsed: 12 s\nwandb: \nwandb: Run summary:\nBye\n"]
)
def test_a_sentence_that_nobody_knows_is_told_where_the_log_ends_with_it(
    line: str, after: str, tmp_path: Path
) -> None:
    """What a program prints while it ends may follow. Advice is no sign that it went on."""
    assert line[-20:] in of_whole_log(tmp_path, STEPS + line + "\n" + after).cause


@pytest.mark.parametrize(
    "line",
    [
        "Not using distributed mode",
        "No checkpoint found, training from scratch",
        "Best model not updated",
        "Some weights of X were not initialized from the checkpoint: ['a']",
        "The process just got forked. Disabling parallelism to avoid deadlocks...",
        "Token indices sequence length is longer than the maximum (1025 > 1024)",
        "Warning: sample 7 too long, dropped",
        "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "mpirun: Forwarding signal 18 to job",
        "slurm job terminated normally",
    ],
)
def test_a_sentence_of_a_training_that_goes_on_is_no_last_word(line: str, tmp_path: Path) -> None:
    """Healthy controls: each is printed by trainings that are well."""
    assert of_whole_log(tmp_path, STEPS + line + "\n").cause == ""


def test_marks_before_the_lines_of_a_trace_hide_no_error(tmp_path: Path) -> None:
    lines = (
        "fatal exception: access violation",
        "",
        "Stack (most recent call first):",
        '  File "w.py", line 3',
        '  File "w.py", line 9',
    )
    for mark in ("(Worker pid=19976) ", "2026-01-02 03:04:05 10.0.0.7 [3] ", "[rank3]: ", "3: "):
        text = STEPS + "".join(f"{mark}{line}\n" for line in (*lines, *lines[-2:]))
        assert "access violation" in of_whole_log(tmp_path, text).cause


def test_a_bar_that_is_written_below_its_error_is_no_progress(tmp_path: Path) -> None:
    """Two streams into one file change places by a line. Two steps after it are progress."""
    error = "ValueError: could not convert string to float\n"
    bars = (
        "\rtrain:  40%|████      | 4/10 [00:18<00:18]",
        "\rtrain:  50%|█████     | 5/10 [00:18<00:18]",
    )
    first = "".join(f"\rtrain:  {n}0%|█         | {n}/10 [00:18<00:18]" for n in range(4)) + "\n"
    assert "could not convert" in of_whole_log(tmp_path, first + error + bars[0] + "\n").cause
    assert of_whole_log(tmp_path, first + error + "".join(bars) + "\n").cause == ""


def test_the_rows_of_a_launcher_s_table_are_no_last_words(tmp_path: Path) -> None:
    """The table names the rank."""
    row = "  time      : 3\n  host      : n1\n  rank      : 4 (local_rank: 4)\n  exitcode  : 1 (pid: 66)\n"
    text = (
        STEPS
        + "[1]:\n"
        + row.replace("4", "5")
        + "Root Cause (first observed failure):\n[0]:\n"
        + row
        + "ERROR: the script failed\n"
    )
    assert of_whole_log(tmp_path, text).cause == "rank died of rank 4 on n1"


def test_while_a_log_is_written_its_end_is_told_beside_a_hang_only(tmp_path: Path) -> None:
    """It may go on; and then they were no last words."""
    chunks = [STEPS, "Error: shard 7 is late\n", "", ""]
    told = of_growing_log(tmp_path, chunks, minutes=12)
    assert [one.cause for one in told] == [""] * 4
    assert "before that: last words (Error: shard 7 is late)" in told[-1].summary
    (tmp_path / "training.log").unlink()
    told = of_growing_log(tmp_path, [*chunks[:2], "loading\n", "", ""], minutes=12)
    assert "before that" not in told[-1].summary


def test_a_text_of_one_long_line_costs_little() -> None:
    assert find_last_words("x" * 10**6) is None
    assert find_last_words("") is None
