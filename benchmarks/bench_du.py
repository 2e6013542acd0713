"""The fast du against GNU du: a local tree of a million entries, and one with 1 ms per call.

`python -m benchmarks.bench_du [ENTRIES]`. Needs root for the FUSE mount. Both are given the same
tree, warm, in turn; the numbers they give are compared as well.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import machine, row
from sentinel.checks.fs.du import _ROOT, _START

FOLDERS, FILES, DELAY = 40, 250, 0.001
PER = 100


def ours(path: str, threads: int = 64) -> list[str]:
    """The command of the fast du."""
    order = {
        "path": path,
        "within": 900,
        "threads": threads,
        "processes": max(1, min(4, os.cpu_count() or 1)),
        "calls": 0,
        "top": 10,
    }
    return [sys.executable, "-I", "-S", "-c", _START, _ROOT, json.dumps(order)]


def grown(root: Path, entries: int) -> None:
    """Folders of a hundred files, a hundred folders a level."""
    made = 0
    while made < entries:
        folder = root / f"d{made // (PER * PER)}" / f"e{made // PER % PER}"
        folder.mkdir(parents=True)
        at = os.open(folder, os.O_RDONLY)
        for number in range(PER):
            os.close(os.open(f"file-{number:04}", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.close(at)
        made += PER


def timed(argv: list[str]) -> tuple[float, bytes]:
    began = time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began, done.stdout


def compared(path: str, rounds: int, mount: "object" = None) -> None:
    """Median times in turn, after one round that warms up."""
    gnu = ["du", "-s", "-x", "-B1", path]
    times: dict[str, list[float]] = {"gnu": [], "ours": []}
    for _ in range(rounds + 1):
        seconds, said = timed(gnu)
        times["gnu"].append(seconds)
        theirs = int(said.split()[0])
        seconds, said = timed(ours(path))
        times["ours"].append(seconds)
        answer = json.loads(said)
        assert answer["allocated"] == theirs, (answer["allocated"], theirs)
    kept = {name: statistics.median(found[1:]) for name, found in times.items()}
    row("GNU du", f"{kept['gnu']:.2f} s", "1.0")
    ratio = kept["gnu"] / kept["ours"]
    row(
        "sentinel",
        f"{kept['ours']:.2f} s",
        f"{ratio:.1f} times as fast, {answer['entries']} entries",
    )


@contextmanager
def slow() -> Iterator[str]:
    """The FUSE mount, fresh: its kernel caches are empty."""
    with tempfile.TemporaryDirectory() as point:
        argv = [sys.executable, "-m", "benchmarks.slowfs", point]
        sizes = [str(FOLDERS), str(FILES), str(DELAY)]
        server = subprocess.Popen([*argv, *sizes], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.readline()
        try:
            yield point
        finally:
            server.stdin.close()
            server.wait(10)


def cold_on_slow(rounds: int = 3) -> None:
    """Each on a mount of its own: nothing is cached for anybody."""
    times: dict[str, list[float]] = {"gnu": [], "ours": []}
    for _ in range(rounds):
        with slow() as point:
            seconds, said = timed(["du", "-s", "-x", "-B1", point])
            times["gnu"].append(seconds)
            theirs = int(said.split()[0])
        with slow() as point:
            seconds, said = timed(ours(point))
            times["ours"].append(seconds)
            assert json.loads(said)["allocated"] == theirs
    kept = {name: statistics.median(found) for name, found in times.items()}
    row("GNU du", f"{kept['gnu']:.2f} s", "1.0")
    row(
        "sentinel",
        f"{kept['ours']:.2f} s",
        f"{kept['gnu'] / kept['ours']:.1f} times as fast (goal: 10)",
    )


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(machine())
    print(f"FUSE, {DELAY * 1000:g} ms a call, {FOLDERS * (FILES + 1)} entries")
    cold_on_slow()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DU_DIR")) as root:
        print(f"local, {entries} files")
        grown(Path(root), entries)
        compared(root, 3)


if __name__ == "__main__":
    main()
