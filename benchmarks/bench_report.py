"""A year of the ledger: 200 runs of three weeks each, reported by `sentinel report`.

    python -m benchmarks.bench_report

A job of each run ends once a day, most of them by a fault; rows with steps are an hour long, and a
checkpoint is complete once an hour. Besides, the state holds 200 series as they are left of 100 million
samples, one a minute for a year: one an hour, and of the last week one in ten minutes (the store keeps
all of that week). Processor time, whatever else the machine does.

Then passes of a `job` and a `log` check over 50 trainings that make steps: what of their time the
ledger takes, by clocks around its functions, and the passes with it beside those without it, in turn.
"""

import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from os import geteuid
from pathlib import Path
from pwd import getpwuid
from typing import Any
from unittest.mock import patch

from benchmarks.measure import (
    cpu_children,
    cpu_with_children,
    interleaved_processor_time,
    machine,
    peak_memory,
    row,
)
from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import process_outcomes
from sentinel.alerting.state import Store
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.checks.job import JobCheck, trainings_round
from sentinel.checks.job.ledger_rows import list_ledger_rows
from sentinel.checks.log import Log
from sentinel.checks.log import run as log_run
from sentinel.checks.log.ledger_rows import TrackedRuns, track_runs
from sentinel.clock import SystemClock
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.model import Batch, Finding, Sample, Status
from sentinel.core.run_ledger import EndCause, LedgerRow
from sentinel.core.settings import FilePath
from sentinel.plugin import Check
from sentinel.store.opening import open_store
from sentinel.testing import START, FixedSlurm, context, job
from sentinel.user_files.session import shared_reader

SERIES = 200
TRAININGS, MINUTES, FIRST_MINUTES = 50, 22, 2
RUNS, RUN_HOURS, JOB_HOURS = 200, 21 * 24, 24
LIMIT_S, LIMIT_MB, LIMIT_SHARE = 2.0, 300.0, 0.01
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
        start = [sys.executable, "-m", "sentinel", "report", "-c", str(file)]
        argv = [*start, "--since", "365d"]
        before = cpu_children()
        forms = {"text": argv, "json": [*argv, "--json"], "text, 7 days": start}
        times = interleaved_processor_time(forms, runs=3)
        memory = max(peak_memory(argv), peak_memory([*argv, "--json"])) / 1e6
        size = sum(one.stat().st_size for one in Path(folder).rglob("*") if one.is_file()) / 1e6
        row("rows of the ledger", f"{count:,}", f"state {size:.0f} MB")
        for name, seconds in times.items():
            row(f"a year of {RUNS} runs as {name}", f"{seconds:.2f} s", f"limit {LIMIT_S:g} s")
        row("memory at its largest", f"{memory:.0f} MB", f"limit {LIMIT_MB:g} MB")
        row("all of it", f"{cpu_children() - before:.0f} s")
    share = measure_passes()
    return int(max(times.values()) > LIMIT_S or memory > LIMIT_MB or share > LIMIT_SHARE)


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
    store.commit(Batch(at=now, samples=_make_samples(0)))
    first, minute = now.wall - YEAR, 60 * SECOND
    fine = range(now.wall - 7 * 24 * HOUR, now.wall, 10 * minute)  # kept as they were taken
    for wall in (*range(first, fine[0], HOUR), *fine):
        store.commit(Batch(at=Instant(wall=wall), samples=_make_samples(wall)))
    store.close()
    return count


