"""Reads quota(1), repquota(8) and xfs_quota(8): quotas of ext4, XFS and NFS mounts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from sentinel.checks.quota.tools.quota import (
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
    parse_grace,
    parse_quota_bytes,
    parse_quota_count,
    seconds_until,
    unread_row,
)

_KIB = 1024
_HEADERS = ("Disk quotas for", "Filesystem", "Block grace time")
_CSV = (
    "BlockStatus,FileStatus,BlockUsed,BlockSoftLimit,BlockHardLimit,BlockGrace,"
    "FileUsed,FileSoftLimit,FileHardLimit,FileGrace"
)

_XFS_HALF_PATTERN = re.compile(
    r"(?<!\S)(\d{1,20})\s{1,64}(\d{1,20})\s{1,64}(\d{1,20})\s{1,64}\d{1,20}\s{1,64}(\[[^]]{0,64}\])"
)
"""Used, soft, hard, warnings and grace, of space or of files. A name, which may hold blanks, is
before both."""


def read_linux_quota(
    text: str, kind: str, name: str, points: Collection[str], now: float
) -> list[QuotaRow]:
    """Quotas from `quota --raw-grace --no-wrap --hide-device --show-mntpoint` for any of these
    mount points, which are of one file system. The tool prints KiB, and the time at which the grace
    period ends. Empty if there is no quota.

    https://manpages.debian.org/bookworm/quota/quota.1.en.html
    """
    return [
        QuotaRow(
            kind=kind,
            name=name,
            space=_raw_amount(words[1:5], now, _KIB),
            entries=_raw_amount(words[5:9], now),
        )
        for words in _table_rows(text, 9)
        if words[0] in points
    ]


def read_repquota(text: str, kind: str, now: float) -> list[QuotaRow]:
    """Quotas from `repquota --output=csv --raw-grace`; its manual page describes the columns.

    https://manpages.debian.org/bookworm/quota/repquota.8.en.html"""
    header, *lines = text.strip().splitlines() or [""]
    if header.partition(",")[2] != _CSV:
        raise UnexpectedQuotaOutput(header)
    found = [_repquota_row(line, kind, now) for line in lines if line.strip()]
    if found and all(row.unread for row in found):
        raise UnexpectedQuotaOutput(found[0].unread)
    return found


def read_xfs_quota(text: str, kind: str) -> list[QuotaRow]:
    """Quotas from `xfs_quota -x -c 'report -N -n -b -i'`, in KiB: `#ID used soft hard warnings
    [grace]` twice.

    https://man7.org/linux/man-pages/man8/xfs_quota.8.html."""
    found = [_xfs_row(line, kind) for line in text.splitlines() if line.strip()]
    if found and all(row.unread for row in found):
        raise UnexpectedQuotaOutput(found[0].unread)
    return found


ROOT = ("0", "root")


def apply_xfs_defaults(found: Sequence[QuotaRow]) -> list[QuotaRow]:
    """Limits of id 0 are XFS's default for ids that have none, and do not hold for id 0 itself.

    The kernel writes them into an id at its next use only (xfs_qm_adjust_dqlimits).
    https://man7.org/linux/man-pages/man8/xfs_quota.8.html (limit -d)
    """
    root = next((one for one in found if one.name in ROOT), None)
    if root is None:
        return [*found]
    if root.unread:  # the default limits are not known
        return [
            one
            if one.space.hard_end
            else replace(one, unread=f"the default of id 0: {root.unread}")
            for one in found
        ]
    return [
        unlimited_quota(one)
        if one.name in ROOT
        else replace(
            one,
            space=_inherited_amount(one.space, root.space),
            entries=_inherited_amount(one.entries, root.entries) if one.entries else None,
        )
        for one in found
    ]


def unlimited_quota(one: QuotaRow) -> QuotaRow:
    """The quota with its usage and without limits."""
    return replace(
        one,
        space=QuotaAmount(used=one.space.used),
        entries=QuotaAmount(used=one.entries.used) if one.entries else None,
    )


def _inherited_amount(own: QuotaAmount, default: QuotaAmount | None) -> QuotaAmount:
    """The amount, with the default's soft and hard limit for each that it lacks."""
    if default is None:
        return own
    return replace(own, soft=own.soft or default.soft, hard=own.hard or default.hard)


def _table_rows(text: str, columns: int) -> list[list[str]]:
    """The rows of the table; a name that is too long for its column is on a line of its own."""
    rows, carried = list[list[str]](), list[str]()
    for line in text.splitlines():
        words = line.split()
        if not words or line.lstrip().startswith(_HEADERS):
            continue
        words = [*carried, *words]
        carried = words if len(words) == 1 else []
        if carried:
            continue
        if len(words) > columns and all(_is_cell(word) for word in words[1 - columns :]):
            # a mount point with blanks
            words = [" ".join(words[: 1 - columns]), *words[1 - columns :]]
        if len(words) != columns:
            raise UnexpectedQuotaOutput(line)
        rows.append(words)
    if carried:
        raise UnexpectedQuotaOutput(carried[0])
    return rows


def _is_cell(word: str) -> bool:
    """Whether the word is a number, possibly marked, or a word for none."""
    return word.removesuffix("*").isdigit() or word in ("-", "none")


def _raw_amount(words: Sequence[str], now: float, unit: int = 1) -> QuotaAmount:
    used, soft, hard = (
        parse_quota_count(words[0]) * unit,
        *(parse_quota_bytes(word, unit) for word in words[1:3]),
    )
    over = bool(soft) and used > soft
    return QuotaAmount(used=used, soft=soft, hard=hard, grace=_grace_moment(words[3], over, now))


def _grace_moment(word: str, over: bool, now: float) -> float | None:
    """Seconds of grace that are left. NFS servers may give a span instead of a moment."""
    return (
        seconds_until(parse_quota_count(word), now)
        if word.isdigit() and over
        else parse_grace(word, over)
    )


def _repquota_row(line: str, kind: str, now: float) -> QuotaRow:
    words = line.rsplit(",", 10)
    if len(words) != 11:
        return unread_row(kind, words[0].removeprefix("#"), line)
    try:
        space, files = _raw_amount(words[3:7], now, _KIB), _raw_amount(words[7:11], now)
    except UnexpectedQuotaOutput:
        return unread_row(kind, words[0].removeprefix("#"), line)
    return QuotaRow(kind=kind, name=words[0].removeprefix("#"), space=space, entries=files)


def _xfs_row(line: str, kind: str) -> QuotaRow:
    halves = list(_XFS_HALF_PATTERN.finditer(line))
    if len(halves) != 2 or _XFS_HALF_PATTERN.sub("", line[halves[0].start() :]).strip():
        return unread_row(kind, line.split()[0].removeprefix("#"), line)
    name = line[: halves[0].start()].strip().removeprefix("#")
    words = [word for half in halves for word in half.groups()]
    try:
        space, files = _span_amount(words[:4], _KIB), _span_amount(words[4:], 1)
    except UnexpectedQuotaOutput:
        return unread_row(kind, name, line)
    return QuotaRow(kind=kind, name=name, space=space, entries=files)


def _span_amount(words: Sequence[str], unit: int) -> QuotaAmount:
    used, soft, hard = (parse_quota_count(word) * unit for word in words[:3])
    over = bool(soft) and used > soft
    return QuotaAmount(used=used, soft=soft, hard=hard, grace=parse_grace(words[3], over))
