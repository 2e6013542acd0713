"""The host: state directory, time, and the tools that some checks need."""

import os
import tempfile
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


def state(directory: str) -> Item:
    """Whether the state can be written where it is configured."""
    if "://" in directory:
        return ok("state", "in PostgreSQL (tried when the service starts)")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as probe:
            probe.write(b"x")
    except OSError as error:
        remedy = "make it writable, or set `state:` to a directory that is"
        return bad("state", f"{visible(directory)}: {error.strerror}", remedy)
    return ok("state", f"{visible(directory)} is writable")


def clock(zone: tzinfo, now: datetime) -> Item:
    """The time zone that rules `cron:` and shown times."""
    local = now.astimezone(zone)
    return ok("time zone", f"{local:%Z (UTC%z)}, now {local:%Y-%m-%d %H:%M:%S}")


def munge() -> Item:
    """Whether munge, by which Slurm's commands prove who asks, makes a credential."""
    if which("munge") is None:
        return unknown(
            "munge", "command munge not found", "fine where Slurm authenticates otherwise"
        )
    try:
        done = proc.run(["munge", "-n"], limit=5.0)
    except CannotTell as error:
        return bad("munge", str(error), "is munged running? systemctl status munge")
    if done.code:
        text = visible(done.err.decode("utf-8", "replace").strip())
        return bad("munge", text, "is munged running? systemctl status munge")
    return ok("munge", "makes credentials")


def tools() -> Iterator[Item]:
    """Programs that some kinds need."""
    for name, remedy in _TOOLS.items():
        path = which(name)
        yield ok(name, path) if path else warn(name, "not found in PATH", remedy)
