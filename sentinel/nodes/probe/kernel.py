"""The kernel section: /dev/kmsg, dmesg(1) or journalctl(1), whichever the node had. Pure.

Only what the kernel itself said counts: records of the facility kern. Programs that write to
/dev/kmsg have another one (devkmsg_write() in kernel/printk/printk.c turns kern into user).

A record is one KernelLine, however many lines its text has. A file name or the name of a process
may hold a newline, so a later line of a record is never a record of its own: /dev/kmsg writes the
newline as `\\x0a`, dmesg --json as `\\n`, dmesg and journalctl print the later lines without a
stamp, and dmesg of util-linux from 2.33 on and journalctl indent them. dmesg of busybox, and that
of util-linux where there is no /dev/kmsg, print each line with the stamp of its record: there a
line with the stamp of the line before it belongs to that record, unless that is a driver's own.
dmesg of busybox tells no facility: there a program's record cannot be told from the kernel's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import DecodeError, Struct

from sentinel.core.node_probe import Cursor, KernelLine, KernelLog
from sentinel.core.section_lines import StrangeLine
from sentinel.core.struct_types import decode_json

KERN, OTHER = 0, -1
"""The facility of the kernel (LOG_KERN of syslog(3)), and a number for any other facility."""

MAX_RECORDS = 5000
"""Records of one look; older ones are left out."""

# https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
_KMSG = re.compile(r"([0-9]{1,9}),([0-9]{1,19}),([0-9]{1,19}),([^;]*);(.*)")
# A line of `dmesg -x` begins with facility and level. If the kernel has PRINTK_CALLER, a second
# bracket names the caller: "[    T1]".
_STAMPED = re.compile(
    r"(?:([a-z0-9]{1,8}) *:([a-z]{1,8}) *: )?\[ *([0-9]{1,12})\.([0-9]{1,9})\]"
    r"(?:\[ *[TC][0-9]{1,9}\])? (.*)"
)
_JOURNAL = re.compile(r"\S+ kernel: ")
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")
_MEANT = {"0a": "\n", "09": "\t", "5c": "\\"}
"""Escapes that are decoded; any other, also a broken one, stays as it is."""

_LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")

_DRIVERS = re.compile(
    r"NVRM: (?:GPU at PCI:|GPU Board Serial |Xid \(PCI:[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}[) ])"
    r"|nvidia-nvswitch[0-9]+: SXid \("
    r"|(?:amdgpu|mlx5_core|efa|ice|irdma|bnxt_en) [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
)
"""Beginnings of lines that only a driver prints: longer than the 15 bytes of a process's name."""


class _Record(Struct):
    """One record. `at` is in µs since boot. Facility and level are None if the source does not show
    them. `text` is its first line."""

    at: int
    facility: int | None
    level: int | None
    text: str
    later_lines: list[str] = []


def log(lines: list[str], boot: str, since: Cursor | None) -> KernelLog:
    """Read the log, whose first line names the source, and make a cursor for the next call. Raises
    StrangeLine."""
    source = lines[0] if lines else ""
    if source == "kmsg":
        return _numbered(lines[1:], boot, since)
    if source in ("dmesg", "journal"):
        return _timed(source, list(_stamped(lines[1:], source)), boot, since)
    raise StrangeLine(f"the kernel's log comes from an unknown source: {source}")


def has_stamps(lines: Iterable[str]) -> bool:
    """Whether dmesg shows any record with its time. It does not with printk.time=0, or after the
    log was cleared."""
    return any(_STAMPED.match(line) for line in lines)


def _numbered(lines: list[str], boot: str, since: Cursor | None) -> KernelLog:
    before = _before("kmsg", boot, since)
    found = []
    for line in lines:
        match = _KMSG.fullmatch(line)
        if not match:
            raise StrangeLine(f"no line of the kernel's log: {line}")
        if before is None or int(match[2]) > before:
            found.append(match)
    found = found[-MAX_RECORDS:]
    records: list[_Record] = []
    for match in found:
        priority, at = int(match[1]), int(match[3])
        text = _ESCAPE.sub(lambda m: _MEANT.get(m[1].lower(), m[0]), match[5])
        if match[4][:1] not in ("c", "+"):
            records.append(_Record(at, priority >> 3, priority & 7, text))
        elif records:  # this is only a part of a line, and its beginning does not show who wrote it
            records[-1].later_lines.append(text)
    lost = None
    if before is not None:
        lost = max(0, int(found[0][2]) - before - 1) if found else 0
    last = -1 if before is None else before
    position = max((int(match[2]) for match in found), default=last)
    cursor = Cursor(boot=boot, source="kmsg", position=position)
    return KernelLog(source="kmsg", lines=_of_kernel(records), cursor=cursor, lost=lost)


