"""A pass over 200 logs of two users by a sentinel of root's: what reading them with the users' rights and in
a child costs.

    python -m benchmarks.bench_user_logs [TREE]     # TREE: another checkout, measured in turn with this one
"""

import os
import pwd
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import ENV, machine, row

LOGS, PASSES, ROUNDS, NEW_LINES = 200, 4, 3, 20
LINE = (
    " iteration %9d/  250000 | consumed samples: %12d | lm loss: 2.382640E+00 | loss scale: 1.0 |\n"
)
USERS = ("nobody", "daemon")
PROGRAM = """
import re, sys, time
from sentinel.checks.log import Log
from sentinel.core.settings import FilePath
from sentinel.testing import START, FixedSlurm, context, job
folder, users, logs, passes, lines = sys.argv[1], sys.argv[2].split(","), *map(int, sys.argv[3:6])
line = sys.argv[6]
jobs = [job(str(n), user=users[n % len(users)], name=f"train{n}") for n in range(logs)]
check = Log(match=re.compile("train.*"), users=["*"], path=FilePath(folder + "/%u/%x.log"), looks="off")
memory, times = {}, []
try:
    from sentinel.user_files.session import shared_reader
except ImportError:
    from contextlib import nullcontext as shared_reader
for number in range(passes):
    for each in jobs:
        with open(f"{folder}/{each.user}/{each.name}.log", "a") as file:
            file.writelines(line % (number * lines + n, n) for n in range(lines))
    began = time.perf_counter()
    with shared_reader():
        report = check.run(context(FixedSlurm(jobs=jobs), memory=memory, limit=120.0))
    times.append(time.perf_counter() - began)
    memory = dict(report.memory or {})
    unseen = [f for f in report.findings if f.status.value == "unknown"]
    assert len(report.findings) == logs and not unseen, (report.coverage, unseen[:1])
print(*times)
"""


def main() -> None:
    """The first pass, and a later one with a few new lines in each log."""
    print(machine())
    trees = [Path(__file__).parent.parent, *map(Path, sys.argv[1:2])]
    found: dict[Path, list[list[float]]] = {tree: [] for tree in trees}
    for _ in range(ROUNDS):
        for tree in trees:
            found[tree].append(time_passes(tree))
    first = {tree: statistics.median(one[0] for one in found[tree]) for tree in trees}
    later = {tree: statistics.median(t for one in found[tree] for t in one[1:]) for tree in trees}
    for tree in trees:
        row(f"{LOGS} logs, first pass: {tree.name}", f"{first[tree] * 1e3:.0f} ms")
        row(f"{LOGS} logs, {NEW_LINES} new lines each: {tree.name}", f"{later[tree] * 1e3:.0f} ms")
    if len(trees) > 1:
        this, other = trees
        ratios = f"{first[this] / first[other]:.2f} x and {later[this] / later[other]:.2f} x"
        row("against the other checkout", ratios, "goal: at most 1.2 x")


def time_passes(tree: Path) -> list[float]:
    """Seconds of each pass of a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for user in USERS:
            place = Path(folder) / user
            place.mkdir()
            for n in range(LOGS):
                log = place / f"train{n}.log"
                log.write_text("".join(LINE % (n, n * 1024) for n in range(100)))
                os.chown(log, pwd.getpwnam(user).pw_uid, -1)
        words = [folder, ",".join(USERS), LOGS, PASSES, NEW_LINES, LINE]
        env = {**ENV, "PYTHONPATH": str(tree)}
        done = subprocess.run([sys.executable, "-c", PROGRAM, *map(str, words)], env=env, check=True,
                              capture_output=True, text=True, cwd=folder)  # fmt: skip
        return [float(word) for word in done.stdout.split()]


if __name__ == "__main__":
    main()
