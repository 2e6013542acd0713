"""The fast du against GNU du: a local tree of a million files, and one with 1 ms a call.

`python -m benchmarks.bench_du [FILES]`. Both walk the same tree in turn and have to agree. The
local one is hot (all of it in the kernel's caches, after a round that is not counted), the slow one
cold (a fresh FUSE mount for each walk; needs root).
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from benchmarks.measure import ENV, machine, row
from benchmarks.slowtree import mounted
from sentinel.checks.du.tree import _ROOT, _START

PER, FOLDERS, FILES, DELAY = 100, 40, 250, 0.001
"""Files a folder and folders a level; the slow tree's folders and files each; seconds a call there."""


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(machine())
    with tempfile.TemporaryDirectory(prefix="sentinel-du-", dir=os.environ.get("BENCH_DU")) as name:
        folder = Path(name)
        if os.geteuid() == 0:
            print(f"FUSE, {DELAY * 1000:g} ms a call, {FOLDERS * FILES} files, cold")
            slow = lambda: mounted(folder / "slow", FOLDERS, FILES, DELAY)  # noqa: E731
            compare(slow, 3, "goal: at least 10")
        tree = folder / "local"
        grow(tree, files)
        print(f"local, {files} files, hot")
        compare(lambda: nullcontext(tree), 5, "goal: at least 0.67")


def ours(path: Path) -> list[str]:
    """The command that the check starts."""
    order = {"path": str(path), "within": 900, "threads": 64, "calls": 0, "top": 10}
    order["processes"] = max(1, min(4, os.cpu_count() or 1))
    return [sys.executable, "-I", "-S", "-c", _START, _ROOT, json.dumps(order)]


def grow(root: Path, files: int) -> None:
    """Folders of a hundred files, a hundred folders a level."""
    for made in range(0, files, PER):
        folder = root / f"d{made // (PER * PER)}" / f"e{made // PER % PER}"
        folder.mkdir(parents=True)
        at = os.open(folder, os.O_RDONLY)
        for number in range(PER):
            os.close(os.open(f"file-{number:04}", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.close(at)


def compare(tree: Callable[[], AbstractContextManager[Path]], rounds: int, goal: str) -> None:
    """Median times in turn; the first round is not counted."""
    gnu, sentinel = list[float](), list[float]()
    for _ in range(rounds + 1):
        with tree() as path:
            seconds, said = timed(["du", "-s", "-x", "-B1", str(path)])
        gnu.append(seconds)
        with tree() as path:
            seconds, answer = timed(ours(path))
        sentinel.append(seconds)
        if json.loads(answer)["allocated"] != int(said.split()[0]):
            raise AssertionError(f"they disagree: {said!r} and {answer!r}")
    theirs, mine = statistics.median(gnu[1:]), statistics.median(sentinel[1:])
    row("GNU du", f"{theirs:.2f} s", "1")
    row("sentinel", f"{mine:.2f} s", f"{theirs / mine:.2f} times as fast ({goal})")


def timed(argv: list[str]) -> tuple[float, bytes]:
    began = time.perf_counter()
    done = subprocess.run(argv, env=ENV, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began, done.stdout


if __name__ == "__main__":
    main()
