"""Doctor on reboots: whether Slurm has a program for them, and waits long enough."""

import pytest

from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.doctor.nodes import MIN_BOOT_S, check_reboots
from sentinel.slurm.control import SlurmConfig, read_config

SHOWN = b"""\
Configuration data as of 2026-11-21T05:00:00
ClusterName             = lab
RebootProgram           = %s
ResumeTimeout           = %s
SLURM_VERSION           = 22.05.8
SlurmUser               = slurm(64030)
"""


class Snapshot:
    """A Slurm of that configuration."""

    def __init__(self, config: SlurmConfig | None) -> None:
        self._config = config

    def config(self) -> SlurmConfig:
        if self._config is None:
            raise CannotTell("slurmctld does not answer")
        return self._config


@pytest.mark.parametrize(
    ("program", "timeout", "status", "says"),
    [
        (b"/sbin/reboot", b"%d sec" % MIN_BOOT_S, Status.OK, "/sbin/reboot, ResumeTimeout 300s"),
        (b"/sbin/reboot", b"%d sec" % (MIN_BOOT_S - 1), Status.WARNING, "ResumeTimeout is 299s"),
        (b"/sbin/reboot", b"60 sec", Status.WARNING, "ResumeTimeout is 60s"),
        (b"(null)", b"600 sec", Status.WARNING, "no RebootProgram"),
    ],
)
def test_what_a_reboot_needs(program: bytes, timeout: bytes, status: Status, says: str) -> None:
    """As scontrol show config prints it; the default of 60 s is too short for a GPU node."""
    item = check_reboots(Snapshot(read_config(SHOWN % (program, timeout))))  # type: ignore[arg-type]
    assert item.status is status
    assert says in item.text
    assert bool(item.remedy) is (status is not Status.OK)


def test_a_slurm_that_does_not_answer() -> None:
    """Unknown, in its words."""
    item = check_reboots(Snapshot(None))  # type: ignore[arg-type]
    assert (item.status, item.text) == (Status.UNKNOWN, "slurmctld does not answer")
