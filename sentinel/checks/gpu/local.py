"""This machine's own GPUs, without any way to nodes: the same probe, by children of its own."""

from __future__ import annotations

import os
import sys
import time

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import Cursor, Identity, KernelLog, NodeProbe, Unread
from sentinel.nodes.probe import kernel as kernel_text
from sentinel.nodes.probe.model import Strange


def here(limit: float, cursor: Cursor | None) -> NodeProbe:
    """nvidia-smi and the kernel's log, each in a child that can be ended."""
    return NodeProbe(identity=_identity(), gpus=_gpus(limit / 2), kernel=_kernel(limit / 4, cursor))


def log(limit: float, cursor: Cursor | None) -> NodeProbe:
    """The kernel's log alone."""
    return NodeProbe(identity=_identity(), kernel=_kernel(limit, cursor))


def name() -> str:
    """As Slurm would call it."""
    return os.uname().nodename.partition(".")[0]


def _identity() -> Identity:
    system = os.uname()
    return Identity(
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
    except proc.NotFound:
        return _by_nvml(limit)
    except proc.TimedOut as error:
        return Unread(kind="hung" if error.stuck else "late", why=str(error))
    except proc.TooMuch as error:
        return Unread(kind="cut", why=str(error))
    out = done.out.decode("utf-8", "backslashreplace")
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
    except (proc.NotFound, proc.TooMuch) as error:
        return Unread(kind="failed", why=str(error))
    if done.code:
        said = done.err.decode("utf-8", "replace").strip()
        return Unread(
            kind="missing", why=visible(shortened(f"nvidia-smi is not installed; {said}", 300))
        )
    return done.out.decode("utf-8", "replace")


def _kernel(limit: float, cursor: Cursor | None) -> KernelLog | Unread:
    try:
        done = proc.run(["dmesg"], limit=limit)
    except (proc.NotFound, proc.TimedOut, proc.TooMuch, CannotTell) as error:
        return Unread(kind="failed", why=str(error))
    if done.code:
        said = done.err.decode("utf-8", "backslashreplace").strip()
        return Unread(kind="denied", why=visible(shortened(said, 200)))
    lines = done.out.decode("utf-8", "backslashreplace").rstrip("\n").split("\n")
    if not any(kernel_text.newer(lines, -1)):
        return Unread(kind="failed", why="dmesg shows no lines with times (cleared, printk.time?)")
    try:
        return kernel_text.log(["dmesg", *_after(lines, cursor)], proc.boot_id(), cursor)
    except Strange as error:
        return Unread(kind="garbage", why=str(error))


def _after(lines: list[str], cursor: Cursor | None) -> list[str]:
    """Lines of this boot after the cursor: dmesg has no numbers, only times."""
    same = cursor is not None and (cursor.boot, cursor.source) == (proc.boot_id(), "dmesg")
    position = cursor.position if cursor is not None and same else -1
    return list(kernel_text.newer(lines, position))[-5000:]
