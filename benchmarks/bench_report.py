"""A year of the ledger: 200 runs of three weeks each, reported by `sentinel report`.

    python -m benchmarks.bench_report

A job of each run ends once a day, most of them by a fault; rows with steps are an hour long, and a
checkpoint is complete once an hour. Processor time, whatever else the machine does.
"""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import cpu_children, interleaved_processor_time, machine, peak_memory, row
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND
from sentinel.core.model import Batch
from sentinel.core.run_ledger import EndCause, LedgerRow
from sentinel.store.opening import open_store

RUNS, RUN_HOURS, JOB_HOURS = 200, 21 * 24, 24
LIMIT_S, LIMIT_MB = 2.0, 300.0
HOUR = 3600 * SECOND
YEAR = 365 * 24 * HOUR
CAUSES: tuple[EndCause, ...] = ("gpu", "node", "software", "network", "person", "time_limit")


def main() -> int:
    """Print the numbers. 1 if a limit is passed."""
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sentinel.yaml")
        file.write_text(f"state: {folder}/state\n")
        count = fill_state(f"{folder}/state")
        words = ["report", "--since", "365d", "-c", str(file)]
        argv = [sys.executable, "-m", "sentinel", *words]
        before = cpu_children()
        times = interleaved_processor_time({"text": argv, "json": [*argv, "--json"]}, runs=3)
        memory = max(peak_memory(argv), peak_memory([*argv, "--json"])) / 1e6
        row("rows of the ledger", f"{count:,}")
        for name, seconds in times.items():
            row(f"a year of {RUNS} runs as {name}", f"{seconds:.2f} s", f"limit {LIMIT_S:g} s")
        row("memory at its largest", f"{memory:.0f} MB", f"limit {LIMIT_MB:g} MB")
        row("all of it", f"{cpu_children() - before:.0f} s")
    return int(max(times.values()) > LIMIT_S or memory > LIMIT_MB)


def fill_state(path: str) -> int:
    """Write the year into a state, by the store itself. Returns the number of rows."""
    now = SystemClock().now()
    store, count = open_store(path, now).store, 0
    store.take_lead("bench", now)
    for number in range(RUNS):
        latest = now.wall - RUN_HOURS * HOUR
        began = now.wall - YEAR + (latest - now.wall + YEAR) * number // RUNS
        rows = tuple(make_run(f"llm-{number}", began, random.Random(number)))
        store.commit(Batch(at=now, ledger=rows))
        count += len(rows)
    store.close()
    return count


def make_run(run: str, began: int, dice: random.Random) -> Iterator[LedgerRow]:
    """The rows of one run, in their order."""
    step, at = 0.0, began
    for number in range(RUN_HOURS // JOB_HOURS):
        job, attempt = str(1000 + number), at // SECOND
        start, end = at, began + (number + 1) * JOB_HOURS * HOUR - HOUR // 2
        yield LedgerRow(
            run=run, kind="held", began=start, ended=end, job=job, attempt=attempt, gpus=512,
            nodes="node-[0-63]", submitted=attempt - 60, cause=dice.choice(CAUSES),
        )  # fmt: skip
        at += dice.randrange(300, 900) * SECOND
        yield LedgerRow(run=run, kind="startup", began=start, ended=at, job=job, attempt=attempt)
        while at < end:
            ended = min(at + HOUR, end)
            made = (ended - at) // SECOND // dice.choice((5, 5, 5, 5, 5, 5, 6))
            yield LedgerRow(
                run=run, kind="steps", began=at, ended=ended, job=job, attempt=attempt,
                first_step=step, last_step=step + made, checkpoint_us=40 * SECOND,
            )  # fmt: skip
            saved = at + (ended - at) // 2
            yield LedgerRow(
                run=run, kind="saved", began=saved, ended=saved, last_step=float(step + made // 2)
            )
            kept, step, at = step + made // 2, step + made, ended
        step = kept
        at = began + (number + 1) * JOB_HOURS * HOUR


if __name__ == "__main__":
    sys.exit(main())
