"""The lab with a sentinel that looks after its drained nodes, and what may befall these."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.needs import SLURM_BIN
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes
from tests.service.watch import Watch

NODE = "node-2"
CONFIG = """\
remote:
  ssh_options: "-F {ssh} -o UserKnownHostsFile={known}"
  timeout: {timeout}
  connect_timeout: 2s
guard: {{breaker: {{share: 100%}}{guard}}}
checks:
  drained: {{kind: drained, every: 1s, {keys}}}
channels:
  book: {{kind: file, path: "{folder}/book.jsonl"}}
"""
CLEAN = """\
#!/bin/sh
case "$*" in
*query-compute-apps*) exit 0 ;;
"-q -x") echo '<nvidia_smi_log>'; for g in 0 1 2 3 4 5 6 7; do echo "<gpu id=\\"$g\\"></gpu>"; done
    echo '</nvidia_smi_log>' ;;
esac
"""
KILL = "Kill task failed"


SCONTROL = """\
#!/bin/sh
# $1 is update, or -o (show). Each update is counted.
[ "$1" = update ] && echo "$*" >>{folder}/updates
{then}
exec {bin}/scontrol "$@"
"""


class Ward:
    """The lab with one sentinel that looks after its drained nodes."""

    def __init__(self, lab: Lab, watch: Watch, nodes: Nodes) -> None:
        self.lab, self.watch, self.nodes = lab, watch, nodes
        self.configure()

    def configure(
        self, more: str = "", timeout: str = "20s", limits: str = "", guard: str = ""
    ) -> None:
        keys = f"undrain: true, xids: false, limits: {{cooldown: 0s, share: 100%{limits}}}{more}"
        ssh = {"ssh": self.nodes.config, "known": self.nodes.known}
        self.watch.configure(CONFIG, keys=keys, timeout=timeout, guard=guard, **ssh)

    def tick(self, code: int = 0) -> None:
        done = self.watch.say("tick", "--all", PATH=self.path)
        assert done.returncode == code, done.stderr

    def tick_until(self, ready: Callable[[], object], code: int = 0) -> None:
        """Passes until it is so: any process of this machine may be in state D for the moment of a look,
        on a busy one in several in a row. `code` is that of the last."""

        def passed() -> bool:
            done = self.watch.say("tick", "--all", PATH=self.path)
            if not ready():
                return False
            assert done.returncode == code, done.stderr
            return True

        wait_until(passed, lambda: f"that; {self.told()}; {self.log()}", 60)

    def wrap(self, then: str) -> None:
        """What the scontrol on sentinel's PATH does before it does what it was told."""
        tool = self.watch.folder / "bin/scontrol"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(SCONTROL.format(bin=SLURM_BIN, folder=self.watch.folder, then=then))
        tool.chmod(0o755)

    @property
    def path(self) -> str:
        return f"{self.watch.folder}/bin:{os.environ['PATH']}"

    @property
    def updates(self) -> int:
        """How often Slurm was told to change something."""
        counted = self.watch.folder / "updates"
        return len(counted.read_text().splitlines()) if counted.exists() else 0

    def drain(self, node: str = NODE, reason: str = KILL) -> None:
        update = ["scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}"]
        self.lab.ask(update)
        self.lab.wait_node(node, "DRAIN")

    def drained(self, node: str = NODE) -> bool:
        return "DRAIN" in self.lab.node(node)["State"].split("+")

    def finding(self, node: str = NODE) -> dict[str, Any]:
        """What a one-shot says of the node now."""
        said = json.loads(self.watch.say("check", "drained", "--json").stdout)
        return next(f for f in said["findings"] if f["subject"] == node)

    def seen(self, node: str = NODE) -> str:
        """What the last pass found wrong there, told or not."""
        alerts = self.watch.status()["alerts"]
        return " | ".join(alert["summary"] for alert in alerts if alert["subject"] == node)

    def log(self, node: str = NODE) -> list[dict[str, Any]]:
        """Ledger and audit log of the node."""
        events: list[dict[str, Any]] = json.loads(
            self.watch.say("nodes", "list", "--history", node, "--json").stdout
        )
        return events

    def acted(self, node: str = NODE) -> list[str]:
        return [e["what"] for e in self.log(node) if e["what"] != "seen"]

    def told(self) -> str:
        return " | ".join(line["summary"] for line in self.watch.book)


def stuck(ward: Ward) -> None:
    """A process in state D on the node that belongs to no job."""
    ward.lab.fuse.hold("open")
    ward.nodes.on(NODE, f"setsid cat {ward.lab.fuse.point}/data >/dev/null 2>&1 &")
    wait_until(ward.lab.fuse.withheld, "the hang")
    ward.nodes.on(NODE, "pkill -9 -x cat")


def daemon(seconds: int) -> str:
    """A job that leaves a process behind which ignores SIGTERM."""
    return f"setsid sh -c 'trap \"\" TERM; exec sleep {seconds}' >/dev/null 2>&1 & sleep 1"


def alive(ward: Ward, command: str) -> bool:
    return bool(ward.nodes.on(NODE, f"ps -e -o state=,args= | grep '^[^Z] {command}$'").stdout)


@contextmanager
def login(ward: Ward, user: User, command: str) -> Iterator[None]:
    """That user's login by ssh, in which the command runs."""
    subprocess.run(["usermod", "-p", "*", user.name], check=True)  # sshd refuses a locked account
    argv = ["ssh", "-F", str(ward.lab.ssh_config), "-l", user.name, NODE, command]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as process:
        yield
        process.kill()
