"""The kernel section: /dev/kmsg, dmesg(1) or journalctl(1), whichever the node had. Pure."""

import re

from sentinel.core.probe.lines import Strange
from sentinel.core.probe.nouns import Cursor, KernelLine, KernelLog

# https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
_KMSG = re.compile(r"([0-9]{1,9}),([0-9]{1,19}),([0-9]{1,19}),[^;]*;(.*)")
# The second bracket is who printed it, where the kernel has PRINTK_CALLER: "[    T1]".
_TIMED = re.compile(r"\[ *([0-9]{1,12})\.([0-9]{1,9})\](?:\[ *[TC][0-9]{1,9}\])? (.*)")
_JOURNAL = re.compile(r"\S+ kernel: ")


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
        found.append(KernelLine(at=at, level=level, text=match[4]))
    before = _before("kmsg", boot, since)
    lost = None
    if before is not None:
        lost = max(0, numbers[0] - before - 1) if numbers else 0
    position = max(numbers, default=-1 if before is None else before)
    cursor = Cursor(boot=boot, source="kmsg", position=position)
    return KernelLog(source="kmsg", lines=tuple(found), cursor=cursor, lost=lost)


def _timed(source: str, lines: list[str], boot: str, since: Cursor | None) -> KernelLog:
    found, last = [], _before(source, boot, since)
    position = -1 if last is None else last
    for line in lines:
        match = _TIMED.fullmatch(line)
        if not match:
            raise Strange(f"no line of the kernel's log: {line}")
        micro = int(match[1]) * 1_000_000 + int(match[2].ljust(6, "0")[:6])
        position = max(position, micro)
        text = _JOURNAL.sub("", match[3], count=1) if source == "journal" else match[3]
        found.append(KernelLine(at=micro / 1e6, level=None, text=text))
    cursor = Cursor(boot=boot, source=source, position=position)
    return KernelLog(source=source, lines=tuple(found), cursor=cursor, lost=None)


def _before(source: str, boot: str, since: Cursor | None) -> int | None:
    """Where the reader stopped, if it was in this very log."""
    same = since is not None and (since.boot, since.source) == (boot, source)
    return since.position if since is not None and same else None
