"""How the cost of one pass grows with the work: one job, ten times and a hundred times as much, and so on.

    python -m benchmarks.bench_growth [NAME ...]        # such as `job samples`; all of them without a name

Each line is one curve: processor time in milliseconds, and the slope between the last two points by
logarithms. 1 is in step with the work, 2 grows with its square.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from math import log
from os import geteuid
from pathlib import Path
from pwd import getpwuid

from benchmarks.measure import cpu_children, machine
from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.processor import process_outcomes
from sentinel.alerting.state import Store
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.checks.exec import ExecCheck
from sentinel.checks.fs import FsCheck
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.job import JobCheck
from sentinel.checks.log import Log
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job
from sentinel.core.model import Batch, Coverage, Finding, Report, Sample, Status
from sentinel.core.settings import FilePath
from sentinel.plugin import Check
from sentinel.slurm.job_index import QueuedJobs
from sentinel.testing import START, FixedSlurm, context, job
from sentinel.user_files.session import shared_reader
from sentinel.wiring import app
from tests.checks.gpu.world import World

ROUNDS = 3
QUEUE = 100_000
LINE = "iteration %d/ 10000 loss 2.5\n"


def main() -> None:
    """Print the curves that are named, or all."""
    print(machine())
    chosen = sys.argv[1:] or list(CURVES)
    if unknown := [name for name in chosen if name not in CURVES]:
        sys.exit(f"no curve {', '.join(unknown)}; there are: {' '.join(CURVES)}")
    for name in chosen:
        CURVES[name]()


def job_checks() -> None:
    """Checks on one name each, of a queue that all of them share; the first builds its index."""
    curve(f"job: checks, {QUEUE:,} jobs in the queue", [1, 10, 100], lambda n: _run_jobs(n, QUEUE))
    curve(
        "job: jobs in the queue, 100 checks",
        [100, 1000, 10_000, QUEUE],
        lambda n: _run_jobs(100, n),
    )


def _run_jobs(checks: int, jobs: int) -> float:
    queue = QueuedJobs(_make_jobs(jobs))
    kinds = [JobCheck(name=f"train{n}", users=["*"]) for n in range(checks)]
    begun = time.process_time()
    for one in kinds:
        one.run(context(FixedSlurm(jobs=queue), START, limit=600.0))
    return time.process_time() - begun


def _make_jobs(count: int) -> list[Job]:
    """One of each name; 200 run, and the rest waits."""
    return [
        job(
            str(n),
            *(("RUNNING", "None") if n < 200 else ("PENDING", "Priority")),
            name=f"train{n}",
        )
        for n in range(count)
    ]


def log_trainings() -> None:
    """A pass in which nothing is new, with the children that open the files."""
    curve("log: trainings, nothing new", [1, 10, 100, 1000], lambda n: _run_log(n, grown=False), 1)
    curve(
        "log: trainings, a new line in each",
        [1, 10, 100, 1000],
        lambda n: _run_log(n, grown=True),
        1,
    )


def _run_log(trainings: int, *, grown: bool) -> float:
    user = getpwuid(geteuid()).pw_name
    names = [f"train{n}" for n in range(trainings)]
    slurm = FixedSlurm(jobs=tuple(job(str(n + 10), "RUNNING", "None", name=names[n], user=user)
                                  for n in range(trainings)))  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.log" for name in names]
        check = Log(path=FilePath(f"{folder}/%x.log"), match=re.compile("train.*"), users=["*"],
                    ask_nodes=False)  # fmt: skip
        memory: Mapping[str, object] = {}
        for minute in range(3):
            for file in files if grown or not minute else ():
                with file.open("a") as lines:
                    lines.writelines(LINE % (10 * minute + n) for n in range(10))
            begun = _spent()
            now = shift_instant(START, 60 * minute)
            with shared_reader():  # as the engine does
                report = check.run(context(slurm, now, memory=memory, limit=600.0))
            took = _spent() - begun
            memory = report.memory or {}
        unseen = report.coverage.unseen
        if len(report.findings) != trainings or unseen:
            sys.exit(f"{len(report.findings)} of {trainings} were looked at, {unseen} not")
    return took


def _spent() -> float:
    return time.process_time() + cpu_children()


def single_checks() -> None:
    """Runs of `exec` and `fs` with what they start, and of `gpu` by nodes whose answers are there."""
    command = ExecCheck(command=["/bin/true"])
    curve("exec: runs of /bin/true", [10, 100], lambda n: _run_often(command, n))
    curve("fs: runs on /", [10, 100], lambda n: _run_often(FsCheck(paths=[FilePath("/")]), n))
    curve("gpu: nodes with 8 GPUs, answers read", [10, 100, 1000], _read_gpus, 1)


def _run_often(check: Check, count: int) -> float:
    begun, memory = _spent(), dict[str, object]()
    for minute in range(count):
        report = check.run(
            context(FixedSlurm(), shift_instant(START, 60 * minute), memory=memory, limit=60.0)
        )
        memory = dict(report.memory or {})
    return _spent() - begun


def _read_gpus(count: int) -> float:
    here = World(GpuCheck(nodes=f"n[1-{count}]"), [f"n{n}" for n in range(1, count + 1)])
    here.look()
    begun = _spent()
    found = here.look().findings
    took = _spent() - begun
    if len(found) < 8 * count:
        sys.exit(f"{len(found)} findings of {count} nodes")
    return took


def firing_alerts() -> None:
    """A commit of one check that is well, while alerts of others fire."""
    curve("alerts: firing while one check commits", [10, 100, 1000, 10_000], _commit_beside)


def _commit_beside(count: int) -> float:
    names = [f"n{n:05}" for n in range(count)]
    bad = [Finding(subject=name, status=Status.CRITICAL, summary="DOWN", labels={"node": name})
           for name in names]  # fmt: skip
    policies = {"nodes": AlertPolicy(kind="nodes"), "disk": AlertPolicy(kind="fs")}
    plan = NotificationPlan(cluster="bench", channels=["mail"], policies=policies)
    first = process_outcomes([_outcome("nodes", bad)], {}, plan, START)
    alerts = {a.key: a for a in first.alerts}
    well = [_outcome("disk", [Finding(subject="/", status=Status.OK, summary="well")])]
    for minute in (1, 2):
        begun = time.process_time()
        batch = process_outcomes(well, alerts, plan, shift_instant(START, 60 * minute))
        took = time.process_time() - begun
        alerts |= {a.key: a for a in batch.alerts}
    return took


def _outcome(check: str, found: list[Finding]) -> RunOutcome:
    report = Report(findings=tuple(found), coverage=Coverage(of="things", meant=len(found)))
    fine = Finding(subject="", status=Status.OK, summary="")
    return RunOutcome(check=check, kind=check, seconds=0.1, report=report, itself=fine)


def samples() -> None:
    """Bytes that are written for those that are kept, by one pass a minute, once each series has
    pages of its own; and how long a series is read, of seven days."""
    for series in (1, 10, 100, 1000):
        written, kept = _write_samples(series)
        rate = f"{written / kept:.1f} x {kept:,} bytes kept"
        print(f"samples: {series:,} series, written: {written:,} bytes, {rate}", flush=True)


def _write_samples(count: int) -> tuple[int, int]:
    """In the 25 hours from one sorting of recent samples to the next."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
        store, _ = app.open_state(Settings(state=folder), SystemClock())
        store.take_lead("bench", START)
        _commit_samples(store, count, range(1500))
        begun, size = _written_bytes(), _database_bytes(folder)
        _commit_samples(store, count, range(1500, 3000))
        written, size = _written_bytes() - begun, _database_bytes(folder) - size
        store.close()
    return written, max(1, size)


