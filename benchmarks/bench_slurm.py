"""Reading a large Slurm: how fast, in how much memory, and what it costs slurmctld.

    python -m benchmarks.bench_slurm [--jobs 100000] [--nodes 10000] [--no-live]

Every number is a ratio of two things measured in this very run, or comes beside one. The
live part needs root and Debian's Slurm packages: a slurmctld without slurmds that believes
in 10,000 idle nodes and holds an array of 100,000 tasks and as many separate jobs as can be
submitted in twenty seconds. It is gone when the benchmark ends.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.measure import row
from sentinel.clock import SystemClock
from sentinel.slurm import nodes, queue
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.words import make_nonce

ROUNDS = 5
SUBMITTING = 20.0  # seconds for separate jobs
MOST_TASKS = 100_000  # of one array
GOAL = 300_000  # jobs a second on one core


@dataclass
class Plain:
    """A job as a reader that is written in five minutes has it."""

    id: str
    job_id: str
    array_id: str
    task: str
    submitted: str
    started: str
    ends: str
    nodes: str
    user: str
    account: str
    partition: str
    state: str
    reason: str
    limit: str
    count: int
    exclude: str
    name: str
    dependency: str
    workdir: str
    command: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--no-live", action="store_true")
    options = parser.parse_args()
    parsing_jobs(options.jobs, alike=True)
    parsing_jobs(options.jobs, alike=False)
    parsing_nodes(options.nodes)
    why_not = "--no-live" if options.no_live else no_lab()
    if why_not:
        print(f"live: left out ({why_not})")
    else:
        live(options.jobs, options.nodes)


def parsing_jobs(count: int, *, alike: bool) -> None:
    """sentinel's reader between its floor and a plain reader."""
    mark = make_nonce()
    rows = list(queue_rows(count, alike))
    out = b"".join(rendered(job, mark) for job in rows)
    document = json.dumps({"jobs": [vars(job) for job in rows]}).encode()
    del rows
    ends = queue.make_marks(mark)
    floor = best(lambda: [r.split(ends.group) for r in out.split(ends.record)])
    ours = best(lambda: queue.read_jobs(out, mark))
    plain = best(lambda: plainly(document))
    kept, peak = memory(lambda: queue.read_jobs(out, mark))
    plain_kept, plain_peak = memory(lambda: plainly(document))
    print(f"{count:,} jobs, {'as users submit them' if alike else 'no two alike'}:")
    row(
        "  jobs a second on one core",
        f"{count / ours:,.0f}",
        f"{count / ours / GOAL:.2f} of the goal",
    )
    row(
        "  its floor, splitting only",
        f"{count / floor:,.0f}",
        f"sentinel takes {ours / floor:.1f} times it",
    )
    row(
        "  json and a dataclass",
        f"{count / plain:,.0f}",
        f"takes {plain / ours:.1f} times sentinel",
    )
    row("  bytes kept a job", f"{kept / count:.0f}", f"json: {plain_kept / kept:.1f} times")
    row("  bytes at the peak a job", f"{peak / count:.0f}", f"json: {plain_peak / peak:.1f} times")
    row(
        "  bytes of squeue's text a job",
        f"{len(out) / count:.0f}",
        f"json: {len(document) / len(out):.1f} times",
    )


def plainly(document: bytes) -> list[Plain]:
    """What most tools do with the same jobs; the parser in C is the standard library's."""
    return [Plain(**job) for job in json.loads(document)["jobs"]]


def parsing_nodes(count: int) -> None:
    """All nodes of an answer of scontrol."""
    out = b"".join(node_lines(count))
    floor = best(lambda: [line.split(b" ") for line in out.split(b"\n")])
    ours = best(lambda: nodes.read_nodes(out))
    kept, _ = memory(lambda: nodes.read_nodes(out))
    print(f"{count:,} nodes:")
    row(
        "  nodes a second on one core",
        f"{count / ours:,.0f}",
        f"{ours / floor:.1f} times the split alone",
    )
    row("  bytes kept a node", f"{kept / count:.0f}")


