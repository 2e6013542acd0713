"""quota(1), repquota(8), xfs_quota(8): quotas of ext4, XFS and NFS mounts."""

from __future__ import annotations

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
)

_KIB = 1024
_HEADERS = ("Disk quotas for", "Filesystem", "Block grace time")
_CSV = (
    "BlockStatus,FileStatus,BlockUsed,BlockSoftLimit,BlockHardLimit,BlockGrace,"
    "FileUsed,FileSoftLimit,FileHardLimit,FileGrace"
)


def read_linux_quota(
    text: str, kind: str, name: str, points: Collection[str], now: float
) -> list[QuotaRow]:
    """Of `quota --raw-grace --no-wrap --hide-device --show-mntpoint` what it says of any of these
    mount points of one file system, of which it names one: KiB, the grace as the moment of its
    end. Nothing where there is no quota.

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
    """Of `repquota --output=csv --raw-grace`; its manual page describes the columns.

    https://manpages.debian.org/bookworm/quota/repquota.8.en.html
    """
    header, *lines = text.strip().splitlines() or [""]
    if header.partition(",")[2] != _CSV:
        raise UnexpectedQuotaOutput(header)
    return [_repquota_row(line, kind, now) for line in lines if line.strip()]


def read_xfs_quota(text: str, kind: str) -> list[QuotaRow]:
    """Of `xfs_quota -x -c 'report -N -n -b -i'`: `#ID used soft hard warnings [grace]` twice.

    https://man7.org/linux/man-pages/man8/xfs_quota.8.html, KiB.
    """
    return [_xfs_row(line, kind) for line in text.splitlines() if line.strip()]


ROOT = ("0", "root")


def apply_xfs_defaults(found: Sequence[QuotaRow]) -> list[QuotaRow]:
    """Limits of id 0 are XFS's default for ids that have none, and do not hold for id 0 itself.

    The kernel writes them into an id at its next use only (xfs_qm_adjust_dqlimits).
    https://man7.org/linux/man-pages/man8/xfs_quota.8.html (limit -d)
    """
    root = next((one for one in found if one.name in ROOT), None)
    if root is None:
        return [*found]
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
    """Counted, and not held by any limit."""
    return replace(
        one,
        space=QuotaAmount(used=one.space.used),
        entries=QuotaAmount(used=one.entries.used) if one.entries else None,
    )


def _inherited_amount(own: QuotaAmount, default: QuotaAmount | None) -> QuotaAmount:
    """Soft and hard each for themselves."""
    if default is None:
        return own
    return replace(own, soft=own.soft or default.soft, hard=own.hard or default.hard)


def _table_rows(text: str, columns: int) -> list[list[str]]:
    """Table rows; a name too long for its column stands on a line of its own."""
    rows, carried = list[list[str]](), list[str]()
    for line in text.splitlines():
        words = line.split()
        if not words or line.lstrip().startswith(_HEADERS):
            continue
        words = [*carried, *words]
        carried = words if len(words) == 1 else []
        if carried:
            continue
        if len(words) != columns:
            raise UnexpectedQuotaOutput(line)
        rows.append(words)
    if carried:
        raise UnexpectedQuotaOutput(carried[0])
    return rows


def _raw_amount(words: Sequence[str], now: float, unit: int = 1) -> QuotaAmount:
    used, soft, hard = (
        parse_quota_count(words[0]) * unit,
        *(parse_quota_bytes(word, unit) for word in words[1:3]),
    )
    over = bool(soft) and used > soft
    return QuotaAmount(used=used, soft=soft, hard=hard, grace=_grace_moment(words[3], over, now))


def _grace_moment(word: str, over: bool, now: float) -> float | None:
    """NFS servers may give a span where a moment was asked for."""
    return (
        seconds_until(parse_quota_count(word), now)
        if word.isdigit() and over
        else parse_grace(word, over)
    )


def _repquota_row(line: str, kind: str, now: float) -> QuotaRow:
    words = line.rsplit(",", 10)
    if len(words) != 11:
        raise UnexpectedQuotaOutput(line)
    space, files = _raw_amount(words[3:7], now, _KIB), _raw_amount(words[7:11], now)
    return QuotaRow(kind=kind, name=words[0].removeprefix("#"), space=space, entries=files)


def _xfs_row(line: str, kind: str) -> QuotaRow:
    import re

    half = r"(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+(\[[^]]*\])"
    match = re.fullmatch(rf"\s*#?(\S+)\s+{half}\s+{half}\s*", line)
    if not match:
        raise UnexpectedQuotaOutput(line)
    name, *words = match.groups()
    space, files = _span_amount(words[:4], _KIB), _span_amount(words[4:], 1)
    return QuotaRow(kind=kind, name=name, space=space, entries=files)


def _span_amount(words: Sequence[str], unit: int) -> QuotaAmount:
    used, soft, hard = (parse_quota_count(word) * unit for word in words[:3])
    over = bool(soft) and used > soft
    return QuotaAmount(used=used, soft=soft, hard=hard, grace=parse_grace(words[3], over))
