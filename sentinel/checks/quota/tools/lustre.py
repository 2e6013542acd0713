"""lfs-quota(1) and lfs-df(1): https://doc.lustre.org/lustre_manual.xhtml#managingquotas.

What lfs prints: print_quota, print_one_quota and print_quota_title in lustre/utils/lfs.c. Up to
2.15 it says of an id without limits of its own that it "is using default block quota setting";
some servers then give 0 for its limits, and `lfs quota -U` (-G, -P) alone has the number that
holds. Since 2.16 the limits of such an id are the default's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from sentinel.checks.quota.tools.quota import (
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
    parse_grace,
    parse_quota_count,
)
from sentinel.checks.quota.tools.targets import StorageTarget

_KIB = 1024
_NEVER = 100 * 365 * 86_400.0
"""Seconds. A grace of `notify` (lfs-setquota(1)) never ends; lfs prints it as millions of years."""

_BY_DEFAULT = re.compile(
    r"^[ \t]*[ugp]id \S+ is using default (block|file) quota setting[ \t]*$", re.M
)
_INACCURATE = 'data in "[]" is inaccurate'
_KINDS = {"MDT": "metadata", "OST": "data"}
_ROW = re.compile(
    r"(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+%|-)\s+(\S.*)\[(MDT|OST):(\w+)\](?:\s+(\w+))?\s*"
)
_STATES = {"R": "read-only", "N": "takes no new files", "S": "out of space", "I": "out of inodes"}
_HARMLESS_STATES = "Dfa"
"""Letters after a target, lfs-df(1). Its RAID is degraded (D), it is flash (f), the numbers are summed up
(a): nobody is kept from writing. A letter that is not known here is a trouble."""

_DOWN = re.compile(r"(\S{0,120}?((?:MDT|OST)[0-9a-f]{4})\S{0,120})\s+(:\s*)?(.+)")
_SUMMARY = ("filesystem summary", "filesystem_summary")


def read_lustre_quota(text: str, kind: str, name: str, default: str = "") -> list[QuotaRow]:
    """Parse the output of `lfs quota`: KiB, rows that may be wrapped, and the rest of the grace
    period.

    `default` is the output of `lfs quota -U`, -G or -P, if `limits_by_default` says that it is
    needed. Raises UnexpectedQuotaOutput, also if lfs itself calls its numbers inaccurate (a target
    is away).
    """
    words = _row_words(text, 8)
    space, files = _lustre_amount(words[:4], _KIB), _lustre_amount(words[4:], 1)
    if needed := limits_by_default(text):
        limits = _row_words(default, 6)
        if "block" in needed:
            space = _held_amount(space, limits[:2], _KIB)
        if "file" in needed:
            files = _held_amount(files, limits[3:5], 1)
    return [QuotaRow(kind=kind, name=name, space=space, entries=files)]


def limits_by_default(text: str) -> frozenset[str]:
    """Which of `block` and `file` have no limit in `lfs quota` although the default limit
    applies."""
    words = _row_words(text, 8)
    own = {"block": words[1:3], "file": words[5:7]}
    return frozenset(
        w for w in _BY_DEFAULT.findall(text) if not any(map(parse_quota_count, own[w]))
    )


def _row_words(text: str, count: int) -> list[str]:
    """The words of the only row, after its mount point. Raises UnexpectedQuotaOutput."""
    if _INACCURATE in text or re.search(r"\[\d+\]", text):
        raise UnexpectedQuotaOutput("[numbers in brackets]: some targets did not answer")
    rows = re.findall(rf"^[ \t]*(?:/\S*|\.)((?:\s+\S+){{{count}}})\s*$", text, re.M)
    if len(rows) != 1:
        raise UnexpectedQuotaOutput(text)
    return str(rows[0]).split()


def _held_amount(own: QuotaAmount, limits: Sequence[str], unit: int) -> QuotaAmount:
    soft, hard = (parse_quota_count(word) * unit for word in limits)
    return replace(own, soft=soft, hard=hard)


def read_lfs_df(space: str, inodes: str) -> list[StorageTarget]:
    """Targets from `lfs df` and `lfs df -i` of the same path, including those that are away."""
    seen = {target.name: target for target in _read_targets(space)}
    if not seen:
        raise UnexpectedQuotaOutput(space)
    for target in _read_targets(inodes):
        if target.size and target.name in seen:
            old = seen[target.name]
            # In this report, the inodes are in the columns where the other report has KiB.
            seen[target.name] = replace(
                old, inodes=target.size // _KIB, inodes_used=target.used // _KIB
            )
    return list(seen.values())


def is_whole_report(text: str) -> bool:
    """Whether a report of `lfs df` is complete: it ends with the summary of each file system."""
    last = text.strip().rpartition("\n")[2]
    return last.startswith(_SUMMARY)


def _lustre_amount(words: Sequence[str], unit: int) -> QuotaAmount:
    used, soft, hard = (parse_quota_count(word) * unit for word in words[:3])
    left = parse_grace(words[3], bool(soft) and used > soft)
    grace = None if left is not None and left > _NEVER else left
    return QuotaAmount(used=used, soft=soft, hard=hard, grace=grace)


def _read_targets(text: str) -> list[StorageTarget]:
    return [
        target
        for line in text.splitlines()
        if line.strip() and (target := _read_target(line.strip()))
    ]


def _read_target(line: str) -> StorageTarget | None:
    if match := _ROW.fullmatch(line):
        uuid, *sizes = match.groups()[:4]
        size, used, free = (int(number) * _KIB for number in sizes)
        name = uuid.removesuffix("_UUID")
        letters = [one for one in match[9] or "" if one not in _HARMLESS_STATES]
        trouble = ", ".join(_STATES.get(one, f"state {one}, not known here") for one in letters)
        kind = _KINDS[match[7]]
        return StorageTarget(name=name, kind=kind, size=size, used=used, free=free, trouble=trouble)
    if match := _DOWN.fullmatch(line):
        kind = _KINDS[match[2][:3]]
        trouble = match[4].strip() if match[3] else f"its row is not understood: {match[4].strip()}"
        return StorageTarget(name=match[1].removesuffix("_UUID"), kind=kind, trouble=trouble)
    if line.startswith(("UUID", *_SUMMARY)):
        return None
    raise UnexpectedQuotaOutput(line)
