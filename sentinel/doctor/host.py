"""The host: state directory, time, and the tools that some checks need."""

import os
import sys
from collections.abc import Iterator
from datetime import datetime, tzinfo
from importlib import metadata
from importlib.util import cache_from_source
from shutil import which

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import quote_command
from sentinel.core.long_lines import decode_lines
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
{ echo x >"$probe"; } 2>/dev/null
code=$?
[ $code = 0 ] || echo "a file can be made there and not written: no space left, or a quota" >&2
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
    place = visible(decode_lines(found.out, "surrogateescape").removesuffix("\n"))
    if found.code:
        return make_failure_item(
            "state", f"{place}: {visible(decode_lines(found.err).strip())}", remedy
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
    """Whether munge can make a credential, with which Slurm's commands authenticate. If it cannot
    and Slurm needs it, slurmctld does not answer, which is reported separately."""
    if which("munge") is None:
        return make_unknown_item("munge", "command munge not found", _MUNGE_OPTIONAL_TEXT)
    try:
        done = proc.run(["munge", "-n"], limit=5.0)
    except CannotTell as error:
        return make_warning_item("munge", str(error), _MUNGE_REMEDY)
    if done.code:
        return make_warning_item("munge", visible(decode_lines(done.err).strip()), _MUNGE_REMEDY)
    return make_ok_item("munge", "makes credentials")


def check_namesake() -> Iterator[DoctorItem]:
    """Whether the index's distribution `sentinel`, another project's, is in this environment: its module
    hides sentinel.training where that is installed alone."""
    try:
        other = metadata.version("sentinel")
    except metadata.PackageNotFoundError:
        return
    text = f"another project's distribution sentinel {visible(other)} is installed here"
    yield make_warning_item(
        "name",
        text,
        "it may hide sentinel.training; pip uninstall sentinel, then install ours again",
    )


def check_bytecode(package: str) -> Iterator[DoctorItem]:
    """Whether every start compiles the modules below `package` again. A start writes what it compiled, so
    nothing is there only where it may not be written."""
    if not os.path.isdir(package):
        return
    if os.path.exists(cache_from_source(os.path.join(package, "__init__.py"))):
        return
    yield make_warning_item(
        "bytecode",
        f"{visible(package)} is not compiled: every start compiles it, which takes most of a second",
        "once, as its owner: "
        + quote_command(sys.executable, "-m", "compileall", "-q", os.path.dirname(package)),
    )


def check_tools() -> Iterator[DoctorItem]:
    """Programs that some kinds need."""
    for name, remedy in _TOOL_REMEDIES.items():
        path = which(name)
        yield (
            make_ok_item(name, path)
            if path
            else make_warning_item(name, "not found in PATH", remedy)
        )
