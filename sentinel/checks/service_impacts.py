"""What fails while a service does not run, for the services that clusters need most."""

from __future__ import annotations

from collections.abc import Mapping

_SLURM_COMMANDS = (
    "Slurm's commands fail{where}, and on a compute node no job starts or ends properly."
    " Running processes go on."
)
_DIRECTORY = (
    "Users of the directory (LDAP) may be unknown{where}: they cannot log in, and their jobs fail to"
    " start."
)
_CUDA = "On machines with NVSwitch, CUDA programs{where} do not start, and those that run may be aborted."
_LINKS = (
    "InfiniBand links that are up go on; links and nodes that come up get no address, and nothing is"
    " routed around a failure, unless another subnet manager of the fabric takes over."
)
_CLOCK = "The clock drifts{where}; when clocks differ by minutes, munge and Kerberos fail."
_IMPACTS: Mapping[str, str] = {
    "munge": _SLURM_COMMANDS,
    "munged": _SLURM_COMMANDS,
    "slurmctld": "Nobody can submit, start or cancel jobs, unless a backup takes over; running jobs go"
    " on.",
    "slurmd": "No job starts{where}; after SlurmdTimeout Slurm sets the node down, and ends its jobs.",
    "slurmdbd": "`sacct` and `sacctmgr` get no answer. Jobs start and go on; slurmctld keeps their"
    " records until it is back.",
    "sssd": _DIRECTORY,
    "nscd": "Names of users and hosts are looked up more slowly{where}; most programs go on.",
    "nslcd": _DIRECTORY,
    "sshd": "Nobody can log in{where} by ssh; sessions that are open go on.",
    "ssh": "Nobody can log in{where} by ssh; sessions that are open go on.",
    "chronyd": _CLOCK,
    "chrony": _CLOCK,
    "ntpd": _CLOCK,
    "opensm": _LINKS,
    "opensmd": _LINKS,
    "nvidia-fabricmanager": _CUDA,
    "nv-fabricmanager": _CUDA,
}
"""By the name of a process or of a systemd unit without its ending.

References: munge(7), slurm.conf(5) for SlurmdTimeout, slurmdbd(8), opensm(8), and NVIDIA's Fabric
Manager User Guide (error 802, system not yet initialized)."""


def describe_service_impact(name: str, where: str) -> str:
    """What fails without this service. `where`: ` on this host`. Of a name that is not known here, it
    says only what is true of every service."""
    known = _IMPACTS.get(name.removesuffix(".service"))
    return (
        known.format(where=where)
        if known
        else f"Whatever needs {name}{where} fails or waits until it runs again, also on other hosts."
    )