def queue_rows(count: int, alike: bool) -> Iterator[Plain]:
    """A fifth runs; users submit the same script over and over, or (not alike) never twice."""
    for n in range(count):
        runs, user, run = n % 5 == 0, n % 300, n % 5000 if alike else n
        folder = f"/scratch/project-{user % 40}/user{user}/run-{run}"
        yield Plain(
            id=str(10**6 + n),
            job_id=str(10**6 + n),
            array_id=str(10**6 + n),
            task="N/A",
            submitted=str(1790000000 + n // 3),
            started=str(1790100000 + n) if runs else "N/A",
            ends=str(1790200000 + n) if runs else "N/A",
            nodes=f"n[{n % 9000:05}-{n % 9000 + 15:05}]" if runs else "",
            user=f"user{user}",
            account=f"project-{user % 40}",
            partition="gpu",
            state="RUNNING" if runs else "PENDING",
            reason="None" if runs else "Priority",
            limit="1-00:00:00",
            count=16,
            exclude="",
            name=f"train-llm-{run}",
            dependency="(null)",
            workdir=folder,
            command=f"{folder}/train.sh",
        )


def rendered(job: Plain, mark: str) -> bytes:
    """The job as squeue prints it for `queue.squeue_format(mark)`."""
    values = {
        "i": job.id, "A": job.job_id, "F": job.array_id, "K": job.task, "V": job.submitted,
        "S": job.started, "e": job.ends, "N": job.nodes, "u": job.user, "a": job.account,
        "P": job.partition, "T": job.state, "r": job.reason, "l": job.limit,
        "D": str(job.count), "x": job.exclude, "j": job.name, "E": job.dependency,
        "Z": job.workdir, "o": job.command, "k": "(null)",
    }  # fmt: skip
    return re.sub(r"%(\w)", lambda m: values[m[1]], COLUMNS).replace("@", mark).encode() + b"\n"


COLUMNS = queue.squeue_format("@")


def node_lines(count: int) -> Iterator[bytes]:
    """One in fifty is drained."""
    for n in range(count):
        bad = n % 50 == 0
        yield (
            f"NodeName=n{n:05} Arch=x86_64 CoresPerSocket=32  CPUAlloc=0 CPUEfctv=128 CPUTot=128 "
            f"CPULoad=0.15 AvailableFeatures=h100 ActiveFeatures=h100 Gres=gpu:8 NodeAddr=10.0.0.1 "
            f"NodeHostName=n{n:05} Version=22.05.8 OS=Linux 5.14.0 #1 SMP PREEMPT_DYNAMIC  "
            f"RealMemory=2000000 AllocMem=0 FreeMem=1998000 Sockets=2 Boards=1 "
            f"State={'IDLE+DRAIN' if bad else 'MIXED'} ThreadsPerCore=2 TmpDisk=0 Weight=1 "
            f"Owner=N/A MCS_label=N/A Partitions=gpu,large  BootTime=1789000000 "
            f"SlurmdStartTime=1789000060 LastBusyTime=1789500000 CfgTRES=cpu=128,gres/gpu=8 "
            f"AllocTRES= CapWatts=n/a CurrentWatts=n/s AveWatts=n/s ExtSensorsJoules=n/s "
            f"ExtSensorsWatts=0 ExtSensorsTemp=n/s"
            + (" Reason=Kill task failed [root@1790000000]\n" if bad else "\n")
        ).encode()


def best(work: Callable[[], Any]) -> float:
    """Processor seconds of the fastest of some rounds: the others were disturbed."""
    fastest = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        made = work()
        fastest = min(fastest, time.process_time() - began)
        del made
    return fastest


def memory(work: Callable[[], Any]) -> tuple[int, int]:
    """Bytes that the result keeps, and the most that were in use on the way."""
    gc.collect()
    tracemalloc.start()
    made = work()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del made
    return kept, peak


def no_lab() -> str:
    """Why there can be no live part, or nothing."""
    from tests.lab import needs

    return needs.why_no_lab() or ""


def live(jobs: int, count: int) -> None:
    """A pass against a real slurmctld of that size."""
    from tests.lab.scale import ScaleLab

    with ScaleLab(nodes=count) as lab:
        lab.fill(min(jobs, MOST_TASKS))
        measure(lab, jobs, count, submit(lab))


def submit(lab: Any) -> int:
    """Separate jobs, two at a time, until the time for it is over."""
    deadline = time.monotonic() + SUBMITTING

    def some(_: int) -> int:
        done = 0
        while time.monotonic() < deadline:
            lab.sbatch("true", name=f"train {done}", hold=True)
            done += 1
        return done

    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(some, range(4)))


