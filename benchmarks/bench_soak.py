"""What a service still holds after many runs: 25 checks a second, six of which alternate.

    python -m benchmarks.bench_soak [MINUTES]        # 15 without; not part of `make bench`
    python -m benchmarks.bench_soak --runs 1000000   # engine, state and alerts by a moved clock

Each minute, or each twentieth of the runs: resident memory, what malloc and SQLite hold of it, and the
size of the state. At the end: the largest tables of the state, and which types have more objects than
after the first two minutes, or the first twentieth.

`--runs` leaves out what starts processes: its checks look at nothing. Each of 25 looks once a minute,
and six of them alternate every 20 looks. What is old is deleted as always.
"""

import argparse
import asyncio
import ctypes
import gc
import os
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from benchmarks.bench_service import CONFIG
from benchmarks.measure import ENV, machine
from sentinel.channels.file import FileChannel
from sentinel.cli import main as run_command
from sentinel.core.model import Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.engine.engine import Engine
from sentinel.store.opening import open_store
from sentinel.testing import ALL_SEEN, ManualClock
from tests.engine.worlds import world
from tests.kinds import PlainCheck

CHECKS, TURNING = 25, 6
SETTLING = 120.0
EVERY = 60.0
MORE_OBJECTS = 30
"""Of one type: a few come and go with each run."""
TABLES = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 4"


class Heap(ctypes.Structure):
    """mallinfo2(3)."""

    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "used",
                 "free", "keepcost")]  # fmt: skip


def main() -> None:
    """Run the service in this thread, and look at it from another."""
    if "PYTHONDONTWRITEBYTECODE" in os.environ:  # what compiling leaves free would be counted
        os.execve(
            sys.executable, [sys.executable, "-m", "benchmarks.bench_soak", *sys.argv[1:]], ENV
        )
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=15.0)
    parser.add_argument("--runs", type=int)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
        if args.runs:
            asyncio.run(_run_many(folder, args.runs))
            return
        config = Path(folder, "sentinel.yaml")
        config.write_text(CONFIG.format(folder=folder, checks="\n".join(_checks())))
        threading.Thread(target=_watch, args=(folder, args.minutes), daemon=True).start()
        run_command(["run", "-c", str(config)])


def _checks() -> list[str]:
    numbers = "{{kind: exec, command: [/bin/echo, OK | a=1], every: 1s}}"
    turns = "test $(( ($(date +%s) + {n} * 7) / 20 % 2 )) = 0 || exit 2"
    alternating = f"{{{{kind: exec, command: [/bin/sh, -c, '{turns}'], every: 1s}}}}"
    disk = "{{kind: fs, paths: [/], every: 1s}}"
    kinds = [numbers] * 13 + [disk] * 6 + [alternating] * 6
    return [f"  check{n}: {kind.format(n=n)}" for n, kind in enumerate(kinds)]


def _watch(folder: str, minutes: float) -> None:
    try:
        _print_growth(folder, time.monotonic() + 60 * minutes)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


class _Look(PlainCheck):  # type: ignore[misc]
    """A check with one number; it alternates if `turns`."""

    def __init__(self, number: int, turns: bool) -> None:
        self.number, self.turns, self.looks = number, turns, 0

    def run(self, ctx: Context) -> Report:
        self.looks += 1
        bad = self.turns and (self.looks + self.number * 7) // 20 % 2
        finding = Finding(
            subject=f"disk{self.number}",
            status=Status.CRITICAL if bad else Status.OK,
            summary="98% used" if bad else "",
            values={"used": float(self.looks % 100)},
        )
        return Report(
            coverage=ALL_SEEN,
            findings=(finding,),
            samples=finding.samples(["used"]),
            memory={"looks": self.looks},
        )


async def _run_many(folder: str, runs: int) -> None:
    """Play so many runs, and print what is held."""
    clock, state = ManualClock(), f"{folder}/state"
    checks = {f"check{n}": _Look(n, turns=n >= CHECKS - TURNING) for n in range(CHECKS)}
    book = FileChannel(path=FilePath(f"{folder}/book"))
    store = open_store(state, clock.now()).store
    engine = Engine(world(dict(checks), {"book": book}), store, clock)
    await engine.start_leading("soak")
    before: Counter[str] = Counter()
    rounds = runs // CHECKS
    for number in range(1, rounds + 1):
        clock.advance(60.0)
        await asyncio.gather(*(engine.run_check(name) for name in checks))
        await engine.deliver_due()
        await engine.prune_state()
        if number % max(1, rounds // 20) == 0:
            before = before or _count_objects()
            print(f"{number * CHECKS:,} runs: {_describe_memory()}; state {_state_size(folder):,}"
                  " bytes", flush=True)  # fmt: skip
    await engine.close()
    _print_tables(folder)
    _print_more_objects(before)


def _print_growth(folder: str, end: float) -> None:
    time.sleep(SETTLING)
    before = _count_objects()
    while time.monotonic() < end:
        print(f"{_describe_memory()}; state {_state_size(folder):,} bytes", flush=True)
        time.sleep(EVERY)
    _print_tables(folder)
    _print_more_objects(before)


def _print_tables(folder: str) -> None:
    with closing(sqlite3.connect(f"file:{folder}/state/sentinel.db?mode=ro", uri=True)) as state:
        for name, size in state.execute(TABLES):
            print(f"{name}: {size:,} bytes")


def _print_more_objects(before: Counter[str]) -> None:
    more = {kind: count for kind, count in (_count_objects() - before).items()
            if count > MORE_OBJECTS}  # fmt: skip
    print(f"more objects than at the first look: {more or 'none'}", flush=True)


def _count_objects() -> Counter[str]:
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects())


def _describe_memory() -> str:
    import _sqlite3

    libc, sqlite = ctypes.CDLL("libc.so.6"), ctypes.CDLL(_sqlite3.__file__)
    libc.mallinfo2.restype, sqlite.sqlite3_memory_used.restype = Heap, ctypes.c_int64
    heap, held = libc.mallinfo2(), sqlite.sqlite3_memory_used()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (f"resident {pages * os.sysconf('SC_PAGESIZE') / 1e6:.1f} MB, of malloc used "
            f"{heap.used / 1e6:.1f}, free {heap.free / 1e6:.1f}, of SQLite {held / 1e6:.2f}")  # fmt: skip


def _state_size(folder: str) -> int:
    """With what is in the log only."""
    with closing(sqlite3.connect(f"file:{folder}/state/sentinel.db?mode=ro", uri=True)) as state:
        pages, size = (state.execute(f"PRAGMA {word}").fetchone()[0]
                       for word in ("page_count", "page_size"))  # fmt: skip
    return int(pages) * int(size)


if __name__ == "__main__":
    main()
