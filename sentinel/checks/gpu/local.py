"""Looks at this machine's own GPUs with the same probe as nodes, in child processes."""

from __future__ import annotations

import os
import time

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_document, decode_lines
from sentinel.core.section_lines import StrangeLine
from sentinel.core.text import shortened, visible
from sentinel.gpu import smi
from sentinel.nodes.probe import Cursor, KernelLog, NodeIdentity, NodeProbe, Unread
from sentinel.nodes.probe import kernel as kernel_text


def here(limit: float, cursor: Cursor | None) -> NodeProbe:
    """The probe of this machine: nvidia-smi and the kernel's log, each in a child that can be
    killed."""
    return NodeProbe(identity=_identity(), gpus=_gpus(limit / 2), kernel=_kernel(limit / 4, cursor))


def log(limit: float, cursor: Cursor | None) -> NodeProbe:
    """A probe of this machine with only its identity and the kernel's log."""
    return NodeProbe(identity=_identity(), kernel=_kernel(limit, cursor))


def name() -> str:
    """The name of this host, in the form that Slurm uses."""
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
        return Unread(kind="missing", why="nvidia-smi is not installed")
    except proc.TimedOut as error:
        return Unread(kind="hung" if error.stuck else "late", why=str(error))
    except proc.TooMuchOutput as error:
        return Unread(kind="cut", why=str(error))
    out = decode_document(done.out)
    if page := smi.page(out, done.code):
        return page
    if done.code:
        said = out.strip() or decode_lines(done.err).strip()
        return Unread(kind="failed", why=visible(shortened(said.partition("\n")[0], 300)))
    return out


MAX_KERNEL_LOG_BYTES = 64 * 2**20
"""log_buf_len is at most 32 MiB on usual machines, and JSON is longer than text."""

KMSG = ("dd", "if=/dev/kmsg", "iflag=nonblock", "bs=8192")
WHOLE = b"temporarily unavailable"
"""The error of dd after it has read /dev/kmsg to its end (EAGAIN)."""


def _kernel(limit: float, cursor: Cursor | None) -> KernelLog | Unread:
    """The kernel's log, from dmesg's JSON. If dmesg is older (util-linux before 2.38), /dev/kmsg is
    read, and if that cannot be read, syslog(2). In the text of an old dmesg a newline within a file
    name begins a record."""
    try:
        found = _dmesg(limit / 4, "-x", "--json")
        if isinstance(found, str) and found.startswith("{"):
            return kernel_text.log_of_json(found, proc.boot_id(), cursor)
        if isinstance(found, str):  # It knows --json, so it is new, and indents what is no record.
            return _of_text("indented", found, cursor)
        if numbered := _kmsg(limit / 4):
            return kernel_text.log(["kmsg", *numbered], proc.boot_id(), cursor)
        found = _dmesg(limit / 4, "-S", "-r")
        if isinstance(found, Unread) and "BusyBox" in found.why:
            # It knows no other way, and no -S.
            found = _dmesg(limit / 4, "-r")
        return found if isinstance(found, Unread) else _of_text("syslog", found, cursor)
    except (proc.CommandNotFound, proc.TimedOut, proc.TooMuchOutput, CannotTell) as error:
        return Unread(kind="failed", why=str(error))
    except StrangeLine as error:
        return Unread(kind="garbage", why=str(error))


def _of_text(source: str, text: str, cursor: Cursor | None) -> KernelLog | Unread:
    """Raises StrangeLine."""
    lines = text.rstrip("\n").split("\n")
    if not kernel_text.has_stamps(lines):
        why = "dmesg shows no lines with times: was it cleared, or is printk.time off?"
        return Unread(kind="failed", why=why)
    return kernel_text.log([source, *lines], proc.boot_id(), cursor)


def _dmesg(limit: float, *options: str) -> str | Unread:
    done = proc.run(["dmesg", *options], limit=limit, max_output=MAX_KERNEL_LOG_BYTES)
    if done.code:
        said = decode_lines(done.err).strip()
        return Unread(kind="denied", why=visible(shortened(said, 200)))
    return decode_document(done.out) if "--json" in options else decode_lines(done.out)


def _kmsg(limit: float) -> list[str]:
    """The records of /dev/kmsg; empty if it was not read to its end."""
    done = proc.run(KMSG, limit=limit, max_output=MAX_KERNEL_LOG_BYTES)
    lines = decode_lines(done.out).split("\n")
    return [line for line in lines if line[:1].isdigit()] if WHOLE in done.err else []
