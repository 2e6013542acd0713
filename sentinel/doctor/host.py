"""The host: state directory, time, and the tools that some checks need."""

import os
from collections.abc import Iterator
from datetime import datetime, tzinfo
from shutil import which

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.doctor import Item, bad, ok, unknown, warn

_TOOLS = {
    "ssh": "needed to look at nodes; install openssh-client",
    "nvidia-smi": "needed on GPU nodes only; comes with NVIDIA's driver",
    "dcgmi": "needed on GPU nodes only; install datacenter-gpu-manager",
    "sbatch": "needed to run without a daemon (slurm/sentinel-tick.slurm); install Slurm's client",
}
STATE_LIMIT = 10.0
"""Seconds in which the file system of the state has to answer."""

_WRITABLE = """\
place=$1
while [ ! -e "$place" ]; do
    case $place in
    */*) place=${place%/*} ;;
    *) place=. ;;
    esac
    place=${place:-/}
done
echo "$place"
if ! { [ -d "$place" ] && [ -w "$place" ] && [ -x "$place" ]; }; then
    echo "not a directory that may be written" >&2
    exit 1
fi
[ "$place" = "$1" ] || exit 0
probe=$(mktemp "$place/doctor.XXXXXX") || exit 1
echo x >"$probe"
code=$?
rm -f "$probe"
exit $code
"""
"""Names the directory, or the nearest one above it that is there, and whether a file could be
written there; in a child, for it may hang."""

_OTHERWISE = "fine where Slurm authenticates otherwise, or is asked from another host"
_MUNGED = f"is munged running? systemctl status munge; {_OTHERWISE}"


def state(directory: str) -> Item:
    """Whether the state could be written where it is configured. Nothing is made: root would leave
    a directory that the service may not enter."""
    if "://" in directory:
        return ok("state", "in PostgreSQL (tried when the service starts)")
    shown, remedy = visible(directory), "make it writable, or set `state:` to a directory that is"
    try:
        found = proc.run(["sh", "-c", _WRITABLE, "sh", directory], limit=STATE_LIMIT)
    except CannotTell as error:
        return bad("state", f"{shown}: {error}", "is its file system mounted, and does it answer?")
    place = visible(os.fsdecode(found.out).removesuffix("\n"))
    if found.code:
        return bad("state", f"{place}: {visible(os.fsdecode(found.err).strip())}", remedy)
    made = "" if place == shown else f"; {shown} is made at the first start"
    return ok("state", f"{place} is writable{made}")


def clock(zone: tzinfo, now: datetime, why: str = "") -> Item:
    """The time zone that rules `cron:` and shown times. `why`: why that is UTC unasked."""
    local = now.astimezone(zone)
    text = f"{local:%Z (UTC%z)}, now {local:%Y-%m-%d %H:%M:%S}"
    if why and not local.utcoffset():
        return warn(
            "time zone", f"{text}: {why}", "set `timezone:`, or install tzdata and link the file"
        )
    return ok("time zone", text)


def munge() -> Item:
    """Whether munge, by which Slurm's commands prove who asks, makes a credential. Where it does
    not and Slurm needs it, slurmctld does not answer, which is told beside it."""
    if which("munge") is None:
        return unknown("munge", "command munge not found", _OTHERWISE)
    try:
        done = proc.run(["munge", "-n"], limit=5.0)
    except CannotTell as error:
        return warn("munge", str(error), _MUNGED)
    if done.code:
        return warn("munge", visible(done.err.decode("utf-8", "replace").strip()), _MUNGED)
    return ok("munge", "makes credentials")


def tools() -> Iterator[Item]:
    """Programs that some kinds need."""
    for name, remedy in _TOOLS.items():
        path = which(name)
        yield ok(name, path) if path else warn(name, "not found in PATH", remedy)
