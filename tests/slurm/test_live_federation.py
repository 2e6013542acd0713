"""Two real clusters with one slurmdbd as a federation, whose view of itself is that of all."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.clock import SystemClock
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.lab import needs
from tests.lab.cluster import Lab
from tests.lab.daemons import Daemon
from tests.lab.network import CONTROLLER, FIRST_NODE
from tests.lab.waiting import wait_until

FURTHER = 500  # added to the ports
OWN = ("StateSave", "SlurmctldPid", "SlurmctldLog", "SlurmdSpool", "SlurmdPid", "SlurmdLog")


class West:
    """A cluster of one node beside the lab's own: its daemons run on the lab's hosts."""

    def __init__(self, lab: Lab) -> None:
        self.folder = lab.folder / "west"
        for name in ("state", "spool/west-0", "log"):
            (self.folder / name).mkdir(parents=True)
        lines = (lab.folder / "slurm.conf").read_text().splitlines()
        text = "\n".join(filter(None, (self._line(line, lab.folder) for line in lines)))
        (self.folder / "slurm.conf").write_text(f"{text}\n")
        shutil.copy(lab.folder / "cgroup.conf", self.folder)
        self.env = {**lab.env, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self._lab = lab
        self._slurmctld = self._start(CONTROLLER, "controller", "slurmctld", "-D")
        self._start(FIRST_NODE, "west-0", "slurmd", "-D", "-c", "-N", "west-0")
        wait_until(lambda: "idle" in self.sinfo(), lambda: f"west: {self.sinfo()}", 60)

    def sinfo(self) -> str:
        done = subprocess.run(["sinfo", "-h"], env=self.env, capture_output=True, text=True)
        return done.stdout + done.stderr

    def kill(self) -> None:
        """Its slurmctld, at once."""
        self._slurmctld.kill(signal.SIGKILL)

    def _start(self, host: int, name: str, *argv: str) -> Daemon:
        space = self._lab._net.namespace(host)
        inside = f'hostname {name}; exec env SLURM_CONF="$0" "$@"'
        apart = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words = ["ip", "netns", "exec", space, *apart, "sh", "-c", inside]
        log = self.folder / "log" / f"{argv[0]}.out"
        return self._lab._daemons.start(argv[0], [*words, self.env["SLURM_CONF"], *argv], log)

    def _line(self, line: str, folder: Path) -> str:
        key, _, value = line.partition("=")
        if key == "ClusterName":
            return "ClusterName=west"
        if key in ("SlurmctldPort", "SlurmdPort"):
            return f"{key}={int(value) + FURTHER}"
        if key.startswith(OWN):
            return line.replace(str(folder), str(self.folder))
        named = re.sub(r"\bnode-(0|\[0-0\])", "west-0", line)
        return "" if key == "GresTypes" else re.sub(r"Gres=\S+", "", named)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """One node, with a slurmdbd that both share."""
    if missing := needs.why_no_lab():
        needs.skip(missing)
    with Lab(nodes=1, accounting=True, FederationParameters="fed_display") as lab:
        yield lab


@pytest.mark.lab
@pytest.mark.long
def test_a_siblings_jobs_are_told_by_its_own_controller_alone(lab: Lab, tmp_path: Path) -> None:
    """squeue itself shows west's job here, and without a word no more when west's slurmctld is dead.

    Which cluster becomes the origin of a job is Slurm's choice. Only the origin lists it as REVOKED
    among the jobs that are not over (seen on 22.05 and 26.05).
    """

    def jobs(environ: dict[str, str]) -> dict[str, str]:
        port = SlurmSnapshot(SlurmClient(environ=environ), SystemClock(), users=None, max_age=0.0)
        return {job.job_id: job.state for job in port.jobs() if job.state != "REVOKED"}

    def told(environ: dict[str, str], name: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "sentinel", "check", "job", "--name", name]
        env = {**environ, "HOME": str(tmp_path)}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    west, own = West(lab), f"lab{lab.index}"
    lab.ask(["sacctmgr", "-i", "add", "federation", "fed", f"clusters={own},west"])
    asked = ["scontrol", "show", "federation"]
    wait_until(lambda: "Synced:Yes" in lab.run(asked).stdout, "a federation", 60)
    here = lab.sbatch("sleep 300", clusters=own, ntasks=4)
    lab.wait_state(here, "RUNNING")
    away = lab.sbatch("sleep 300", name="away", clusters=f"{own},west")
    # Without --local newer ones tell west's state of it.
    wait_until(lambda: jobs(west.env).get(away) == "RUNNING", lambda: f"{jobs(west.env)}", 60)
    there = lab.sbatch("sleep 300", name="there", clusters="west")
    wait_until(lambda: lab.states(there) == ["RUNNING"], lambda: f"{lab.states(there)}", 60)
    assert int(there) >> 26 == 2, "the id tells the cluster where it was submitted"

    assert jobs(lab.env) == {here: "RUNNING"}
    assert jobs(west.env) == {away: "RUNNING", there: "RUNNING"}
    code, said = told(lab.env, "away")
    assert (code, f"job {away} is REVOKED: it went to another cluster" in said) == (3, True), said
    assert told(west.env, "away")[0] == 0
    port = SlurmSnapshot(SlurmClient(environ=lab.env), SystemClock(), users=None, max_age=0.0)
    assert port.job_end(there) is None
    assert [node.name for node in port.nodes()] == ["node-0"]
    west.kill()
    wait_until(lambda: there not in lab.ask(["squeue", "-h", "-o", "%A"]).split(), "none", 60)
    assert jobs(lab.env) == {here: "RUNNING"}
    assert told(lab.env, "away")[0] == 3
