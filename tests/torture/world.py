"""The lab, one sentinel that may do all it can, and what stands between it and Slurm."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.lab.cluster import Lab
from tests.lab.hook import HookServer
from tests.lab.needs import SLURM_BIN
from tests.lab.tied import tied
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes
from tests.service.clock import FalseClock
from tests.service.ward import CLEAN

CONFIG = """\
cluster: lab
state: {folder}/disk/state
remote:
  ssh_options: "-F {ssh} -o UserKnownHostsFile={known}"
  timeout: 20s
  connect_timeout: 2s
flapping: {{changes: 0}}
guard: {{breaker: {{nodes: 1000, share: 100%, cooldown: 1s}}}}
checks:
  drained: {{kind: drained, every: 2s, undrain: true, clean_up: true, xids: false,
    slurmctld_log: "{log}",
    limits: {{cooldown: 0s, share: 100%, per_hour: 1000, per_node: "900 in 7d"}}}}
  out: {{kind: nodes, every: 2s, each: true, flapping: "900 in 1d"}}
  old: {{kind: clean, every: 2s, root: "{folder}/ckpt", match: 'step(\\d+)', older_than: 1s,
    remove: true, limits: {{per_hour: 1000}}}}
channels:
  hook: {{kind: webhook, url: "{url}", timeout: 2s}}
"""

TOOL = """\
#!/bin/sh
# {name}, as sentinel finds it: what the harness says in `mode` happens first.
cd {folder}
: >asked
case "$(cat mode)" in
slow) sleep 3 ;;
cut) {bin}/{name} "$@" | head -c 60; exit 0 ;;
empty) exit 0 ;;
dead) echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1 ;;
esac
case "{name} $*" in
*"$(cat when)"*) mv ambush ambush.taken 2>/dev/null && {{
    {bin}/scontrol update $(cat ambush.taken) && mv ambush.taken ambush.done; }} ;;
esac
exec {bin}/{name} "$@"
"""


class World:
    """Up inside `with up()`. `clock` is sentinel's wall clock; `run` starts sentinel, `mode` says what its Slurm commands do."""

    def __init__(self, folder: Path, package: Path | None) -> None:
        self.folder, self._package = folder, package
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        self.clock = FalseClock(folder)

    @contextmanager
    def up(self) -> Iterator[World]:
        """The cluster and the receiver of messages; sentinel is not started."""
        disk = self.folder / "disk"
        for place in (disk, self.folder / "bin", self.folder / "ssh", self.folder / "ckpt"):
            place.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=32M", "tmpfs", str(disk)]
        subprocess.run(mount, check=True)
        try:
            with Lab() as self.lab, HookServer() as self.hook:
                for node in self.lab.nodes:
                    (node.bin / "nvidia-smi").write_text(CLEAN)
                self.nodes = Nodes(self.lab, self.folder / "ssh")
                self._prepare()
                yield self
                self.kill()
        finally:
            subprocess.run(["umount", "--lazy", str(disk)], check=False)

    def _prepare(self) -> None:
        for name in ("scontrol", "squeue"):
            tool = self.folder / "bin" / name
            tool.write_text(TOOL.format(bin=SLURM_BIN, name=name, folder=self.folder))
            tool.chmod(0o755)
        self.mode("well")
        self.ambush("never", "")
        (self.folder / "sentinel.yaml").write_text(
            CONFIG.format(
                folder=self.folder,
                ssh=self.nodes.config,
                known=self.nodes.known,
                url=self.hook.url,
                log=self.lab.folder / "log/slurmctld",
            )
        )
        (self.folder / "sentinel.yaml").chmod(0o600)
        argv = [sys.executable, "-m", "sentinel", "config", "check", "-c", "sentinel.yaml"]
        subprocess.run(argv, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def mode(self, word: str) -> None:
        """What scontrol and squeue do for sentinel from now on."""
        fresh = self.folder / "mode.new"
        fresh.write_text(word)
        fresh.replace(self.folder / "mode")

    def ambush(self, when: str, update: str) -> None:
        """An administrator's `scontrol update UPDATE` right before the next command of sentinel that
        holds these words."""
        for name in ("ambush", "ambush.taken", "ambush.done"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "when").write_text(when)
        if update:
            (self.folder / "ambush").write_text(update)

    @property
    def ambushed(self) -> bool:
        """Whether that has happened."""
        return (self.folder / "ambush.done").exists()

    def run(self) -> None:
        """Start sentinel."""
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        env = {**self.lab.env, "PATH": path, "HOME": str(self.folder), **self.clock.env}
        if self._package:
            env["PYTHONPATH"] = str(self._package)
        argv = [sys.executable, "-m", "sentinel", "run", "-c", "sentinel.yaml"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                tied(argv), stdout=log, stderr=log, env=env, cwd=self.folder, start_new_session=True
            )

    def wait_until_it_looks(self) -> None:
        """Until it has asked Slurm once and watched for a while: what was before, it cannot know."""
        asked = self.folder / "asked"
        wait_until(asked.exists, "sentinel's first question to Slurm", 60)
        time.sleep(5)

    def kill(self) -> None:
        """SIGKILL, wherever it is; what it had started lives on."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait(10)
            self._process = None

    def said(self) -> list[str]:
        """The end of what sentinel wrote on its standard error, for people who look for a cause."""
        return (self.folder / "log").read_text(errors="replace").splitlines()[-15:]
