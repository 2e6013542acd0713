"""Stacks of 64 tasks over four nodes of a real Slurm: seconds, and what a loop of srun takes.

python -m benchmarks.bench_stacks     (as root, with what tests/lab needs)
"""

import statistics
import sys
import time
from collections.abc import Callable

from benchmarks.measure import machine, row
from tests.lab import needs
from tests.lab.cluster import Lab
from tests.stacks.training import Training

EACH = 16
ROUNDS = 5
GOAL = 10.0
ALL = (
    "for p in $(scontrol listpids {job}.0 | awk 'NR>1 {{print $1}}'); do {tool} dump --pid $p; done"
)
"""What people type on each node by hand."""


def seconds(call: Callable[[], object]) -> float:
    """The median of some rounds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> int:
    print(machine())
    if missing := needs.why_no_lab():
        print(f"skipped: {missing}")
        return 0
    tool = f"{sys.executable.rpartition('/')[0]}/py-spy"
    with Lab() as lab:
        training = Training(lab, each=EACH, odd=37)
        step = ["srun", "--overlap", f"--jobid={training.job}", "--gres=none", "--mem=0"]

        def by_hand() -> None:
            for node in lab.nodes:
                script = ALL.format(job=training.job, tool=tool)
                lab.ask([*step, "-N1", "-n1", f"--nodelist={node.name}", "sh", "-c", script])

        def command() -> None:
            done = training.stacks("--no-save")
            assert "rank 37 (node-2) in load_batch" in done.stdout, done

        alone = seconds(lambda: lab.ask([*step, "-N4", "-n4", "true"]))
        hand, ours = seconds(by_hand), seconds(command)
        saved = seconds(lambda: training.stacks("--save", str(lab.work / "evidence")))
    row("an empty step over the four nodes", f"{alone:.2f} s")
    row("py-spy by hand, node after node, 64 tasks", f"{hand:.2f} s")
    row("sentinel stacks, 64 tasks, grouped", f"{ours:.2f} s", f"{ours / hand:.1f} x by hand")
    row("sentinel stacks with its evidence saved", f"{saved:.2f} s", f"goal: under {GOAL:g} s")
    return int(saved >= GOAL)


if __name__ == "__main__":
    raise SystemExit(main())
