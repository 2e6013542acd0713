"""How the cost of one pass grows with the work: one job, ten times and a hundred times as much, and so on.

    python -m benchmarks.bench_growth [NAME ...]        # such as `job samples`; all of them without a name

Each line is one curve: processor time in milliseconds, and the slope between the last two points by
logarithms. 1 is in step with the work, 2 grows with its square.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
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
from sentinel.checks.checkpoint import CheckpointCheck
from sentinel.checks.exec import ExecCheck
from sentinel.checks.fs import FsCheck
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.job import JobCheck
from sentinel.checks.log import Log
from sentinel.checks.nodes import NodesCheck
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job, Node
from sentinel.core.errors import StoreBusy
from sentinel.core.model import Alert, Batch, Coverage, Finding, Key, Report, Sample, Status
from sentinel.core.settings import FilePath
from sentinel.plugin import Check
from sentinel.slurm.job_index import QueuedJobs
from sentinel.testing import START, FixedSlurm, context, job
from sentinel.user_files.session import shared_reader
from sentinel.web.rate_limit import RequestRateLimiter
from sentinel.wiring import app
from tests.checks.gpu.world import World
from tests.lab.postgres import Postgres
from tests.web.scenery import alert as scenery_alert
from tests.web.scenery import fill
from tests.web.stage import stage

ROUNDS = 3
QUEUE = 100_000
EMPTY_SAFETENSORS = (2).to_bytes(8, "little") + b"{}"
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


def alerts_at_once() -> None:
    """A commit in which so many alerts begin, to the state on a disk, with their messages."""
    curve("alerts: that begin in one commit", [1, 10, 100, 1000], _begin_at_once)


def _begin_at_once(count: int) -> float:
    bad = [
        Finding(subject=f"n{n:05}", status=Status.CRITICAL, summary="DOWN") for n in range(count)
    ]
    policies = {"nodes": AlertPolicy(kind="nodes")}
    plan = NotificationPlan(cluster="bench", channels=["mail"], policies=policies)
    with _new_store() as store:
        begun = time.process_time()
        store.commit(process_outcomes([_outcome("nodes", bad)], {}, plan, START))
        return time.process_time() - begun


def nodes() -> None:
    """A look of `nodes` at all of them, of which one in a hundred is drained."""
    curve("nodes: of one check", [10, 100, 1000, 10_000], _look_at_nodes)


def _look_at_nodes(count: int) -> float:
    known = [
        Node(name=f"n{n:05}", state="IDLE", flags=frozenset(["DRAIN"] if n % 100 == 7 else []))
        for n in range(count)
    ]
    begun = time.process_time()
    NodesCheck().run(context(FixedSlurm(nodes=known, jobs=()), START, limit=60.0))
    return time.process_time() - begun


def checkpoints() -> None:
    """A look at one folder with three steps for each training, the second in which nothing is new."""
    curve("checkpoint: trainings", [1, 10, 100, 1000], _look_at_checkpoints, 1)


def _look_at_checkpoints(count: int) -> float:
    user = getpwuid(geteuid()).pw_name
    jobs = tuple(
        job(str(n + 10), "RUNNING", "None", name=f"train{n}", user=user) for n in range(count)
    )
    with tempfile.TemporaryDirectory() as folder:
        for n in range(count):
            for step in (100, 200, 300):
                path = Path(folder, f"train{n}", f"step-{step}", "model.safetensors")
                path.parent.mkdir(parents=True)
                path.write_bytes(EMPTY_SAFETENSORS)
        check = CheckpointCheck(
            path=FilePath(f"{folder}/%x"), job_match=re.compile("train.*"), users=["*"]
        )
        memory: Mapping[str, object] = {}
        for minute in range(2):
            now, begun = shift_instant(START, 60 * minute), _spent()
            with shared_reader():
                report = check.run(context(FixedSlurm(jobs=jobs), now, memory=memory, limit=600.0))
            took, memory = _spent() - begun, report.memory or {}
        if len(report.findings) != count or report.coverage.unseen:
            sys.exit(f"{len(report.findings)} of {count} folders were looked at")
    return took


def years() -> None:
    """`status` and `alerts history` as processes, after so many alerts that came and went."""
    for words in ("status", "alerts history"):
        curve(f"{words}: alerts of the past", [10, 100, 1000, 10_000], partial(_read_past, words))


def _read_past(words: str, count: int) -> float:
    names = [f"/data{n}" for n in range(100)]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "sentinel.yaml")
        config.write_text(
            f"state: {folder}\nchannels:\n  book: {{kind: file, path: {folder}/book}}\nchecks:\n  disk: {{kind: fs, paths: [/]}}\n"
        )
        store, _ = app.open_state(Settings(state=folder), SystemClock())
        now = SystemClock().now()
        store.take_lead("bench", now)
        plan = NotificationPlan(
            cluster="bench", channels=["mail"], policies={"disk": AlertPolicy(kind="fs")}
        )
        for turn in range(0, 2 * count, 2 * len(names)):
            alerts: dict[Key, Alert] = {}
            for status in (Status.CRITICAL, Status.OK):
                at = shift_instant(now, -60.0 * (2 * count - turn - status.bad))
                found = [
                    Finding(subject=one, status=status, summary="full") for one in names[:count]
                ]
                batch = process_outcomes([_outcome("disk", found)], alerts, plan, at)
                store.commit(batch)
                alerts = {a.key: a for a in batch.alerts}
        store.close()
        argv = [sys.executable, "-m", "sentinel", *words.split(), "-c", str(config)]
        begun = cpu_children()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        return cpu_children() - begun


def viewers() -> None:
    """The page of 2,000 nodes while so many reload it for five seconds: what 99 of 100 wait at most."""
    if shutil.which("wrk") is None:
        sys.exit("viewers needs Debian's wrk")
    limits = (RequestRateLimiter(10**9, 1e9), RequestRateLimiter(10**9, 1e9))
    with tempfile.TemporaryDirectory() as folder:
        state, _ = app.open_state(Settings(state=folder), SystemClock())
        fill(state, [scenery_alert(n, f"gpu{n:05}") for n in range(100)], 2000, {"RUNNING": 1000})
        with stage(limits=limits, state=state) as served:
            curve(
                "page: viewers, ms that 99 % wait",
                [1, 10, 100],
                lambda n: _reload(served.url, n),
                1,
            )


def _reload(url: str, clients: int) -> float:
    argv = ["wrk", "-t1", "--latency", "--timeout", "10s", f"-c{clients}", "-d5s", url + "/"]
    told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    number, unit = re.findall(r"99%\s+([\d.]+)(us|ms|s)\b", told)[0]
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def standbys() -> None:
    """A thousand commits of the leader to PostgreSQL while others ask ten times a second (a service
    asks far less often) whether it is gone."""
    with Postgres() as server, server.database() as url:
        curve(
            "PostgreSQL: standbys, 1,000 commits",
            [1, 4, 16],
            lambda n: _commit_before(url, n),
            1,
        )


def _commit_before(url: str, count: int) -> float:
    now, over = SystemClock().now(), threading.Event()
    leader, _ = app.open_state(Settings(state=url), SystemClock())
    leader.take_lead("leader", now)
    others = [app.open_state(Settings(state=url), SystemClock())[0] for _ in range(count)]

    def ask(store: Store) -> None:
        while not over.wait(0.1):
            with suppress(StoreBusy):
                store.take_lead("standby", SystemClock().now())

    threads = [threading.Thread(target=ask, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    begun = time.perf_counter()
    for minute in range(1000):
        values = (Sample("/data", "used", float(minute)),)
        leader.commit(Batch(at=shift_instant(now, minute), samples={"disks": values}))
    took = time.perf_counter() - begun
    over.set()
    for thread in threads:
        thread.join()
    for store in (leader, *others):
        store.close()
    return took


@contextmanager
def _new_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        store, _ = app.open_state(Settings(state=folder), SystemClock())
        store.take_lead("bench", START)
        yield store
        store.close()


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
    "checkpoint": checkpoints,
    "nodes": nodes,
    "alerts": firing_alerts,
    "begin": alerts_at_once,
    "years": years,
    "viewers": viewers,
    "standbys": standbys,
    "samples": samples,
    "samples-read": samples_read,
}


if __name__ == "__main__":
    main()
