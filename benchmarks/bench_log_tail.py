"""One look at a log of ten gigabytes: time and memory, against `tail` and `grep`.

The file is sparse but for its last 64 MiB: what lies before the tail is never read, so that
holes cost what data would. That is the claim that is measured: reading by seeking.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import machine, peak_memory, row
from sentinel.checks.log import Log
from sentinel.checks.log.file_offset import MAX_READ_BYTES
from sentinel.core.clock import shift_instant
from sentinel.core.model import Report
from sentinel.core.settings import FilePath
from sentinel.testing import START, context

SIZE = 10 * 2**30
DATA = 64 * 2**20
LINE = b" iteration %9d/  250000 | consumed samples: %12d | lm loss: 2.382640E+00 | loss scale: 1.0 |\n"
PASSES = 50
GOAL = "10 ms"


def main() -> None:
    """Print one pass of several kinds, and the memory of a process that does a hundred."""
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.log", Path(folder) / "large.log"
        write(small, DATA)
        write(large, SIZE)
        allocated = large.stat().st_blocks * 512
        print(f"{SIZE / 2**30:.0f} GiB, of which {allocated / 2**20:.0f} MiB are no holes")
        for path in (small, large):
            measure(path)
        floor(large)
        for path in (small, large):
            peak = peak_memory([sys.executable, "-m", __spec__.name, str(path)])
            row(f"peak memory of 20 passes, {path.stem}", f"{peak / 1e6:.1f} MB")


def write(path: Path, size: int) -> None:
    """A log whose last part is real lines."""
    lines = b"".join(LINE % (n, n * 1024) for n in range(DATA // (len(LINE) + 11)))
    with path.open("wb") as file:
        file.seek(max(0, size - len(lines)))
        file.write(lines)


class Watch:
    """The check as the service runs it, memory handed from pass to pass."""

    def __init__(self, path: Path, *, recognised: bool = False) -> None:
        known = re.compile(r"iteration\s+(\d+)/")
        self._check = Log(path=FilePath(path), progress="auto" if recognised else known)
        self._now, self._memory = START, {}  # type: ignore[var-annotated]

    def look(self) -> Report:
        """One pass, a minute after the last."""
        self._now = shift_instant(self._now, 60)
        report = self._check.run(context(now=self._now, memory=self._memory))
        self._memory = dict(report.memory or {})
        return report


def measure(path: Path) -> None:
    """The first pass, one that finds nothing new, one with a minute's lines, one with a MiB."""
    watch = Watch(path)
    row(f"{path.stem}: first pass ({MAX_READ_BYTES >> 20} MiB is read)", timed([watch.look]))
    first = [Watch(path, recognised=True).look for _ in range(7)]
    row(f"{path.stem}: first pass, trainer recognised", timed(first), "goal: below 150 ms")
    row(f"{path.stem}: nothing new", timed([watch.look] * PASSES), f"goal: below {GOAL}")
    row(
        f"{path.stem}: 20 new lines",
        timed([grown(watch, path, 20)] * PASSES),
        f"goal: below {GOAL}",
    )
    row(f"{path.stem}: a MiB of new lines", timed([grown(watch, path, 8000)] * 5))


def grown(watch: Watch, path: Path, lines: int) -> object:
    """A pass after so many lines more; writing them is not timed."""

    def prepare() -> object:
        with path.open("ab") as file:
            file.writelines(LINE % (time.monotonic_ns() // 1000, n) for n in range(lines))
        return watch.look

    return prepare


def floor(path: Path) -> None:
    """What others take for less."""
    for argv in (["true"], ["tail", "-c", str(MAX_READ_BYTES), str(path)]):
        row(" ".join(argv[:3]), timed([lambda argv=argv: run(argv)] * PASSES))


def run(argv: list[str]) -> None:
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)


def timed(calls: list) -> str:  # type: ignore[type-arg]
    """The median of the calls; a call that returns another one has only prepared it."""
    times = []
    for call in calls:
        prepared = call() if call.__name__ == "prepare" else call
        start = time.perf_counter()
        prepared()
        times.append(time.perf_counter() - start)
    return f"{statistics.median(times) * 1000:.1f} ms"


def passes(path: str) -> None:
    """Twenty passes and no more: what the memory of such a process is."""
    watch = Watch(Path(path))
    for _ in range(20):
        os.utime(path)
        watch.look()


if __name__ == "__main__":
    passes(sys.argv[1]) if len(sys.argv) > 1 else main()
