"""What is so: by Slurm, by /proc, by the files, by what the receiver took. Nothing of sentinel's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.torture.world import World

KINDS = ("wrong change", "healthy process ended", "wrong deletion", "lost message", "false message")


class Harm(NamedTuple):
    """One thing that must not be."""

    kind: str
    text: str


class Oracle:
    """`holds`: what an administrator wrote on nodes that have to stay drained; `jobs`: what has to run,
    by job the arguments of its processes and how many; `spare`: files that have to stay."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.holds: dict[str, str] = {}
        self.jobs: dict[str, tuple[str, int]] = {}
        self.spare: set[Path] = set()
        self.unseen: set[str] = set()
        """Nodes about which nothing is asked: the harness has crashed them."""

    def lasting(self) -> Iterator[Harm]:
        """What can never be made good again."""
        for path in self.spare:
            if not path.exists():
                yield Harm("wrong deletion", str(path))
        for job, (arguments, wanted) in self.jobs.items():
            found = processes(arguments)
            if found < wanted:
                yield Harm("healthy process ended", f"job {job}: {found} of {wanted} '{arguments}'")

    def now(self) -> Iterator[Harm]:
        """What is wrong at this moment, and may be put right while sentinel runs."""
        last = self._last_messages()
        for node in self._world.lab.nodes:
            if node.name in self.unseen:
                continue
            seen = self._world.lab.node(node.name)
            drained = "DRAIN" in seen["State"].split("+")
            reason, hold = seen.get("Reason", ""), self.holds.get(node.name)
            if hold and not (drained and hold in reason):
                yield Harm("wrong change", f"{node.name}: {hold}: is {seen['State']} {reason}")
            if drained and "sentinel:" in reason and not (hold and hold in reason):
                yield Harm("wrong change", f"{node.name}: nobody wanted: {reason}")
            told = last.get(node.name, "ok") != "ok"
            if drained and not told:
                yield Harm("lost message", f"{node.name} is drained ({reason}); last told: well")
            if told and not drained:
                yield Harm("false message", f"{node.name} is {seen['State']}; last told: out")

    def _last_messages(self) -> dict[str, str]:
        """The status in the last message about each node that is no note about an action."""
        last = {}
        for post in self._world.hook.posts:
            body = json.loads(post.body)
            if body.get("check") == "out" and body.get("reason") != "action":
                ended = body.get("reason") in ("resolved", "gone")
                last[body["subject"]] = "ok" if ended else body["status"]
        return last


def processes(arguments: str) -> int:
    """How many processes of this machine, its nodes' too, have exactly these arguments."""
    wanted = arguments.encode().replace(b" ", b"\0") + b"\0"
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += (entry / "cmdline").read_bytes() == wanted
            except OSError:
                continue
    return found
