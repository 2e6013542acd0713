"""Whether this machine can run the lab, and the one place that says why not."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

PROGRAMS = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb-server",
    "munged": "munge",
    "sshd": "openssh-server",
    "ip": "iproute2",
    "unshare": "util-linux",
    "useradd": "passwd",
}
"""Program to the Debian package that brings it."""

SLURM = os.environ.get("SENTINEL_SLURM", "")
"""The folder of a Slurm that stands in for the system's (`python -m tests.versions run`): its bin and
sbin come first, for daemons, on nodes and through ssh."""

SLURM_BIN = f"{SLURM}/bin" if SLURM else "/usr/bin"
"""Where squeue and the like lie: for stand-ins that go on to the real one."""

_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
SYSTEM_PATH = f"{SLURM}/bin:{SLURM}/sbin:{_SYSTEM}" if SLURM else _SYSTEM


def why_no_lab() -> str | None:
    """None where the lab can run, else one line that says what is missing."""
    if os.geteuid() != 0:
        return "the lab (mark `lab`) needs root: it makes network and process namespaces"
    if reason := why_no_fuse():
        return reason
    missing = {PROGRAMS[program] for program in absent(PROGRAMS)}
    return f"the lab needs Debian's {' '.join(sorted(missing))}" if missing else None


def why_no_root() -> str | None:
    """None for root, else one line that says what the test is about."""
    return (
        None if os.geteuid() == 0 else "needs root (mark `root`): mounts, other users, namespaces"
    )


def why_no_fuse() -> str | None:
    """None where FUSE mounts can be made, else one line that says what is missing."""
    if reason := why_no_root():
        return reason
    return None if Path("/dev/fuse").exists() else "FUSE needs /dev/fuse (modprobe fuse)"


def absent(programs: Iterable[str]) -> list[str]:
    """The programs that are not installed, sbin included."""
    return [name for name in programs if find(name) is None]


def find(program: str) -> str | None:
    """Full path of a program; ordinary users' PATH lacks sbin on Debian."""
    return shutil.which(program, path=SYSTEM_PATH)


def require_program(program: str, package: str) -> str:
    """Full path of a program; where it is not there, the test is skipped with Debian's package."""
    found = find(program)
    if found is None:
        skip(f"needs {program}: apt-get install {package}")
    return found


def skip(why: str) -> NoReturn:
    """Skip the test that runs, with what is missing, or fail with it under SENTINEL_LAB=required."""
    import pytest  # the lab's shell runs without

    if required():
        pytest.fail(f"{why} (SENTINEL_LAB=required)", pytrace=False)
    pytest.skip(why)


def required() -> bool:
    """Whether a missing lab is a failure instead of a skip: SENTINEL_LAB=required."""
    return os.environ.get("SENTINEL_LAB") == "required"
