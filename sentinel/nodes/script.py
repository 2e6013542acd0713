"""probe.sh with what this call wants of it, as one text for the node's shell."""

import os
import shlex
from functools import cache

from sentinel.nodes.probe import ProbeRequest

ARGV = ("/bin/sh", "-c", 'text=$(cat); eval "$text"; main', "sentinel")
"""Reads the whole text before it does any of it: half a script does nothing at all."""

_SLACK = 5.0  # seconds of a node's time for connecting, the shell, and ending what hangs


def text(
    wants: ProbeRequest,
    mark: str,
    seconds: float,
    *,
    sys: str = "/sys",
    proc: str = "/proc",
    place: str = "",
) -> bytes:
    """The script for a node that has `seconds`: two tools may need the same lock in turn.

    `place`: the directory for locks, instead of the script's own choice.
    """
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
        "told_place": place,
    }
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return os.fsencode(head + _body())


@cache
def waits() -> str:
    """Functions that tell for what a task in state D waits; a part of other scripts."""
    return _read("waits.sh")


@cache
def cgroups() -> str:
    """A function that tells which job the kernel counts a process to; a part of other scripts."""
    return _read("cgroups.sh")


@cache
def _body() -> str:
    return waits() + cgroups() + _read("probe.sh")


def _read(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="ascii") as file:
        return file.read()