class _JsonRecord(Struct):
    time: float
    msg: str
    fac: str = ""
    pri: str | int = ""


class _Json(Struct):
    dmesg: list[_JsonRecord]


def log_of_json(text: str, boot: str, since: Cursor | None) -> KernelLog:
    """Read the log from `dmesg -x --json` (util-linux from 2.38 on). Raises StrangeLine."""
    try:
        found = decode_json(text, _Json).dmesg
    except (DecodeError, RecursionError) as error:
        raise StrangeLine(f"dmesg's JSON: {error}") from error
    records = [_Record(round(r.time * 1e6), *_priority(r.fac, str(r.pri)), r.msg) for r in found]
    return _timed("dmesg", records, boot, since)


def _priority(facility: str, level: str) -> tuple[int | None, int | None]:
    """Facility and level from dmesg's names; None for a name that is missing or not known."""
    number = (KERN if facility == "kern" else OTHER) if facility else None
    return number, _LEVELS.index(level) if level in _LEVELS else None


def _stamped(lines: Iterable[str], source: str) -> Iterator[_Record]:
    """Records from text as dmesg and journalctl print it. Raises StrangeLine if no line has a
    stamp."""
    records: list[_Record] = []
    cut: list[str] = []
    """Lines of a record whose first line is not here."""
    for line in lines:
        record = _record(line, source)
        if record is None or (records and _continues(records[-1], record, source)):
            text = line.strip() if record is None else record.text
            if records:
                records[-1].later_lines.append(text)
            else:
                cut.append(text)
        else:
            records.append(record)
    if cut and not records:
        raise StrangeLine(f"no line of the kernel's log: {cut[0]}")
    if cut:
        text = "\n".join(["", *cut])
        yield _Record(records[0].at, records[0].facility, None, text)
    yield from records


def _record(line: str, source: str) -> _Record | None:
    """The record that begins with this line. None if the line has no time stamp."""
    match = _STAMPED.fullmatch(line)
    if match is None:
        return None
    at = int(match[3]) * 1_000_000 + int(match[4].ljust(6, "0")[:6])
    facility, level = _priority(match[1] or "", match[2] or "")
    if source == "dmesg":
        return _Record(at, facility, level, match[5])
    head = _JOURNAL.match(match[5])
    if head is None:
        return _Record(at, OTHER, None, match[5])
    return _Record(at, KERN, None, match[5][head.end() :])


def _continues(before: _Record, record: _Record, source: str) -> bool:
    """Whether a line with a stamp is a later line of the record before it."""
    if before.facility is not None and record.facility is None:
        return True  # dmesg -x decodes the first line of every record
    return source == "dmesg" and before.at == record.at and not _DRIVERS.match(before.text)


def _timed(source: str, records: list[_Record], boot: str, since: Cursor | None) -> KernelLog:
    """The log after the cursor, for sources whose records have times and no numbers."""
    before = _before(source, boot, since)
    position = max((r.at for r in records), default=-1)
    position = max(position, -1 if before is None else before)
    newer = [r for r in records if before is None or r.at > before]
    cursor = Cursor(boot=boot, source=source, position=position)
    lines = _of_kernel(newer[-MAX_RECORDS:])
    left_out = 0 if before is None else max(0, len(newer) - MAX_RECORDS)
    return KernelLog(source=source, lines=lines, cursor=cursor, lost=left_out or None)


def _of_kernel(records: Iterable[_Record]) -> tuple[KernelLine, ...]:
    return tuple(
        KernelLine(at=r.at / 1e6, level=r.level, text="\n".join([r.text, *r.later_lines]))
        for r in records
        if r.facility in (KERN, None)
    )


def _before(source: str, boot: str, since: Cursor | None) -> int | None:
    """The position where the last reader stopped; None if it read another log or boot."""
    same = since is not None and (since.boot, since.source) == (boot, source)
    return since.position if since is not None and same else None