def measure(lab: Any, jobs: int, count: int, separate: int) -> None:
    """Seconds of a pass, and the requests slurmctld itself counted."""
    client = SlurmClient(environ=lab.env, limit=120)
    print(f"live: {count:,} nodes, {separate:,} separate jobs, an array of {jobs:,}:")
    for checks in (1, 100):
        port = SlurmSnapshot(client, SystemClock(), users=None, max_age=60)
        port.rights()
        lab.ask(["sdiag", "--reset"])
        began = time.perf_counter()
        for _ in range(checks):
            rows, known = port.jobs(), port.nodes()
        took = time.perf_counter() - began
        what = f"  a pass of {checks} checks, {len(rows):,} rows, {len(known):,} nodes"
        row(what, f"{took:.2f} s", f"slurmctld counted {requests(lab)}")
    unfolded(client)
    idle, full = (highest(code, lab.env) for code in (IMPORTS + HIGHEST, IMPORTS + PASS + HIGHEST))
    row(
        "  peak memory of a process reading them",
        f"{full / 1e6:.0f} MB",
        f"idle: {idle / 1e6:.0f} MB",
    )


def unfolded(client: SlurmClient) -> None:
    """Every task a row of its own: what squeue and the reader do with a queue so long."""
    mark = make_nonce()
    began = time.perf_counter()
    out = client.ask_slurm("squeue", "-h", "-a", "-r", "-o", queue.squeue_format(mark))
    asked = time.perf_counter() - began
    count = len(queue.read_jobs(out, mark))
    read = best(lambda: queue.read_jobs(out, mark))
    size = f"{len(out) / 1e6:.0f} MB"
    row(f"  all tasks as rows: squeue prints {count:,}, {size}", f"{asked:.2f} s")
    row("  reading them", f"{read:.2f} s", f"{read / asked:.2f} of squeue's time")


IMPORTS = "from sentinel.slurm import nodes, queue, words; from sentinel.slurm.client import SlurmClient\n"
PASS = """
mark, client = words.make_nonce(), SlurmClient(limit=120)
jobs = queue.read_jobs(client.ask_slurm("squeue", "-h", "-a", "-r", "-o", queue.squeue_format(mark)), mark)
known = nodes.read_nodes(client.ask_slurm(*nodes.NODES_QUESTION))
"""
HIGHEST = """
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def highest(code: str, env: dict[str, str]) -> int:
    """Bytes of memory of a fresh Python at its largest; its own ru_maxrss counts the parent's."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024


def requests(lab: Any) -> str:
    """The RPCs since the reset and the microseconds of all of a kind, without those of sdiag itself."""
    form = r"REQUEST_(\w+) .*count:(\d+) .*total_time:(\d+)"
    counted = sorted(re.findall(form, lab.ask(["sdiag"])))
    return ", ".join(f"{name} {n} ({us} us)" for name, n, us in counted if "STATS" not in name)


if __name__ == "__main__":
    main()
