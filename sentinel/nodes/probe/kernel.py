"""The kernel section: /dev/kmsg, syslog(2) by dmesg(1), or journalctl(1), what the node had. Pure.

Only what the kernel itself said counts: records of the facility kern. Programs that write to
/dev/kmsg have another one (devkmsg_write() in kernel/printk/printk.c turns kern into user).

A record is one KernelLine, however many lines its text has. A file name or the name of a process
may hold a newline, so a later line of a record is never a record of its own. /dev/kmsg writes the
newline as `\\x0a`, JSON of dmesg and of journalctl as `\\n`. syslog(2) begins each line of a record
with the record's priority and time (record_print_text() in kernel/printk/printk.c of Linux). So
there a line with the priority and time of the line before it belongs to that record, unless that is
a driver's own. The text that dmesg and journalctl print for people is refused: in that of dmesg
before util-linux 2.33 a newline in a file name begins a record with a time of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import DecodeError, Struct

from sentinel.core.node_probe import Cursor, KernelLine, KernelLog
from sentinel.core.section_lines import StrangeLine
from sentinel.core.struct_types import decode_json

KERN, OTHER = 0, -1
"""The facility of the kernel (LOG_KERN of syslog(3)), and a number for any other facility."""

BY_TIME = "dmesg"
"""The source in a cursor of all that dmesg prints. Its position is the time that the kernel noted, in
microseconds since boot, whatever the form."""

MAX_RECORDS = 5000
"""Records of one look; older ones are left out."""

# https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
_KMSG = re.compile(r"([0-9]{1,9}),([0-9]{1,19}),([0-9]{1,19}),([^;]*);(.*)")
# A line of syslog(2), as `dmesg -r` prints it, begins with facility and level as one number, that of
# other text does not. If the kernel has PRINTK_CALLER, a second bracket names the caller: "[    T1]".
_STAMPED = re.compile(
    r"(?:<([0-9]{1,3})>)?\[ *([0-9]{1,12})\.([0-9]{1,9})\](?:\[ *[TC][0-9]{1,9}\])? (.*)"
)
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
    """Read the log, whose first line names the source, and make a cursor for the next call.

    `indented` is the text of a dmesg from util-linux 2.33 or later, which indents the later lines of
    a record. It has no levels. Raises StrangeLine."""
    source = lines[0] if lines else ""
    if source == "kmsg":
        return _numbered(lines[1:], boot, since)
    if source == "syslog":
        return _timed(BY_TIME, _of_syslog(lines[1:]), boot, since)
    if source == "indented":
        return _timed(BY_TIME, _of_indented(lines[1:]), boot, since)
    if source == "journal":
        return _timed(source, [_of_journal(line) for line in lines[1:]], boot, since)
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
    # Without /dev/kmsg dmesg makes a record of each line of syslog(2).
    return _timed(BY_TIME, _join_lines(records), boot, since)


def _priority(facility: str, level: str) -> tuple[int | None, int | None]:
    """Facility and level from dmesg's names; None for a name that is missing or not known."""
    number = (KERN if facility == "kern" else OTHER) if facility else None
    return number, _LEVELS.index(level) if level in _LEVELS else None


_JOURNAL_FIELDS = {
    "at": "__MONOTONIC_TIMESTAMP",
    "source_at": "_SOURCE_MONOTONIC_TIMESTAMP",
    "message": "MESSAGE",
    "level": "PRIORITY",
    "facility": "SYSLOG_FACILITY",
}


class _JournalRecord(Struct, rename=_JOURNAL_FIELDS):
    """A line of `journalctl -o json` (systemd.journal-fields(7)). Times are in microseconds since
    boot."""

    at: str
    source_at: str = ""  # When the kernel wrote it; journald notes it later.
    message: str | list[int] | None = None  # Bytes if it is no UTF-8, null if it is too long.
    level: str = ""
    facility: str = ""


def _of_journal(line: str) -> _Record:
    """Raises StrangeLine."""
    try:
        found = decode_json(line, _JournalRecord)
        at = int(found.source_at or found.at)
        level = int(found.level) if found.level else None
        facility = int(found.facility) if found.facility else OTHER
        message = found.message or ""
        text = message if isinstance(message, str) else bytes(message).decode(errors="replace")
    except (DecodeError, ValueError, RecursionError) as error:
        raise StrangeLine(f"journalctl's JSON: {error}") from error
    return _Record(at, facility, level, text)


def _of_syslog(lines: list[str]) -> list[_Record]:
    """Records from syslog(2), whose lines all have priority and time. Raises StrangeLine.

    Only the last lines of a long log come, so its first record may lack its beginning. Nothing shows
    who wrote that one."""
    found = [_parse_stamped(line) for line in lines]
    if None in found or any(record and record.level is None for record in found):
        strange = next(n for n, r in enumerate(found) if r is None or r.level is None)
        raise StrangeLine(f"no line of the kernel's log: {lines[strange]}")
    records = _join_lines(record for record in found if record)
    if len(lines) >= MAX_RECORDS:
        first = records[0]
        first.text, first.later_lines = "", [first.text, *first.later_lines]
    return records


def _of_indented(lines: list[str]) -> list[_Record]:
    """Raises StrangeLine if the first line has no time."""
    records: list[_Record] = []
    for line in lines:
        if record := _parse_stamped(line):
            records.append(record)
        elif records:
            records[-1].later_lines.append(line.strip())
        else:
            raise StrangeLine(f"no line of the kernel's log: {line}")
    return _join_lines(records)


def _join_lines(records: Iterable[_Record]) -> list[_Record]:
    """The records, each with its later lines, if the source stamps every line."""
    joined: list[_Record] = []
    for record in records:
        if joined and _continues(joined[-1], record):
            joined[-1].later_lines += [record.text, *record.later_lines]
        else:
            joined.append(record)
    return joined


def _parse_stamped(line: str) -> _Record | None:
    """The record that begins with this line. None if the line has no time stamp."""
    match = _STAMPED.fullmatch(line)
    if match is None:
        return None
    at = int(match[2]) * 1_000_000 + int(match[3].ljust(6, "0")[:6])
    if match[1] is None:
        return _Record(at, None, None, match[4])
    priority = int(match[1])
    return _Record(at, priority >> 3, priority & 7, match[4])


def _continues(before: _Record, record: _Record) -> bool:
    """Whether a line with a stamp is a later line of the record before it."""
    same = (before.at, before.facility, before.level) == (record.at, record.facility, record.level)
    return same and not _DRIVERS.match(before.text)


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
