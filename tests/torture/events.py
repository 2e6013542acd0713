"""What befalls them, drawn by a seed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable

from tests.lab.base import Cluster
from tests.lab.waiting import wait_until
from tests.torture.oracle import Oracle, processes
from tests.torture.world import World

NOTES = ("RMA GPU3", "bad dimm", "on loan until Monday", "rack move")


class Events:
    """`befall` does one thing and returns its name; `calm` takes all faults back."""

    def __init__(
        self, world: World, oracle: Oracle, chance: random.Random, *, unheard: int = 0
    ) -> None:
        self.world, self.oracle, self._chance = world, oracle, chance
        self._number = self.between = 0
        self._ambushed: tuple[str, str] | None = None
        self._crashed = False
        self._usual: list[Callable[[], str]] = [
            *[self.fail_task] * 2,
            self.drain,
            *[self.ambush] * 3,
            self.job,
            *[self.checkpoint] * 3,
            *[self.drain_while_refused] * unheard,
        ]
        self._faults: list[Callable[[], str]] = [
            *[self.kill] * 2,
            self.slurm_lies,
            self.slurm_stops,
            self.channel_fails,
            self.disk,
            self.clock,
            self.crash,
        ]

    def befall(self, *, disturbed: bool) -> str:
        """Not `disturbed`: only what people, Slurm and jobs do, so that sentinel acts all the time."""
        return self._chance.choice(self._usual + self._faults * disturbed)()

    def calm(self) -> None:
        """All is well from here on; what an administrator said stays said."""
        self.world.mode("well")
        self.world.hook.accept()
        self.world.clock.set(0)
        disk = self.world.folder / "disk"
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=False, capture_output=True)
        (disk / "ballast").unlink(missing_ok=True)
        self.world.lab.controller.cont()
        self.world.lab.controller.start()
        if self._crashed:
            self.world.lab.boot_node(3)
        Cluster.wait_ready(self.world.lab, 60)
        if self._crashed:
            self._await_node("node-3")
            self._resume("node-3")
            self.oracle.unseen.discard("node-3")
            self._crashed = False
        self.world.kill()
        self.world.run()
        self.await_ambush(25)
        self.settle_ambush()

    def await_ambush(self, seconds: float) -> None:
        """Until the administrator who lies in wait has acted, if sentinel comes there at all."""
        deadline = time.monotonic() + seconds
        while self._ambushed and not self.world.ambushed and time.monotonic() < deadline:
            time.sleep(0.2)

    def settle_ambush(self) -> None:
        """Whether the administrator who lay in wait has acted; one who has not goes home."""
        if self._ambushed is None:
            return
        node, note = self._ambushed
        self._ambushed = None
        deadline = time.monotonic() + 5
        while (self.world.folder / "ambush.taken").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        if self.world.ambushed:
            self.between += 1
            self.oracle.holds[node] = note
        self.world.ambush("never", "")

    def release(self) -> None:
        """An administrator gives back what was held; it is not sentinel's to do."""
        for node in list(self.oracle.holds):
            if self._chance.random() < 0.6:
                del self.oracle.holds[node]
                self._resume(node)

    def fail_task(self) -> str:
        """Slurm's own drain, of a node that is clean: sentinel's to give back."""
        free = [n for n in self._idle_names() if n not in self.oracle.holds]
        if not free:
            return "nothing"
        node = self._chance.choice(free)
        self._update(f"nodename={node}", "state=drain", "reason=Kill task failed")
        return f"fail_task {node}"

    def drain(self) -> str:
        """An administrator's, for good."""
        node = self._chance.choice(self._idle_names())
        note = self._note()
        if self._update(f"nodename={node}", "state=drain", f"reason={note}"):
            self.oracle.holds[node] = note
        return f"drain {node} {note}"

    def ambush(self) -> str:
        """An administrator drains the node between two of sentinel's calls."""
        self.settle_ambush()
        free = [n for n in self._names() if n not in self.oracle.holds]
        if not free:
            return "nothing"
        node, note = self._chance.choice(free), self._note().replace(" ", "_")
        when = self._chance.choice([f"{node} State=UNDRAIN"] * 3 + [f"show node {node}", "squeue"])
        self.world.ambush(when, f"nodename={node} state=drain reason={note}")
        self._ambushed = (node, note)
        self._update(f"nodename={node}", "state=drain", "reason=Kill task failed")
        return f"ambush {node} before '{when}'"

    def kill(self) -> str:
        pause = self._chance.random() * 4
        time.sleep(pause)
        self.world.kill()
        self.world.run()
        return f"kill after {pause:.2f}s"

    def slurm_lies(self) -> str:
        mode = self._chance.choice(["slow", "cut", "empty", "dead", "well"])
        self.world.mode(mode)
        return f"slurm {mode}"

    def slurm_stops(self) -> str:
        """slurmctld hangs for a moment, or is away for one."""
        if self._chance.random() < 0.5:
            self.world.lab.stop_controller()
            time.sleep(self._chance.random() * 6)
            self.world.lab.cont_controller()
            return "slurmctld hung"
        self.world.lab.kill_controller(signal.SIGTERM)  # else Slurm itself forgets drains
        time.sleep(self._chance.random() * 3)
        self.world.lab.controller.start()
        Cluster.wait_ready(self.world.lab, 60)
        return "slurmctld ended"

    def channel_fails(self) -> str:
        if self._chance.random() < 0.7:
            self.world.hook.refuse(503)
            return "channel refuses"
        self.world.hook.accept()
        return "channel accepts"

    def drain_while_refused(self) -> str:
        """The message about it is refused until calm comes, and has to come then."""
        self.world.hook.refuse(503)
        return f"channel refuses, {self.drain()}"

    def disk(self) -> str:
        """Full, read-only, or well again."""
        disk = self.world.folder / "disk"
        way = self._chance.choice(["full", "ro", "rw"])
        if way == "full":
            with (disk / "ballast").open("wb") as file:
                try:
                    while True:
                        file.write(bytes(1 << 20))
                        file.flush()
                except OSError:
                    pass
        else:
            argv = ["mount", "-o", f"remount,{way}", str(disk)]
            subprocess.run(argv, check=False, capture_output=True)
            if way == "rw":
                (disk / "ballast").unlink(missing_ok=True)
        return f"disk {way}"

    def clock(self) -> str:
        """Sentinel's wall clock jumps, while it runs."""
        shift = self._chance.choice([3600, -3600, 90, -90, 30 * 86400])
        self.world.clock.set(shift)
        return f"clock {shift:+d}s"

    def job(self) -> str:
        """Plain, array and heterogeneous ones on shared nodes, each with a daemon of its own."""
        self._number += 1
        kind = self._chance.choice(["plain", "array", "het"])
        arguments = f"sleep {86_000 + self._number}"
        script = f"#!/bin/sh\nsetsid {arguments} &\nexec {arguments}\n"
        own = {"plain": [], "array": ["--array=0-1"], "het": ["-n1", ":", "-n1"]}[kind]
        where = ["--exclude=node-3", "-n1"]
        done = self.world.lab.run(["sbatch", "--parsable", *where, *own], stdin=script, limit=60)
        if done.returncode:
            return f"job {kind}: {done.stderr.strip()[:80]}"
        job, wanted = done.stdout.strip().partition(";")[0], 4 if kind == "array" else 2
        deadline = time.monotonic() + 5
        while processes(arguments) < wanted and time.monotonic() < deadline:
            time.sleep(0.1)
        if processes(arguments) == wanted:
            self.oracle.jobs[job] = (arguments, wanted)
        else:
            self.world.lab.run(["scancel", job])
        if len(self.oracle.jobs) > 3:
            old = self._chance.choice(sorted(self.oracle.jobs))
            del self.oracle.jobs[old]  # its daemons stay: what is left over may be ended
            self.world.lab.run(["scancel", old])
        return f"job {kind} {job}"

    def checkpoint(self) -> str:
        """A training saves, goes back to an older one, or both."""
        root = self.world.folder / "ckpt"
        there = sorted(int(p.name[4:]) for p in root.glob("step*") if p.name[4:].isdigit())
        for number in range(max(there, default=0) + 1, max(there, default=0) + 4):
            folder = root / f"step{number}"
            folder.mkdir()
            (folder / "weights").write_bytes(os.urandom(1000))
            there.append(number)
        kept = self._chance.choice(there)
        self.oracle.spare = set()
        target = root / f"step{kept}"
        fresh = root / ".latest.new"
        fresh.write_text(
            self._chance.choice([f"step{kept}", f"{root}/step{kept}", f"./step{kept}/"])
        )
        fresh.replace(root / "latest")
        if target.exists():  # else it went before anything named it
            self.oracle.spare = {target / "weights", root / f"step{there[-1]}/weights"}
        else:
            (root / "latest").unlink()
        return f"checkpoint latest={kept}"

    def crash(self) -> str:
        """A node loses its power; jobs do not run there."""
        if not self._crashed:
            self.settle_ambush()
            self.world.lab.crash_node(3)
            self.oracle.unseen.add("node-3")
            self.oracle.holds.pop("node-3", None)
            self._crashed = True
        return "crash node-3"

    def _await_node(self, node: str) -> None:
        """Until it is registered again."""
        away = {"NOT_RESPONDING", "UNKNOWN"}
        wait_until(
            lambda: away.isdisjoint(
                self.world.lab.node(node)["State"].replace("*", "+NOT_RESPONDING").split("+")
            ),
            f"{node} up",
            60,
        )

    def _names(self) -> list[str]:
        return [n.name for n in self.world.lab.nodes if n.name not in self.oracle.unseen]

    def _idle_names(self) -> list[str]:
        """Those at which nobody lies in wait: who came last is to be known."""
        waiting = self._ambushed[0] if self._ambushed else ""
        return [name for name in self._names() if name != waiting]

    def _note(self) -> str:
        self._number += 1
        return f"{self._chance.choice(NOTES)} {self._number}"

    def _update(self, *words: str) -> bool:
        return self.world.lab.run(["scontrol", "update", *words], limit=60).returncode == 0

    def _resume(self, node: str) -> None:
        flags = self.world.lab.node(node)["State"].split("+")
        if "DRAIN" in flags or "DOWN" in flags:
            self._update(f"nodename={node}", "state=resume")