def samples_read() -> None:
    """One series of seven days, of 1,100 that were measured every minute: 11 million rows."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
        store, _ = app.open_state(Settings(state=folder), SystemClock())
        store.take_lead("bench", START)
        _commit_samples(store, 1100, range(7 * 1440))
        times = []
        for number in range(0, 1100, 110):
            begun = time.perf_counter()
            found = store.read_samples("disks", f"/data{number}", "used", 0)
            times.append(time.perf_counter() - begun)
        store.close()
    worst, median = (1000 * one for one in (max(times), sorted(times)[len(times) // 2]))
    print(f"samples: {len(found):,} of one series of 1,100 are read in {median:.1f} ms, "
          f"{worst:.1f} at most", flush=True)  # fmt: skip


def _commit_samples(store: Store, series: int, minutes: range) -> None:
    """One pass a minute; once an hour, as a service does, what is too old is forgotten."""
    for minute in minutes:
        at = shift_instant(START, 60 * minute)
        values = tuple(Sample(f"/data{n}", "used", minute / 60) for n in range(series))
        store.commit(Batch(at=at, samples={"disks": values}))
        if minute % 60 == 59:
            store.prune(at)


def _written_bytes() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


def _database_bytes(folder: str) -> int:
    """With the write-ahead log written back."""
    with closing(sqlite3.connect(f"{folder}/sentinel.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(folder, "sentinel.db").stat().st_size


def curve(
    what: str, sizes: list[int], measure: Callable[[int], float], rounds: int = ROUNDS
) -> None:
    """One line: the best of some rounds at each size."""
    times = {size: min(measure(size) for _ in range(rounds)) for size in sizes}
    points = "  ".join(f"{size:,}: {seconds * 1000:.1f}" for size, seconds in times.items())
    print(f"{what:<46} {points}  slope {slope(times):.2f}", flush=True)


def slope(times: Mapping[int, float]) -> float:
    """Of the last two points, by logarithms."""
    (small, less), (large, more) = list(times.items())[-2:]
    return log(max(more, 1e-9) / max(less, 1e-9)) / log(large / small)


CURVES: dict[str, Callable[[], None]] = {
    "job": job_checks,
    "log": log_trainings,
    "checks": single_checks,
    "alerts": firing_alerts,
    "samples": samples,
    "samples-read": samples_read,
}


if __name__ == "__main__":
    main()
