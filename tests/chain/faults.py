"""A chain on a real cluster under a random mix of real faults, and what became of each slot.

`python -m tests.chain.faults --minutes 30 --every 60` runs it long; the test runs it short.
"""

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from sentinel.chain.folder import ChainFolder
from sentinel.chain.journal import JournalEntry, sum_journal
from sentinel.chain.model import Chain
from tests.lab.cluster import Lab
from tests.lab.needs import SLURM_BIN, SYSTEM_PATH

SBATCH = """\
#!/bin/sh
[ -e {flag} ] && {{ echo "sbatch: error: Batch job submission failed: told to" >&2; exit 1; }}
exec {bin}/sbatch "$@"
"""

CONFIG = """\
cluster: chained
state: {home}/state
checks:
  work:
    kind: exec
    every: 1s
    command: [/bin/sh, -c, 'echo "+ $$ $(date +%s.%N)" >>{home}/work; sleep 0.7; echo "- $$ $(date +%s.%N)" >>{home}/work']
channels:
  book: {{kind: file, path: {home}/book.jsonl}}
"""


class Fault(Struct):
    """What was done, from when to when (epoch seconds)."""

    name: str
    begin: float
    end: float = 0.0


class World:
    """Whoever runs the tests, with a chain on a lab, and the faults that befall it."""

    def __init__(self, lab: Lab, home: Path, every: int, seed: int) -> None:
        self.lab, self.every = lab, every
        self.home, self.random = home, random.Random(seed)
        self.faults: list[Fault] = []
        self.began = 0.0
        self._flag = self.home / "no-sbatch"
        folder = self.home / "bin"
        folder.mkdir()
        wrapper = folder / "sbatch"
        wrapper.write_text(SBATCH.format(bin=SLURM_BIN, flag=self._flag))
        wrapper.chmod(0o755)
        (self.home / "sentinel.yaml").write_text(CONFIG.format(home=self.home))
        self.env = {
            "HOME": str(home),
            "PATH": f"{folder}:{SYSTEM_PATH}",
            "PYTHONUNBUFFERED": "1",
        }
        self.place = ChainFolder(str(self.home / "state/chain"))

    def sentinel(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """As the user types it."""
        argv = [sys.executable, "-m", "sentinel", *words, "-c", str(self.home / "sentinel.yaml")]
        return self.lab.run(argv, env=self.env, limit=120)

    def install(self, *options: str) -> None:
        done = self.sentinel("cron", "install", "--every", f"{self.every}s", *options)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        self.began = time.time()

    def waiting(self) -> list[str]:
        """The ids of pending links."""
        asked = self.lab.run(["squeue", "-h", "-t", "PD", "-o", "%A"])
        return asked.stdout.split()

    def queued(self) -> list[str]:
        """The ids of those that wait or work, in one question: one may begin between two."""
        asked = self.lab.run(["squeue", "-h", "-t", "PD,R", "-o", "%A"])
        return asked.stdout.split()

    def at_work(self) -> list[str]:
        asked = self.lab.run(["squeue", "-h", "-t", "R", "-o", "%A"])
        return asked.stdout.split()

    def wait_for_work(self, seconds: float) -> str:
        """The id of a link at work; empty where none came within the time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if jobs := self.at_work():
                return jobs[0]
            time.sleep(0.05)
        return ""

    # Faults; each returns when it is over.

    def scancel_one(self) -> None:
        """A link that waits is cancelled."""
        if jobs := self.waiting():
            self.lab.run(["scancel", self.random.choice(jobs)])

    def scancel_at_work(self) -> None:
        """A link is cancelled in the middle of its work."""
        if job := self.wait_for_work(2 * self.every):
            self.lab.run(["scancel", job])

    def requeue(self) -> None:
        """A link is requeued in the middle of its work."""
        if job := self.wait_for_work(2 * self.every):
            self.lab.run(["scontrol", "requeue", job])

    def hold(self) -> None:
        """A link that waits is held."""
        if jobs := self.waiting():
            self.lab.run(["scontrol", "hold", self.random.choice(jobs)])

    def kill_controller(self) -> None:
        """slurmctld is gone for a while."""
        self.lab.kill_controller()
        self._pass_time(0.5, 1.5)
        self.lab.controller.start()

    def no_sbatch(self) -> None:
        """sbatch fails for a while."""
        self._flag.touch()
        self._pass_time(1.5, 3.5)
        self._flag.unlink()

    def partition_down(self) -> None:
        """The partition starts no jobs for a while."""
        self.lab.run(["scontrol", "update", "partitionname=main", "state=down"])
        self._pass_time(1, 2.5)
        self.lab.run(["scontrol", "update", "partitionname=main", "state=up"])

    def no_free_node(self) -> None:
        """All nodes are drained for a while."""
        self.lab.run(["scontrol", "update", "nodename=ALL", "state=drain", "reason=test"])
        self._pass_time(1, 2.5)
        self.lab.run(["scontrol", "update", "nodename=ALL", "state=resume"])

    def crash_node(self) -> None:
        """The node of a link loses power in the middle of its work."""
        job = self.wait_for_work(2 * self.every)
        if not job:
            return
        asked = self.lab.run(["squeue", "-h", "-j", job, "-o", "%N"])
        number = asked.stdout.strip().partition("-")[2]
        if number.isdigit():
            self.lab.crash_node(int(number))
            time.sleep(25)
            self.lab.boot_node(int(number))

    def two_at_once(self) -> None:
        """Several people mend it at the same time, and one begins it anew."""
        calls = [("cron", "ensure")] * 3 + [("cron", "install", "--every", f"{self.every}s")]
        threads = [threading.Thread(target=self.sentinel, args=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _pass_time(self, least: float, most: float) -> None:
        time.sleep(self.random.uniform(least, most) * self.every)

    def befall(self, fault: Callable[[], None]) -> None:
        self.faults.append(Fault(fault.__name__, time.time()))
        print(f"{time.strftime('%H:%M:%S')} {fault.__name__}", flush=True)
        fault()
        self.faults[-1].end = time.time()

    def all_faults(self) -> list[Callable[[], None]]:
        return [
            self.scancel_one,
            self.scancel_at_work,
            self.requeue,
            self.hold,
            self.kill_controller,
            self.no_sbatch,
            self.partition_down,
            self.no_free_node,
            self.crash_node,
            self.two_at_once,
        ]


class Verdict(Struct):
    """What the run came to. `missed` names the faults of each slot (by the clock) that no link
    ran to its end; `failures` are those that no fault overlapped, nor the slot before them."""

    slots: int
    ran: int
    busy: int
    failed: int
    repeated: int
    missed: dict[str, list[str]]
    failures: list[str]
    overlapping: int
    alive: bool


def verdict(world: World, until: float) -> Verdict:
    """Every slot was run once, or is missing for a reason that was caused here."""
    chain, entries = world.place.read_chain(), world.place.read_journal()
    found = sum_journal(chain, entries, until)
    missed = {
        _clock(slot): _causes(world.faults, slot, chain.every)
        for slot in missing(chain, entries, world.began, until)
    }
    return Verdict(
        slots=found.slots,
        ran=found.ran,
        busy=found.busy,
        failed=found.failed,
        repeated=found.repeated,
        missed=missed,
        failures=[slot for slot, causes in missed.items() if not causes],
        overlapping=overlapping(world.home / "work"),
        alive=alive(entries, chain, until),
    )


def missing(chain: Chain, entries: Sequence[JournalEntry], began: float, until: float) -> list[int]:
    """The slots since it began that were not run to their end, that of `until` left out: also those
    where a link came by and found another at work on the slot before."""
    ran = {e.slot for e in entries if e.what == "ran"}
    slots = range(chain.slot_at(began) + chain.every, chain.slot_at(until), chain.every)
    return [slot for slot in slots if slot not in ran]


def alive(entries: Sequence[JournalEntry], chain: Chain, until: float) -> bool:
    """Whether the last slots were run."""
    return any(e.what == "ran" and until - e.at < 2.5 * chain.every for e in entries)


def overlapping(log: Path) -> int:
    """How often the work of two ticks was under way at one time.

    A tick that was killed left no end: it is over when the next begins.
    """
    found, open_pid, last_end = 0, "", 0.0
    for line in log.read_text().splitlines():
        sign, pid, moment = line.split()
        if sign == "+":
            found += float(moment) < last_end
            open_pid = pid
        else:
            found += pid != open_pid
            last_end = float(moment)
    return found


def _causes(faults: Sequence[Fault], slot: int, every: int) -> list[str]:
    """The faults under way in this slot or in the one before it; nothing else is an excuse."""
    return [f.name for f in faults if f.begin < slot + every and (f.end or slot) >= slot - every]


def _clock(slot: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(slot))


def run(world: World, minutes: float, rest: float) -> Verdict:
    """Faults in random order, each at least once where there is time, `rest` slots between."""
    world.install()
    end = time.time() + 60 * minutes
    bag: list[Callable[[], None]] = []
    while time.time() < end - 4 * world.every:
        time.sleep(world.random.uniform(0.3, rest) * world.every)
        if not bag:
            bag = world.all_faults()
            world.random.shuffle(bag)
        world.befall(bag.pop())
    time.sleep(max(0.0, end - time.time()))
    return verdict(world, time.time())


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--every", type=int, default=60)
    options.add_argument("--rest", type=float, default=1.5)
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()
    with Lab() as lab:
        home = lab.folder / "home" / "chain"
        home.mkdir()
        world = World(lab, home, args.every, args.seed)
        found = run(world, args.minutes, args.rest)
        print(json.dumps({name: getattr(found, name) for name in found.__struct_fields__}))
        for entry in world.place.read_journal():
            print(time.strftime("%H:%M:%S", time.localtime(entry.at)), entry.slot, entry)
        for output in sorted((world.home / "state/chain").glob("link-?.log")):
            print(output.name, output.read_text(), sep="\n")
        print(world.sentinel("cron", "status").stdout)
        print(world.sentinel("cron", "remove").stdout)


if __name__ == "__main__":
    main()
