"""The host: state directory, time, and the tools that some checks need."""

import os
from collections.abc import Iterator
from datetime import datetime, tzinfo
from shutil import which

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.doctor import (
    DoctorItem,
    make_failure_item,
    make_ok_item,
    make_unknown_item,
    make_warning_item,
)

_TOOL_REMEDIES = {
    "ssh": "needed to look at nodes; install openssh-client",
    "nvidia-smi": "needed on GPU nodes only; comes with NVIDIA's driver",
    "dcgmi": "needed on GPU nodes only; install datacenter-gpu-manager",
    "sbatch": "needed to run without a daemon (slurm/sentinel-tick.slurm); install Slurm's client",
}
STATE_TIMEOUT_S = 10.0
"""Seconds in which the file system of the state has to answer."""

_WRITABLE_SCRIPT = """\
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

_MUNGE_OPTIONAL_TEXT = "fine where Slurm authenticates otherwise, or is asked from another host"
_MUNGE_REMEDY = f"is munged running? systemctl status munge; {_MUNGE_OPTIONAL_TEXT}"


def check_state_dir(directory: str) -> DoctorItem:
    """Whether the state could be written where it is configured. Nothing is made: root would leave
    a directory that the service may not enter."""
    if "://" in directory:
        return make_ok_item("state", "in PostgreSQL (tried when the service starts)")
    shown, remedy = visible(directory), "make it writable, or set `state:` to a directory that is"
    try:
        found = proc.run(["sh", "-c", _WRITABLE_SCRIPT, "sh", directory], limit=STATE_TIMEOUT_S)
    except CannotTell as error:
        return make_failure_item(
            "state", f"{shown}: {error}", "is its file system mounted, and does it answer?"
        )
    place = visible(os.fsdecode(found.out).removesuffix("\n"))
    if found.code:
        return make_failure_item(
            "state", f"{place}: {visible(os.fsdecode(found.err).strip())}", remedy
        )
    made = "" if place == shown else f"; {shown} is made at the first start"
    return make_ok_item("state", f"{place} is writable{made}")


def check_time_zone(zone: tzinfo, now: datetime, why: str = "") -> DoctorItem:
    """The time zone that rules `cron:` and shown times. `why`: why that is UTC unasked."""
    local = now.astimezone(zone)
    text = f"{local:%Z (UTC%z)}, now {local:%Y-%m-%d %H:%M:%S}"
    if why and not local.utcoffset():
        return make_warning_item(
            "time zone", f"{text}: {why}", "set `timezone:`, or install tzdata and link the file"
        )
    return make_ok_item("time zone", text)


def check_munge() -> DoctorItem:
    """Whether munge, by which Slurm's commands prove who asks, makes a credential. Where it does
    not and Slurm needs it, slurmctld does not answer, which is told beside it."""
    if which("munge") is None:
        return make_unknown_item("munge", "command munge not found", _MUNGE_OPTIONAL_TEXT)
    try:
        done = proc.run(["munge", "-n"], limit=5.0)
    except CannotTell as error:
        return make_warning_item("munge", str(error), _MUNGE_REMEDY)
    if done.code:
        return make_warning_item(
            "munge", visible(done.err.decode("utf-8", "replace").strip()), _MUNGE_REMEDY
        )
    return make_ok_item("munge", "makes credentials")


def check_tools() -> Iterator[DoctorItem]:
    """Programs that some kinds need."""
    for name, remedy in _TOOL_REMEDIES.items():
        path = which(name)
        yield (
            make_ok_item(name, path)
            if path
            else make_warning_item(name, "not found in PATH", remedy)
        )
