"""Wishes of users: what a pass costs with them and without, at 10,000 jobs.

    python -m benchmarks.bench_wishes [--jobs 10000] [--rounds 11]

squeue is a stand-in that prints a recorded answer, and each start of a command is counted: it is one
request to slurmctld. The passes with and without wishes are measured in turn, in processor time (of logs:
with that of the children that read them), which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import re
import statistics
import tempfile
import time
from collections.abc import Mapping
from datetime import timezone
from pathlib import Path
from typing import Any

from benchmarks.measure import cpu_with_children, row
from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.state_machine import AlertPolicy
from sentinel.checks.job import JobCheck
from sentinel.checks.log import Log
from sentinel.checks.users import own_user_name
from sentinel.core.cluster import JobEnd
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.engine import housekeeping
from sentinel.engine.engine import Engine, RuntimeConfig
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.queue import make_marks
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.store.memory import MemoryStore
from sentinel.testing import FixedSlurm, ManualClock, context, job

USERS, PER_TRAINING = 200, 20
SCRIPT_PASSES = 5
LINES_A_MINUTE = 60

SQUEUE = """\
#!/bin/sh
echo squeue >> {log}
answer={answer} mark=${{SQUEUE_FORMAT##*%o}}
[ -z "$SQUEUE_FORMAT2" ] || mark=${{SQUEUE_FORMAT2##*NumTasks:}} answer={answer}.gpus
exec sed "s|@|${{mark%.}}|g" $answer
"""
SCONTROL = """\
#!/bin/sh
echo scontrol >> {log}
printf '#!/bin/sh\\n#SENTINEL off\\n'
"""


class Bench:
    """A stand-in for a Slurm with so many jobs, and an engine that watches them."""

    def __init__(self, folder: Path, jobs: int, comment: str) -> None:
        self._log = folder / "log"
        self._log.touch()
        answer = folder / "squeue.answer"
        answer.write_bytes(record_answer(jobs, comment))
        sizes = ("gres/gpu=8", "N/A", "N/A", "N/A", "1", "8")
        rows = ("@|".join([str(n), *sizes]) + "@.\n" for n in range(jobs))
        (folder / "squeue.answer.gpus").write_text("".join(rows))
        for name, text in (("squeue", SQUEUE), ("scontrol", SCONTROL)):
            (folder / name).write_text(text.format(log=self._log, answer=answer))
            (folder / name).chmod(0o755)
        self.clock = ManualClock()
        client = SlurmClient(environ={"PATH": f"{folder}:{os.environ['PATH']}"})
        slurm = SlurmSnapshot(client, self.clock, users=None, max_age=20.0)
        self.slurm, self.runtime = slurm, make_runtime(slurm)
        self.seconds: list[float] = []

    async def start(self) -> None:
        """Begin with an empty state."""
        self.engine = Engine(self.runtime, MemoryStore(), self.clock)
        await self.engine.start_leading("bench")

    async def make_pass(self) -> int:
        """How many commands of Slurm it started."""
        before = self._log.read_text().count("\n")
        self.clock.advance(60)
        gc.collect()  # so that no pass pays for another one's garbage
        began = time.process_time()
        await self.engine.run_check("trainings")
        await self.engine.read_scripts()
        self.seconds.append(time.process_time() - began)
        return self._log.read_text().count("\n") - before

    async def read_scripts_too(self) -> None:
        """From now on as where a channel tells users of their own jobs."""
        self.runtime.scripts = {"": self.slurm}
        await self.engine.switch_config(self.runtime)


class LogBench:
    """A check that reads the logs of so many jobs, each of which grows by some kilobytes a minute."""

    def __init__(self, folder: Path, jobs: int, wish: str) -> None:
        self._logs = [folder / f"log-{n}" for n in range(jobs)]
        rows = [
            job(str(n), name=f"train-{n}", user=own_user_name(), wish=wish) for n in range(jobs)
        ]
        ends = {
            str(n): JobEnd(job_id=str(n), state="RUNNING", stdout=str(log))
            for n, log in enumerate(self._logs)
        }
        self._slurm = FixedSlurm(jobs=rows, ends=ends)
        self._check = Log(match=re.compile(".*"), users=["*"], looks="off")
        self._clock, self._step = ManualClock(), 0
        self._memory: Mapping[str, Any] = {}
        self.seconds: list[float] = []

    def make_pass(self) -> None:
        """Let each job log a minute, and read it."""
        lines = range(self._step, self._step + LINES_A_MINUTE)
        text = "".join(
            f"iteration {n} loss 2.5 tokens {n * 4096} lr 1e-4 grad 0.7\n" for n in lines
        )
        self._step += LINES_A_MINUTE
        for log in self._logs:
            with log.open("a") as file:
                file.write(text)
        now = self._clock.advance(60)
        gc.collect()
        began = cpu_with_children()
        report = self._check.run(context(self._slurm, now, memory=self._memory, limit=300.0))
        self.seconds.append(cpu_with_children() - began)
        self._memory = report.memory or {}


def measure_logs(top: Path, jobs: int, rounds: int) -> None:
    wishes = {"plain logs": "", "wished logs": 'sentinel: stale=15m progress="tokens (\\d+)"'}
    benches = {}
    for name, wish in wishes.items():
        (top / name).mkdir()
        benches[name] = LogBench(top / name, jobs, wish)
    for turn in range(rounds + 1):
        for bench in [*benches.values()][:: 1 - turn % 2 * 2]:
            bench.make_pass()
    plain, wished = (statistics.median(bench.seconds[1:]) for bench in benches.values())
    row(f"CPU seconds of the median pass over {jobs} logs, without wishes", f"{plain:.3f}")
    row("  with a pattern of its owner for each, as a share of it", f"{wished / plain:.3f}")


def make_runtime(slurm: SlurmSnapshot) -> RuntimeConfig:
    """One check of kind `job` on everybody's jobs."""
    plugin = JobCheck(match=re.compile(".*"), users=["*"])
    common = CheckCommon(kind="job")
    plan = NotificationPlan(
        cluster="bench",
        policies={
            "trainings": AlertPolicy(kind="job"),
            housekeeping.SELF_CHECK_NAME: housekeeping.SELF_CHECK_POLICY,
        },
        channels=["mail"],
        personal=["mail"],
        zone=timezone.utc,
    )
    checks = {"trainings": CheckConfig(name="trainings", common=common, plugin=plugin)}
    return RuntimeConfig(checks=checks, channels={}, plan=plan, slurm=slurm, zone=timezone.utc)


def record_answer(jobs: int, comment: str) -> bytes:
    """What squeue prints, with @ for the nonce of the call; {n} in a comment is the job's number."""
    ends = make_marks("@")
    titles = [b"JOBID JOBID X X X X X X", ends.field.join([b"X"] * 8), b"NAME", b"X", b"COMMENT"]
    rows = [ends.group.join([*titles, ends.field.join((b"WORK_DIR", b"COMMAND"))])]
    start = ManualClock().now().wall // 1_000_000 - 3600
    for n in range(jobs):
        user = f"u{n % USERS}"
        shared = (user, "acc", "prod", "RUNNING", "None", "1-00:00:00", "1", "(null)")
        fields = (
            f"{n} {n} {n} N/A {start} {start} {start + 86400} node-{n}".encode(),
            ends.field.join(word.encode() for word in shared),
            f"train-{n // USERS // PER_TRAINING}".encode(),
            b"(null)",
            comment.replace("{n}", str(n)).encode() or b"(null)",
            ends.field.join((f"/home/{user}".encode(), b"/home/train.sh")),
        )
        rows.append(ends.group.join(fields))
    return b"".join(record + ends.record for record in rows)


async def measure(jobs: int, rounds: int) -> None:
    wishes = {
        "without": "",
        "with": 'sentinel: stale=15m progress="step {n} (\\d+)"',
        "refused": "sentinel: stael=15m",
    }
    with tempfile.TemporaryDirectory() as top:
        benches = {}
        for name, comment in wishes.items():
            folder = Path(top, name)
            folder.mkdir()
            benches[name] = Bench(folder, jobs, comment)
            await benches[name].start()
            await benches[name].make_pass()  # the first pass loads and learns
            benches[name].seconds.clear()
        requests = dict.fromkeys(wishes, 0)
        for turn in range(rounds):
            for name, bench in [*benches.items()][:: 1 - turn % 2 * 2]:
                requests[name] = max(requests[name], await bench.make_pass())
        plain = min(benches["without"].seconds)
        row("commands of Slurm started by a pass, without wishes", f"{requests['without']}")
        row(
            "  with a wish in each comment, and with one that is refused",
            f"{requests['with']} and {requests['refused']}",
        )
        row("CPU seconds of the fastest pass, without wishes", f"{plain:.3f}")
        for name in ("with", "refused"):
            share = min(benches[name].seconds) / plain
            row(f"  {name}, as a share of it", f"{share:.3f}")
        scripted = benches["without"]
        await scripted.read_scripts_too()
        started = [await scripted.make_pass() for _ in range(SCRIPT_PASSES)]
        row(
            f"commands started by each of {SCRIPT_PASSES} passes that read scripts",
            ", ".join(map(str, started)),
        )
        for bench in benches.values():
            await bench.engine.close()
        measure_logs(Path(top), max(1, jobs // 200), rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    asyncio.run(measure(options.jobs, options.rounds))


if __name__ == "__main__":
    main()
