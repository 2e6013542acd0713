"""beegfs-ctl and beegfs-df of BeeGFS 7: https://doc.beegfs.io/7.4/advanced_topics/quota.html; `beegfs`
of BeeGFS 8, which has neither: https://doc.beegfs.io/latest/advanced_topics/quota.html.

Default limits are in the numbers already (7: getQuotaLimitsStrings in ctl/source/modes/
ModeGetQuotaInfo.cpp; 8: mgmtd/src/grpc/get_quota_usage.rs). In 7, files are `-` where no server counts
them, `12+` where only some do, and an id whose numbers are not valid is left out, with exit code 0.
In 8, an id that the management knows nothing of has no row, with exit code 0, and what it does not
know of one is a `?` (runListUsageCmd in ctl/internal/cmd/quota/quota.go).
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from msgspec import Struct

from sentinel.checks.quota.tools.quota import (
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
    parse_quota_bytes,
    parse_quota_count,
)
from sentinel.checks.quota.tools.targets import StorageTarget
from sentinel.core.struct_types import decode_json

_HEADER = "name,id,size,hard,files,hard"
_POOL = "Quota information for storage pool"
_UNITS = {"": 1, "B": 1} | {p + "iB": 1024**i for i, p in enumerate("KMGTPE", 1)}
_COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = r"([\d.]+)([A-Za-z]*)"
_ROW = re.compile(rf"(\S+)\s+(\S+)\s+{_SIZE}\s+{_SIZE}\s+\d+%\s+{_SIZE}\s+{_SIZE}\s+\d+%")
_SECTIONS = {"METADATA SERVERS:": "metadata", "STORAGE TARGETS:": "data"}

USAGE = ("beegfs", "quota", "list-usage", "--raw", "--output=ndjson")
LIST = ("beegfs", "target", "list", "--state", "--capacity", "--raw", "--output=ndjson")
_NODES: dict[int | str, str] = {2: "metadata", 3: "data", "meta": "metadata", "storage": "data"}
"""NodeType in common/beegfs/nodetype.go, which the JSON has as a number."""

NOT_UNDERSTOOD = "its row is not understood"
_NEVER = 2**63 - 1
"""The number that `set-limits` writes for `unlimited`."""


class _BeegfsUsage(Struct, frozen=True):
    name: str
    id: int
    type: str
    space: str
    inode: str


class _BeegfsTarget(Struct, frozen=True):
    type: int | str
    alias: str
    reachability: str
    consistency: str
    cap_pool: str
    space: str
    space_free: str
    inodes: str
    inodes_free: str


MAX_TARGETS = 20_000
"""Rows of a list at most; no system has more targets, and each unreadable row is reported."""

Row = TypeVar("Row", _BeegfsUsage, _BeegfsTarget)


def read_beegfs_quota(text: str, kind: str) -> list[QuotaRow]:
    """Quotas from `beegfs-ctl --getquota --csv`: bytes, one row for each storage pool. BeeGFS has
    no soft limits and no grace."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if _HEADER not in lines:
        raise UnexpectedQuotaOutput(text)
    rows = [line for line in lines[lines.index(_HEADER) :] if not line.startswith(_POOL)]
    if any(one == _HEADER == two for one, two in zip(rows, [*rows[1:], _HEADER], strict=True)):
        raise UnexpectedQuotaOutput(
            "a heading without numbers: the servers have none that are valid"
        )
    return [_beegfs_quota(line, kind) for line in rows if line != _HEADER]


def read_beegfs_targets(text: str) -> list[StorageTarget]:
    """Targets from `beegfs-df`, which rounds sizes to a tenth of their unit."""
    found, kind = list[StorageTarget](), ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line in _SECTIONS:
            kind = _SECTIONS[line]
        elif not line.startswith(("TargetID", "====")):
            found.append(_beegfs_target(line, kind))
    if all(target.trouble == NOT_UNDERSTOOD for target in found):
        raise UnexpectedQuotaOutput(text)
    return found


def read_beegfs_usage(text: str, kind: str, number: int) -> list[QuotaRow]:
    """The quotas of one user or group (by number) from `USAGE`: bytes, one row for each storage
    pool."""
    found = [row for row in _json_rows(text, _BeegfsUsage) if (row.type, row.id) == (kind, number)]
    if not found:
        raise UnexpectedQuotaOutput(
            f"no row of {kind} {number}, of whom the management has no numbers"
        )
    return [_beegfs_usage(row) for row in found]