def _make_samples(wall: int) -> dict[str, tuple[Sample, ...]]:
    value = float(wall // SECOND % 1000)
    return {"log": tuple(Sample(f"llm-{number}", "step", value) for number in range(SERIES))}


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


def measure_passes() -> float:
    """Print the time of passes with the ledger and without it, in turn. Returns the share of the
    ledger in a pass, by clocks around its functions."""
    spent: list[float] = []
    clocked = [partial(_clock, spent, one) for one in (track_runs, list_ledger_rows)]
    nothing: list[Callable[..., Any]] = [lambda *_: TrackedRuns(), lambda *_: []]
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(f"{folder}/state", SystemClock().now()).store) as store,
        shared_reader(),
    ):
        store.take_lead("bench", SystemClock().now())
        sides = {name: _Trainings(folder, name) for name in ("with", "without")}
        totals, count = dict.fromkeys(sides, 0.0), 0
        for minute in range(MINUTES):
            _write_steps(Path(folder), minute)
            for name in sorted(sides, reverse=bool(minute % 2)):
                one = sides[name]
                of_log, of_job = clocked if name == "with" else nothing
                if minute == FIRST_MINUTES and name == "with":
                    spent.clear()
                begun = cpu_with_children()
                with (
                    patch.object(log_run, "track_runs", of_log),
                    patch.object(trainings_round, "list_ledger_rows", of_job),
                ):
                    rows = one.run_pass(minute)
                if minute >= FIRST_MINUTES:
                    totals[name] += cpu_with_children() - begun
                if rows:
                    count += len(rows)
                    spent.append(_time_commit(store, rows) - _time_commit(store, ()))
        for one in sides.values():
            one.close()
    share = sum(spent) / totals["with"]
    row(f"the ledger in {MINUTES} passes, {count} rows", f"{100 * share:.2f} %", "limit 1 %")
    row("passes with the ledger by passes without", f"{totals['with'] / totals['without']:.3f}")
    return share


def _time_commit(store: Store, rows: tuple[LedgerRow, ...]) -> float:
    begun = time.process_time()
    store.commit(Batch(at=SystemClock().now(), ledger=rows))
    return time.process_time() - begun


def _clock(spent: list[float], call: Callable[..., Any], *words: Any) -> Any:
    begun = time.process_time()
    try:
        return call(*words)
    finally:
        spent.append(time.process_time() - begun)


def _write_steps(folder: Path, minute: int) -> None:
    for number in range(TRAININGS):
        with (folder / f"train{number}.log").open("a") as lines:
            lines.writelines(f"iteration {10 * minute + n}/ 10000 loss 2.5\n" for n in range(10))


class _Trainings:
    """A `job` and a `log` check over all trainings, with what they remember."""

    def __init__(self, folder: str, name: str) -> None:
        self._store = open_store(f"{folder}/{name}", START).store
        self._store.take_lead("bench", START)
        self._plan = NotificationPlan(
            cluster="bench",
            channels=["mail"],
            policies={kind: AlertPolicy(kind=kind) for kind in ("job", "log")},
        )
        user = getpwuid(geteuid()).pw_name
        self._slurm = FixedSlurm(
            jobs=tuple(
                job(str(n + 10), "RUNNING", "None", name=f"train{n}", user=user)
                for n in range(TRAININGS)
            ),
            gpus={str(n + 10): 8 for n in range(TRAININGS)},
        )
        match = re.compile("train.*")
        self._checks: dict[str, Check] = {
            "job": JobCheck(match=match, users=["*"]),
            "log": Log(
                path=FilePath(f"{folder}/%x.log"), match=match, users=["*"], ask_nodes=False
            ),
        }
        self._memory = dict[str, Mapping[str, Any]]()

    def run_pass(self, minute: int) -> tuple[LedgerRow, ...]:
        """One pass, to the commit. Returns the rows for the ledger."""
        rows = list[LedgerRow]()
        itself = Finding(subject="", status=Status.OK, summary="")
        for name, check in self._checks.items():
            now, memory = shift_instant(START, 60 * minute), self._memory.get(name, {})
            report = check.run(context(self._slurm, now, memory=memory, limit=600.0, every=60.0))
            if len(report.findings) < TRAININGS or report.coverage.unseen:
                sys.exit(f"{len(report.findings)} of {TRAININGS} trainings were looked at")
            self._memory[name] = report.memory or {}
            rows += report.ledger
            outcome = RunOutcome(check=name, kind=name, seconds=0.1, report=report, itself=itself)
            self._store.commit(process_outcomes([outcome], {}, self._plan, now))
        return tuple(rows)

    def close(self) -> None:
        """Close its state."""
        self._store.close()


if __name__ == "__main__":
    sys.exit(main())
