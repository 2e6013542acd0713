"""The ledger of GPUs at its largest: 20,000 GPUs, a million events.

Run alone: python -m benchmarks.bench_gpus
"""

import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator

from benchmarks.measure import machine, row
from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import GpuEvent, GpuLedger, GpuSighting
from sentinel.core.lemon_policy import DAY_S, LemonPolicy
from sentinel.gpu import smi
from sentinel.store.opening import open_sql_gpu_ledger
from tests.lab.gpus import gpus_of, nvidia_smi

GPUS, EVENTS, NEW = 20_000, 1_000_000, 2_000
KINDS = ("xid 31", "xid 13", "xid 94", "xid 63", "xid 48", "diag fail", "missing", "drained")
NOW = 1_800_000_000 * SECOND
YEAR = 365 * DAY_S * SECOND


def main() -> None:
    """Fill a state, then time what each pass and each command does."""
    print(machine())
    with tempfile.TemporaryDirectory() as state:
        _floor(state)
        gpus = open_sql_gpu_ledger(state, LemonPolicy())
        everywhere = list(_sightings())
        _timed(
            "first pass: 20,000 new GPUs",
            lambda: gpus.record_sightings(everywhere, _at(NOW - YEAR)),
        )
        _timed("1,000,000 events recorded", lambda: _fill(gpus))
        _timed(
            "a pass in which nothing is new", lambda: gpus.record_sightings(everywhere, _at(NOW))
        )
        _timed("2,000 new events", lambda: gpus.add_events(list(_new())))
        moved = [
            GpuSighting(uuid=s.uuid, node=f"vm{n}", slot=s.slot) for n, s in enumerate(everywhere)
        ]
        _timed(
            "200 GPUs under other names",
            lambda: gpus.record_sightings([*moved[:200], *everywhere[200:]], _at(NOW)),
        )
        _timed("`gpus lemons`: all scores", lambda: gpus.read_standings(_at(NOW)))
        _timed(
            "`gpus show`: one GPU", lambda: (gpus.read_events("GPU-77"), gpus.read_stays("GPU-77"))
        )
        gpus.close()
        other = open_sql_gpu_ledger(state, LemonPolicy(weights={"xid 94": 2.0}))
        _timed("all scores by other weights, once", lambda: other.read_standings(_at(NOW)))
        other.close()
    text = nvidia_smi(gpus_of(0))
    _timed("nvidia-smi -q -x of 1,000 nodes read", lambda: [smi.parse(text) for _ in range(1000)])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row("peak memory", f"{peak:.0f} MB")


def _floor(state: str) -> None:
    """20,000 rows updated by key, with nothing around it: what a pass cannot be faster than."""
    with sqlite3.connect(f"{state}/floor.db") as connection:
        connection.execute("CREATE TABLE t (key TEXT PRIMARY KEY, seen INTEGER)")
        rows = [(f"{n:032x}", n) for n in range(GPUS)]
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.commit()
        update = "UPDATE t SET seen = seen + 1 WHERE key = ?"
        keys = [(key,) for key, _ in rows]

        def plain() -> None:
            connection.executemany(update, keys)
            connection.commit()

        _timed("floor: 20,000 plain UPDATEs in SQLite", plain)
    connection.close()


def _timed(what: str, work: Callable[[], object]) -> None:
    """Seconds of this process's own processor time: other work on the machine does not count."""
    began, cpu = time.perf_counter(), time.process_time()
    work()
    used, passed = time.process_time() - cpu, time.perf_counter() - began
    row(what, f"{used:.2f} s", f"by the clock {passed:.2f} s")


def _fill(gpus: GpuLedger) -> None:
    """In batches, as months of passes would; each GPU has fifty events over a year."""
    for start in range(0, EVENTS, 50_000):
        gpus.add_events([_event(number) for number in range(start, start + 50_000)])


def _event(number: int) -> GpuEvent:
    when = NOW - YEAR + (number * 7919 % EVENTS) * (YEAR // EVENTS)
    gpu = number // (EVENTS // GPUS)
    return GpuEvent(
        id=f"e{number}",
        subject=f"GPU-{gpu}",
        what=KINDS[number % len(KINDS)] if gpu % 5 else "xid 31",
        at=_at(when),
        node=f"n{gpu // 8}",
        text="Row Remapper: New row marked for remapping, reset gpu to activate.",
    )


def _new() -> Iterator[GpuEvent]:
    for number in range(NEW):
        yield GpuEvent(
            id=f"new {number}", subject=f"GPU-{number * 10}", what="xid 79", at=_at(NOW), node="n1"
        )


def _sightings() -> Iterator[GpuSighting]:
    for number in range(GPUS):
        slot = f"00000000:{0x18 + 8 * (number % 8):02X}:00.0"
        yield GpuSighting(
            uuid=f"GPU-{number}", node=f"n{number // 8}", slot=slot, serial=str(number)
        )


def _at(wall: int) -> Instant:
    return Instant(wall=wall)


if __name__ == "__main__":
    main()
