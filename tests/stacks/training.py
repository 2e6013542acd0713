"""A training that hangs on the lab's nodes, one rank elsewhere than the others."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab.accounts import User
from tests.lab.client import Done
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until

PROGRAM = """\
import ctypes, os, sys, time


def all_reduce():
    time.sleep(10_000)


def load_batch(how):
    if how == "fuse":
        open(sys.argv[3])
    time.sleep(10_000)


def train():
    rank, odd = int(os.environ["SLURM_PROCID"]), int(sys.argv[1])
    if sys.argv[2] == "closed":
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    with open(f"{os.environ['UP']}/{rank}", "w") as file:
        file.write(str(os.getpid()))
    load_batch(sys.argv[2]) if rank == odd else all_reduce()


train()
"""
LINES = {"rest": 5, "load": 11, "open": 10}
"""Lines of PROGRAM where ranks stand."""


class Training:
    """A job of the lab; `odd` is the rank that is elsewhere, `how` what it does there.

    how: "" sleeps in load_batch, "fuse" opens a file that never opens, "closed" forbids all
    ranks to be traced. `dumps`: where it was told to write the flight recorder.
    """

    def __init__(
        self,
        lab: Lab,
        *,
        each: int = 2,
        odd: int = 5,
        how: str = "",
        user: User | None = None,
        python: str = sys.executable,
        name: str = "llm",
        dumps: str = "",
    ) -> None:
        self.lab, self.count, self.each = lab, each * len(lab.nodes), each
        self.up = lab.work / f"up-{len(list(lab.work.iterdir()))}"
        self.up.mkdir()
        self.up.chmod(0o1777)
        program = lab.work / "train.py"
        program.write_text(PROGRAM)
        words = f"{python} -I -S -u {program} {odd} '{how}' {lab.fuse.point}/data"
        script = f"export UP={self.up} TORCH_FR_DUMP_TEMP_FILE={dumps}\nexec srun -O -n{self.count} {words}"
        self.job = lab.sbatch(script, name=name, user=user, nodes=len(lab.nodes))
        wait_until(lambda: self.started == self.count, "all ranks at their places", 30.0)

    @property
    def started(self) -> int:
        return sum(1 for file in self.up.iterdir() if file.stat().st_size)

    def pid(self, rank: int) -> str:
        """Its number on its own node."""
        return (self.up / str(rank)).read_text()

    def on(self, rank: int, script: str) -> str:
        """Run it as root on the node of that rank; what it prints."""
        node = f"node-{rank // self.each}"
        return self.lab.ask(["ssh", "-F", str(self.lab.ssh_config), node, script])

    def stacks(self, *words: str, user: User | None = None, config: Path | None = None) -> Done:
        """`sentinel stacks` as a person types it; root where no user is given."""
        where = ["-c", str(config)] if config else []
        argv = [sys.executable, "-m", "sentinel", "stacks", self.job, *where, *words]
        home = {"HOME": str(user.home), "USER": user.name} if user else {}
        person = as_user(user, argv) if user else argv
        return self.lab.run(person, limit=60, env={"COLUMNS": "80", **home})

    def json(self, *words: str, config: Path | None = None) -> Any:
        return json.loads(self.stacks("--json", *words, config=config).stdout)


def as_user(user: User, argv: Sequence[str]) -> list[str]:
    """The command as run by that user, who may read this interpreter wherever it lies."""
    caps = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
    return [
        "setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", *caps, *argv,
    ]  # fmt: skip
