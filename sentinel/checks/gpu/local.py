"""This machine's own GPUs, without any way to nodes: the same probe, by children of its own."""

from __future__ import annotations

import os
import sys
import time

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.node_probe import StrangeLine
from sentinel.core.text import shortened, visible
from sentinel.gpu import smi
from sentinel.nodes.probe import Cursor, KernelLog, NodeIdentity, NodeProbe, Unread
from sentinel.nodes.probe import kernel as kernel_text


def here(limit: float, cursor: Cursor | None) -> NodeProbe:
    """nvidia-smi and the kernel's log, each in a child that can be ended."""
    return NodeProbe(identity=_identity(), gpus=_gpus(limit / 2), kernel=_kernel(limit / 4, cursor))


def log(limit: float, cursor: Cursor | None) -> NodeProbe:
    """The kernel's log alone."""
    return NodeProbe(identity=_identity(), kernel=_kernel(limit, cursor))


def name() -> str:
    """As Slurm would call it."""
    return os.uname().nodename.partition(".")[0]


def _identity() -> NodeIdentity:
    system = os.uname()
    return NodeIdentity(
        hostname=system.nodename,
        kernel=system.release,
        boot=proc.boot_id(),
        uptime=time.clock_gettime(time.CLOCK_BOOTTIME),
        time=int(time.time()),
        uid=os.geteuid(),
    )


def _gpus(limit: float) -> str | Unread:
    try:
        done = proc.run(["nvidia-smi", "-q", "-x"], limit=limit)
    except proc.CommandNotFound:
        return _by_nvml(limit)
    except proc.TimedOut as error:
        return Unread(kind="hung" if error.stuck else "late", why=str(error))
    except proc.TooMuchOutput as error:
        return Unread(kind="cut", why=str(error))
    out = done.out.decode("utf-8", "backslashreplace")
    if page := smi.page(out, done.code):
        return page
    if done.code:
        said = out.strip() or done.err.decode("utf-8", "backslashreplace").strip()
        return Unread(kind="failed", why=visible(shortened(said.partition("\n")[0], 300)))
    return out


def _by_nvml(limit: float) -> str | Unread:
    """NVML in a child: it may hang as nvidia-smi does."""
    try:
        done = proc.run([sys.executable, "-m", "sentinel.checks.gpu.nvml"], limit=limit)
    except proc.TimedOut as error:
        return Unread(kind="hung" if error.stuck else "late", why=str(error))
    except (proc.CommandNotFound, proc.TooMuchOutput) as error:
        return Unread(kind="failed", why=str(error))
    if done.code:
        said = done.err.decode("utf-8", "replace").strip()
        return Unread(
            kind="missing", why=visible(shortened(f"nvidia-smi is not installed; {said}", 300))
        )
    return done.out.decode("utf-8", "replace")


KMSG = ("dd", "if=/dev/kmsg", "iflag=nonblock", "bs=8192")
WHOLE = b"temporarily unavailable"
"""What dd says when it has read /dev/kmsg to its end (EAGAIN)."""


def _kernel(limit: float, cursor: Cursor | None) -> KernelLog | Unread:
    """By dmesg's JSON. Where dmesg is older (util-linux before 2.38), /dev/kmsg itself is read: in
    the text of an old dmesg a newline of a file name begins a line. What can read neither (busybox)
    shows text."""
    try:
        found = _dmesg(limit / 4, "-x", "--json")
        if isinstance(found, str) and found.startswith("{"):
            return kernel_text.log_of_json(found, proc.boot_id(), cursor)
        if isinstance(found, Unread):
            found = _dmesg(limit / 4, "-x")
            numbered = _kmsg(limit / 4) if isinstance(found, str) else []
            if numbered:
                return kernel_text.log(["kmsg", *numbered], proc.boot_id(), cursor)
        if isinstance(found, Unread):
            found = _dmesg(limit / 4)
        if isinstance(found, Unread):
            return found
        lines = found.rstrip("\n").split("\n")
        if not kernel_text.has_stamps(lines):
            why = "dmesg shows no lines with times (cleared, printk.time?)"
            return Unread(kind="failed", why=why)
        return kernel_text.log(["dmesg", *lines], proc.boot_id(), cursor)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput, CannotTell) as error:
        return Unread(kind="failed", why=str(error))
    except StrangeLine as error:
        return Unread(kind="garbage", why=str(error))


def _dmesg(limit: float, *options: str) -> str | Unread:
    done = proc.run(["dmesg", *options], limit=limit)
    if done.code:
        said = done.err.decode("utf-8", "backslashreplace").strip()
        return Unread(kind="denied", why=visible(shortened(said, 200)))
    return done.out.decode("utf-8", "replace" if "--json" in options else "backslashreplace")


def _kmsg(limit: float) -> list[str]:
    """The records of /dev/kmsg; none where it was not read to its end."""
    done = proc.run(KMSG, limit=limit)
    lines = done.out.decode("utf-8", "backslashreplace").split("\n")
    return [line for line in lines if line[:1].isdigit()] if WHOLE in done.err else []
