"""Benchmarks that measure a fresh Python give it a program as text, which no type checker reads."""

import subprocess
import sys

from benchmarks import bench_slurm


def test_the_program_of_bench_slurm_finds_its_names() -> None:
    """It imports what there is, and uses nothing else."""
    bare = "\n".join(line for line in bench_slurm.PASS.splitlines() if "ask" not in line)
    used = "queue.squeue_format, queue.read_jobs, nodes.NODES_QUESTION, SlurmClient.ask_slurm"
    for code in (
        bench_slurm.IMPORTS + bench_slurm.HIGHEST,
        bench_slurm.IMPORTS + bare + f"\n{used}",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
