"""lfs-quota(1) and lfs-df(1): https://doc.lustre.org/lustre_manual.xhtml#managingquotas."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from sentinel.core.disk.quota import Amount, Quota, Unexpected, grace_left, number
from sentinel.core.disk.targets import Target

_KIB = 1024
_INACCURATE = 'data in "[]" is inaccurate'
_KINDS = {"MDT": "metadata", "OST": "data"}
_ROW = re.compile(
    r"(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+%|-)\s+(.+)\[(MDT|OST):(\w+)\](?:\s+(\w+))?\s*"
)
_STATES = {"R": "read-only", "N": "takes no new files", "S": "out of space", "I": "out of inodes"}
"""Letters after a target in trouble, lfs-df(1); others (D: its RAID is degraded, f: flash) do not
keep anybody from writing."""

_DOWN = re.compile(r"(\S*?((?:MDT|OST)[0-9a-f]{4})\S*)\s+:\s*(.+)")


def quota(text: str, kind: str, name: str) -> list[Quota]:
    """Of `lfs quota`: KiB, rows that may be wrapped, the grace as what is left of it.

    Raises Unexpected also where lfs itself calls its numbers inaccurate (a target is away).
    """
    if _INACCURATE in text or re.search(r"\[\d+\]", text):
        raise Unexpected("[numbers in brackets]: some targets did not answer")
    rows = re.findall(r"^\s*(/\S*|\.)((?:\s+\S+){8})\s*$", text, re.M)
    if len(rows) != 1:
        raise Unexpected(text)
    words = rows[0][1].split()
    space, files = _amount(words[:4], _KIB), _amount(words[4:], 1)
    return [Quota(kind=kind, name=name, space=space, entries=files)]


def targets(space: str, inodes: str) -> list[Target]:
    """Of `lfs df` and `lfs df -i`, both of one path. A target that is away is in the result."""
    seen = {target.name: target for target in _read(space)}
    if not seen:
        raise Unexpected(space)
    for target in _read(inodes):
        if target.size and target.name in seen:
            old = seen[target.name]
            # inodes are in the columns in which the other report has KiB
            seen[target.name] = replace(
                old, inodes=target.size // _KIB, inodes_used=target.used // _KIB
            )
    return list(seen.values())


def _amount(words: Sequence[str], unit: int) -> Amount:
    used, soft, hard = (number(word) * unit for word in words[:3])
    over = bool(soft) and used > soft
    return Amount(used=used, soft=soft, hard=hard, grace=grace_left(words[3], over))


def _read(text: str) -> list[Target]:
    return [
        target for line in text.splitlines() if line.strip() and (target := _target(line.strip()))
    ]


def _target(line: str) -> Target | None:
    if match := _ROW.fullmatch(line):
        uuid, *sizes = match.groups()[:4]
        size, used, free = (int(number) * _KIB for number in sizes)
        name = uuid.removesuffix("_UUID")
        trouble = ", ".join(_STATES[letter] for letter in match[9] or "" if letter in _STATES)
        kind = _KINDS[match[7]]
        return Target(name=name, kind=kind, size=size, used=used, free=free, trouble=trouble)
    if match := _DOWN.fullmatch(line):
        kind = _KINDS[match[2][:3]]
        return Target(name=match[1].removesuffix("_UUID"), kind=kind, trouble=match[3].strip())
    if line.startswith(("UUID", "filesystem summary", "filesystem_summary")):
        return None
    raise Unexpected(line)
