"""probe.sh with the parameters of one call, as one text for the node's shell."""

import os
import shlex

from sentinel.nodes.probe import ProbeRequest
from sentinel.proc.own_package import read_program_file

ARGV = ("/bin/sh", "-c", 'text=$(cat); eval "$text"; main', "sentinel")
"""The shell reads the whole text before it runs any of it: half a script does nothing."""

_SLACK = 5.0  # seconds for connecting, for the shell, and for ending what hangs


def text(
    wants: ProbeRequest,
    mark: str,
    seconds: float,
    *,
    sys: str = "/sys",
    proc: str = "/proc",
    var: str = "/var",
    run: str = "/run",
    place: str = "",
) -> bytes:
    """The script for a node that may take `seconds`: half for each of two tools that may need the
    same lock one after the other.

    `place`: the directory for locks, instead of the one that the script would choose."""
    since = wants.since
    values = {
        "mark": mark,
        "sections": " ".join(wants.section_names),
        "paths": "\n".join(wants.disks),
        "limit": str(max(1, int((seconds - _SLACK) / 2))),
        "since_boot": since.boot if since else "",
        "since_source": since.source if since else "",
        "since": str(since.position) if since else "-1",
        "sys": sys,
        "proc": proc,
        "var": var,
        "run": run,
        "told_place": place,
    }
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return os.fsencode(head + waits() + cgroups() + _host() + read_program_file("nodes/probe.sh"))


def waits() -> str:
    """Shell functions that print what a task in state D waits for; other scripts include them."""
    return read_program_file("nodes/waits.sh")


def cgroups() -> str:
    """A shell function that prints the job of a process by its cgroup; other scripts include it."""
    return read_program_file("nodes/cgroups.sh")


def _host() -> str:
    """The sections about the host itself."""
    return read_program_file("nodes/host.sh")