def read_beegfs_list(text: str) -> list[StorageTarget]:
    """Targets from `LIST`: bytes, and the state of each by the management."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_TARGETS:
        raise UnexpectedQuotaOutput(text)
    found = [_listed_line(line) for line in lines]
    if all(target.trouble == NOT_UNDERSTOOD for target in found):
        raise UnexpectedQuotaOutput(text)
    return found


def _listed_line(line: str) -> StorageTarget:
    """The target of a row. If the row cannot be read, the target is in trouble; other rows are not
    affected."""
    try:
        (row,) = _json_rows(line, _BeegfsTarget)
        return _listed_target(row)
    except UnexpectedQuotaOutput:
        name = re.search(r'"alias":\s?"([^"]{1,100})"', line)
        return StorageTarget(
            name=name[1] if name else "a target", kind="data", trouble=NOT_UNDERSTOOD
        )


def _file_counts(used: str, most: str) -> QuotaAmount | None:
    """The number of files and its limit; None if files are not counted. Raises
    UnexpectedQuotaOutput if only some servers count them and the count is below the limit, since
    the real number may be higher."""
    limit = parse_quota_bytes(most)
    if used == "-":
        return None
    found = parse_quota_count(used.removesuffix("+"))
    if used.endswith("+") and limit and found < limit:
        raise UnexpectedQuotaOutput(f"{used} files: some targets do not count theirs")
    return QuotaAmount(used=found, hard=limit)


def _beegfs_quota(line: str, kind: str) -> QuotaRow:
    words = line.split(",")
    if len(words) != 6:
        raise UnexpectedQuotaOutput(line)
    return QuotaRow(
        kind=kind,
        name=words[0] or words[1],
        space=QuotaAmount(used=parse_quota_count(words[2]), hard=parse_quota_bytes(words[3])),
        entries=_file_counts(words[4], words[5]),
    )


def _beegfs_target(line: str, kind: str) -> StorageTarget:
    match = _ROW.fullmatch(line)
    if not kind or not line.split()[0].isdigit():
        raise UnexpectedQuotaOutput(line)
    if not match:
        return StorageTarget(name=line.split()[0], kind=kind, trouble=NOT_UNDERSTOOD)
    name, pool, *sizes = match.groups()
    total, free = _scale_size(sizes[0], sizes[1], _UNITS), _scale_size(sizes[2], sizes[3], _UNITS)
    inodes, left = (
        _scale_size(sizes[4], sizes[5], _COUNTS),
        _scale_size(sizes[6], sizes[7], _COUNTS),
    )
    return _make_target(name, kind, (total, free, inodes, left), _pool_trouble(pool))


def _pool_trouble(pool: str) -> str:
    """A pool that is neither normal nor low takes no more files, or nobody here knows it."""
    return "" if pool.lower() in ("normal", "low", "") else f"{pool.lower()} pool"


def _make_target(
    name: str, kind: str, sizes: tuple[int, int, int, int], trouble: str
) -> StorageTarget:
    """A target. `sizes`: bytes in all and free, inodes in all and free."""
    total, free, inodes, left = sizes
    return StorageTarget(
        name=name,
        kind=kind,
        size=total,
        used=max(0, total - free),
        free=free,
        inodes=inodes,
        inodes_used=max(0, inodes - left),
        trouble=trouble,
    )


def _scale_size(digits: str, unit: str, units: dict[str, int]) -> int:
    if unit not in units:
        raise UnexpectedQuotaOutput(digits + unit)
    return int(float(digits) * units[unit])


def _beegfs_usage(row: _BeegfsUsage) -> QuotaRow:
    space = _known_amount(row.space)
    if space is None:
        raise UnexpectedQuotaOutput(f"space {row.space}: the servers have not reported it")
    return QuotaRow(kind=row.type, name=row.name, space=space, entries=_known_amount(row.inode))


def _json_rows(text: str, kind: type[Row]) -> list[Row]:
    try:
        return [decode_json(line.encode(), kind) for line in text.splitlines() if line.strip()]
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UnexpectedQuotaOutput(text) from error


def _known_amount(pair: str) -> QuotaAmount | None:
    """The amount in `used/limit`; None if neither is known and nothing limits writing."""
    used, slash, most = pair.partition("/")
    if used == "?" and most in ("?", "∞"):
        return None
    limit = parse_quota_bytes(most)
    if not slash or not most:
        raise UnexpectedQuotaOutput(pair)
    return QuotaAmount(used=parse_quota_count(used), hard=0 if limit == _NEVER else limit)


def _listed_target(row: _BeegfsTarget) -> StorageTarget:
    total, free, inodes, left = map(
        parse_quota_bytes, (row.space, row.space_free, row.inodes, row.inodes_free)
    )
    online, kind = row.reachability == "Online", _NODES.get(row.type)
    if not kind or not row.reachability or (online and "-" in (row.space, row.space_free)):
        raise UnexpectedQuotaOutput(str(row))
    pool = _pool_trouble(row.cap_pool)
    ill = {
        row.reachability.lower(): not online,
        f"data: {row.consistency}": row.consistency != "Good",
        pool: bool(pool),
    }
    trouble = ", ".join(what for what, holds in ill.items() if holds)
    return _make_target(row.alias, kind, (total, free, inodes, left), trouble)
