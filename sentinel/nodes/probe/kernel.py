"""The kernel section: /dev/kmsg, dmesg(1) or journalctl(1), whichever the node had. Pure.

A record may hold several lines (drivers print them with one call): /dev/kmsg writes their ends as
`\\x0a`, dmesg and journalctl print them as they are, without a stamp. Each becomes a KernelLine
with the time of its record.
"""

import re
from collections.abc import Iterable, Iterator

from sentinel.nodes.probe.model import Cursor, KernelLine, KernelLog, Strange

# https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
_KMSG = re.compile(r"([0-9]{1,9}),([0-9]{1,19}),([0-9]{1,19}),[^;]*;(.*)")
# The second bracket is who printed it, where the kernel has PRINTK_CALLER: "[    T1]".
_TIMED = re.compile(r"\[ *([0-9]{1,12})\.([0-9]{1,9})\](?:\[ *[TC][0-9]{1,9}\])? (.*)")
_STAMP = re.compile(r"\[ *([0-9]{1,12})\.([0-9]{1,9})\]")
_JOURNAL = re.compile(r"\S+ kernel: ")
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")
_MEANT = {"0a": "\n", "09": "\t", "5c": "\\"}
"""Escapes that are undone; any other, also a broken one, stays as it is written."""


def log(lines: list[str], boot: str, since: Cursor | None) -> KernelLog:
    """The log with a cursor for the next call; raises Strange."""
    source = lines[0] if lines else ""
    if source == "kmsg":
        return _numbered(lines[1:], boot, since)
    if source in ("dmesg", "journal"):
        return _timed(source, lines[1:], boot, since)
    raise Strange(f"the kernel's log comes from an unknown source: {source}")


def _numbered(lines: list[str], boot: str, since: Cursor | None) -> KernelLog:
    found, numbers = [], []
    for line in lines:
        match = _KMSG.fullmatch(line)
        if not match:
            raise Strange(f"no line of the kernel's log: {line}")
        numbers.append(int(match[2]))
        at, level = int(match[3]) / 1e6, int(match[1]) & 7
        found += [KernelLine(at=at, level=level, text=text) for text in _unescaped(match[4])]
    before = _before("kmsg", boot, since)
    lost = None
    if before is not None:
        lost = max(0, numbers[0] - before - 1) if numbers else 0
    position = max(numbers, default=-1 if before is None else before)
    cursor = Cursor(boot=boot, source="kmsg", position=position)
    return KernelLog(source="kmsg", lines=tuple(found), cursor=cursor, lost=lost)


def _unescaped(text: str) -> list[str]:
    return _ESCAPE.sub(lambda m: _MEANT.get(m[1].lower(), m[0]), text).split("\n")


def newer(lines: Iterable[str], position: int) -> Iterator[str]:
    """Of dmesg's lines the records after that moment (µs since boot), each with all its lines."""
    after = False
    for line in lines:
        if stamp := _STAMP.match(line):
            after = _micro(stamp) > position
        if after:
            yield line


def _micro(stamp: re.Match[str]) -> int:
    return int(stamp[1]) * 1_000_000 + int(stamp[2].ljust(6, "0")[:6])


def _timed(source: str, lines: list[str], boot: str, since: Cursor | None) -> KernelLog:
    found, last = [], _before(source, boot, since)
    position = -1 if last is None else last
    # A record's first line may have been cut off: then its time is that of the next one.
    micro = next((_micro(m) for line in lines if (m := _STAMP.match(line))), None)
    if lines and micro is None:
        raise Strange(f"no line of the kernel's log: {lines[0]}")
    for line in lines:
        match = _TIMED.fullmatch(line)
        micro = _micro(match) if match else micro
        text = match[3] if match else line.strip()
        if match and source == "journal":
            text = _JOURNAL.sub("", text, count=1)
        position = max(position, micro or 0)
        found.append(KernelLine(at=(micro or 0) / 1e6, level=None, text=text))
    cursor = Cursor(boot=boot, source=source, position=position)
    return KernelLog(source=source, lines=tuple(found), cursor=cursor, lost=None)


def _before(source: str, boot: str, since: Cursor | None) -> int | None:
    """Where the reader stopped, if it was in this very log."""
    same = since is not None and (since.boot, since.source) == (boot, source)
    return since.position if since is not None and same else None
