"""From a package in dist/ to the first mail: how long it takes a stranger at three kinds of site.

`python -m tests.packaging.first_mail` (make first-mail) types what the documentation says, without a
pause, on clean Debians that boot, each with a Slurm of one node, a running training and a mail server.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sentinel import __version__
from tests.lab.slurmconf import DEFAULTS
from tests.lab.systemd import ROOT, why_no_systemd
from tests.lab.tied import tied
from tests.lab.waiting import wait_until
from tests.packaging.lives import KINDS, find_lent_python
from tests.packaging.machine import Machine

DIST, SYSTEMS = ROOT / "dist", ROOT / "build/systems"
ADDRESS, RELAY = "you@example.org", "mail.example.org"
HOST = "192.0.2.1"
"""Names of 127.0.0.1 are not found where a machine has no other address: AI_ADDRCONFIG of getaddrinfo(3)."""
OWN_DEBIAN = {(3, 11): "site12", (3, 13): "site13"}.get(sys.version_info[:2], "")
"""That whose Python the zipapp fits."""
PREPARE = f"""\
useradd --create-home --shell /bin/bash alice
host=$(hostname)
printf '%s\n' "127.0.0.1 localhost" "{HOST} $host {RELAY}" >/etc/hosts
mkdir -p /etc/slurm /var/lib/slurm/state /var/lib/slurm/spool /run/munge
cat >/etc/slurm/slurm.conf <<end
ClusterName=site
SlurmctldHost=$host
StateSaveLocation=/var/lib/slurm/state
SlurmdSpoolDir=/var/lib/slurm/spool
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
{"".join(f"{key}={value}{chr(10)}" for key, value in DEFAULTS.items() if key != "GresTypes")}\
NodeName=$host CPUs=1 RealMemory=100
PartitionName=main Nodes=$host Default=YES
end
case $(slurmctld -V) in *\\ 22.*) kind=cgroup/v1 ;; *) kind=disabled ;; esac
echo "CgroupPlugin=$kind" >/etc/slurm/cgroup.conf
systemctl restart munge cron
slurmctld && slurmd
"""
TRAINING = """\
#!/bin/sh
#SBATCH --job-name=training
while [ ! -e ~/end ]; do n=$((n + 1)); echo "iteration $n loss 2.1"; sleep 1; done
echo 'RuntimeError: the end of it'
exit 1
"""
SERVE = """\
sentinel config init /etc/sentinel/sentinel.yaml
chgrp sentinel /etc/sentinel/sentinel.yaml && chmod 640 /etc/sentinel/sentinel.yaml
systemctl enable --now sentinel
"""
ADD_MAIL = f"""\
sentinel add mail {ADDRESS} --smtp {RELAY} -c /etc/sentinel/sentinel.yaml
systemctl reload sentinel
"""


@dataclass(frozen=True)
class Way:
    """From one package to the first mail. `{}` is where the package lies."""

    site: str
    pattern: str
    """Its name in dist/."""
    system: str
    install: str
    set_up: str
    user: str = "root"
    python: str = ""
    """The version of an interpreter of this machine that is lent."""


def describe_user(pattern: str, system: str, install: str, command: str) -> Way:
    """Without rights, on a login node."""
    set_up = f"{command} init --yes --mail {ADDRESS} --smtp {RELAY}"
    return Way("user on a login node", pattern, system, install, set_up, user="alice")


def describe_administrator(kind: str, system: str, install: str) -> Way:
    site = f"administrator, {kind}"
    python = KINDS[kind].python
    return Way(site, KINDS[kind].pattern, system, install, SERVE + ADD_MAIL, python=python)


WAYS = (
    describe_user(
        "slurm_sentinel-*.whl",
        OWN_DEBIAN or "site13",
        "python3 -m venv venv && venv/bin/pip install -q --no-index --find-links /packages slurm-sentinel",
        "venv/bin/sentinel",
    ),
    describe_user("sentinel.pyz", OWN_DEBIAN, "install -m 755 {} sentinel", "./sentinel"),
    describe_administrator("deb for Debian 13", "site13", "apt-get install -qq {}"),
    describe_administrator("deb for Debian 12", "site12", "apt-get install -qq {}"),
    describe_administrator("rpm", "site12", KINDS["rpm"].install),
    describe_administrator("zipapp", OWN_DEBIAN, KINDS["zipapp"].install),
)


class MailServer:
    """A real one (aiosmtpd) of this environment, on HOST of the machine; it prints each mail."""

    def __init__(self, machine: Machine, log: Path) -> None:
        enter = ["nsenter", "-t", str(machine.find_init()), "--net", "--"]
        subprocess.run([*enter, "ip", "address", "add", HOST, "dev", "lo"], check=True)
        serve = ["-u", "-m", "aiosmtpd", "-n", "-l", f"{HOST}:25"]
        handler = ["-c", "aiosmtpd.handlers.Debugging", "stdout"]
        self._argv = tied([*enter, sys.executable, *serve, *handler])
        self._log = log

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._log.open("wb") as log:
            process = subprocess.Popen(self._argv, cwd="/", stdout=log, stderr=log)
            try:
                yield
            finally:
                process.terminate()
                process.wait(10)

    def list_subjects(self) -> list[str]:
        """What each mail is about that came whole: the host for a test message, else a job or a path."""
        whole, _, _ = self._log.read_text(errors="replace").rpartition("END MESSAGE")
        heads = [line.partition(": ") for line in whole.splitlines()]
        return [text for name, _, text in heads if name == "X-Sentinel-Subject"]


def say_as(machine: Machine, user: str, script: str) -> str:
    """What it prints for the user, in their home."""
    shell = ["sh", "-ec", "cd; " + script]
    done = machine.run(*(shell if user == "root" else ["runuser", "-u", user, "--", *shell]))
    if done.returncode:
        raise RuntimeError(f"{user}: {script}\n{done.stdout}{done.stderr}")
    return done.stdout


def take_way(way: Way, folder: Path, package: str, machine: Machine) -> str:
    """The row of the table."""
    server = MailServer(machine, folder / "mails")
    machine.say(PREPARE)
    with server.running():
        (folder / "packages/training.sh").write_text(TRAINING)
        is_idle = "sinfo --noheader --states=idle | grep -q ."
        wait_until(lambda: machine.run("sh", "-c", is_idle).returncode == 0, "a node", 60)
        say_as(machine, "alice", "sbatch /packages/training.sh")
        runs = "squeue --noheader --states=running | grep -q ."
        wait_until(lambda: machine.run("sh", "-c", runs).returncode == 0, "a training", 60)

        began = time.monotonic()
        say_as(machine, way.user, way.install.format(package))
        installed = time.monotonic() - began
        said = say_as(machine, way.user, way.set_up.format(package))
        print(said, file=sys.stderr)
        wait_until(server.list_subjects, lambda: said, 60)
        mailed = time.monotonic() - began
        died = time_death(machine, server) if way.user == "alice" else ""
    typed = way.install.format(Path(package).name).splitlines()[-1]
    times = f"{installed:.0f} s | {mailed:.0f} s | {died}"
    return f"| {way.site} | `{typed}` | {times} |"


def time_death(machine: Machine, server: MailServer) -> str:
    """How long the mail about the training that dies takes to come."""
    began = time.monotonic()
    say_as(machine, "alice", "touch end")
    wait_until(lambda: "training" in server.list_subjects(), "its mail", 300)
    return f"{time.monotonic() - began:.0f} s"


def collect_wheels(wheel: Path, system: str, folder: Path) -> None:
    """What the user has copied there: the wheel and all that it needs, for the Python of that system."""
    version = {"site12": "3.11", "site13": "3.13"}[system]
    command = [sys.executable, "-m", "pip", "download", "-qq", "--only-binary", ":all:"]
    options = ["--python-version", version, "--dest", str(folder)]
    subprocess.run([*command, *options, str(wheel)], check=True)


def try_way(way: Way) -> str:
    found, lent = [*DIST.glob(way.pattern)], find_lent_python(way.python)
    if not found or not way.system or (way.python and not lent):
        return f"| {way.site} | {way.pattern}: left out, not in dist/ or no fitting Python here | | | |"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        packages = folder / "packages"
        packages.mkdir()
        if found[0].suffix == ".whl":
            collect_wheels(found[0], way.system, packages)
        (packages / found[0].name).write_bytes(found[0].read_bytes())
        words = [f"DESTDIR={packages / 'files'}", "UNITDIR=/usr/lib/systemd/system"]
        stage = ["make", "install-files", *words]  # packages bring theirs, the zipapp does not
        subprocess.run(stage, cwd=ROOT, check=True, capture_output=True)
        with Machine(SYSTEMS / way.system, folder / "machine", packages, lent) as machine:
            return take_way(way, folder, f"/packages/{found[0].name}", machine)


def main() -> None:
    if missing := why_no_systemd():
        sys.exit(f"first-mail: {missing}")
    print(f"version {__version__}")
    print("| site | installed by | installed after | first mail after | mail about a death after |")
    print("|---|---|---|---|---|", flush=True)
    for way in WAYS:
        print(try_way(way), flush=True)


if __name__ == "__main__":
    main()
