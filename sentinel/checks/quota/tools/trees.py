"""Reads quotas of trees instead of users: CephFS directories, ZFS datasets, Btrfs subvolumes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from sentinel.checks.quota.tools.quota import (
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
    parse_quota_bytes,
    parse_quota_count,
)

CEPH = ("ceph.dir.rbytes", "ceph.dir.rentries", "ceph.quota.max_bytes", "ceph.quota.max_files")
"""Extended attributes of a directory: https://docs.ceph.com/en/latest/cephfs/quota/."""

ZFS = ("used", "available", "quota", "refquota", "referenced")
"""Properties of a dataset (zfsprops(7)). For users there are userused@NAME and similar ones."""

_NONE = 2**64 - 1


def read_ceph_quota(values: Mapping[str, str], name: str) -> list[QuotaRow]:
    """The quota from values by the names in CEPH. A missing attribute means that this directory
    itself has no limit; those of its parents apply too.

    Recursive counts lag by seconds, more under load, since clients propagate them lazily."""
    if CEPH[0] not in values or CEPH[1] not in values:
        raise UnexpectedQuotaOutput("no ceph.dir.rbytes: this is no directory of CephFS")
    used, entries, limit, most = (parse_quota_count(values.get(name) or "0") for name in CEPH)
    space, files = QuotaAmount(used=used, hard=limit), QuotaAmount(used=entries, hard=most)
    return [QuotaRow(kind="directory", name=name, space=space, entries=files)]


def fuller_share(one: QuotaRow) -> float:
    """The larger of the used shares of space and files; 0 without a limit."""
    halves = [one.space, *filter(None, [one.entries])]
    return max(half.used / half.hard if half.hard else 0.0 for half in halves)


def read_zfs_quota(text: str, kind: str, name: str) -> list[QuotaRow]:
    """The quota from `zfs get -Hp -o property,value`, in bytes. A dataset is limited by its quota
    (which counts descendants and snapshots) or its refquota (which does not), whichever leaves
    less; if it has one, also by what a quota above it or the pool leaves available (zfsprops(7))."""
    values = _read_properties(text)
    try:
        if kind != "dataset":
            return [_zfs_person_quota(values, kind, name)]
        pairs = (("used", "quota"), ("referenced", "refquota"))
        amounts = [
            QuotaAmount(used=parse_quota_count(values[u]), hard=parse_quota_bytes(values[q]))
            for u, q in pairs
        ]
    except KeyError as error:
        raise UnexpectedQuotaOutput(f"no property {error}: {text}") from None
    held = [a for a in amounts if a.hard]
    if held:
        left = parse_quota_count(values["available"])
        held.append(QuotaAmount(used=amounts[0].used, hard=amounts[0].used + left))
    tightest = min(held, key=lambda a: a.hard - a.used, default=amounts[0])
    return [QuotaRow(kind=kind, name=name, space=tightest)]


def _read_properties(text: str) -> dict[str, str]:
    """The values by property. The name of a group may hold blanks."""
    return dict(re.findall(r"^([^\t\n]+)\t(\S+)$", text, re.M))


def zfs_properties(kind: str, name: str) -> tuple[str, ...]:
    """The properties to request for a dataset, or for a user, group or project in it."""
    if kind == "dataset":
        return ZFS
    return tuple(f"{kind}{what}@{name}" for what in ("used", "quota", "objused", "objquota"))


def zfs_defaults(kind: str) -> tuple[str, ...]:
    """The properties with default quotas for owners without one of their own, since OpenZFS 2.4
    (zfsprops(7))."""
    return (f"default{kind}quota", f"default{kind}objquota")


def apply_zfs_defaults(one: QuotaRow, text: str, kind: str) -> QuotaRow:
    """The quota, with default limits from `zfs get -Hp -o property,value` for those that it
    lacks."""
    values = _read_properties(text)
    try:
        space, entries = (parse_quota_bytes(values[name]) for name in zfs_defaults(kind))
    except KeyError as error:
        raise UnexpectedQuotaOutput(f"no property {error}: {text}") from None
    files = one.entries
    return replace(
        one,
        space=replace(one.space, hard=one.space.hard or space),
        entries=replace(files, hard=files.hard or entries) if files else None,
    )


def _zfs_person_quota(values: Mapping[str, str], kind: str, name: str) -> QuotaRow:
    used, limit, entries, most = (values[p] for p in zfs_properties(kind, name))
    return QuotaRow(
        kind=kind,
        name=name,
        space=QuotaAmount(used=parse_quota_bytes(used), hard=parse_quota_bytes(limit)),
        entries=QuotaAmount(used=parse_quota_bytes(entries), hard=parse_quota_bytes(most)),
    )


def refuse_stale(complaint: str) -> None:
    """Raise UnexpectedQuotaOutput if btrfs complains. With exit code 0 it says so that its numbers are not
    correct now (print_status_flag_warning in cmds/qgroup.c of btrfs-progs)."""
    if complaint.strip():
        raise UnexpectedQuotaOutput(complaint)


def read_btrfs_quota(text: str) -> list[QuotaRow]:
    """Quotas from `btrfs qgroup show --raw -re`, in bytes. Both limits apply, and the tighter one
    is reported.

    https://btrfs.readthedocs.io/en/latest/btrfs-qgroup.html. Columns after the fifth are names."""
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d+/\d+\s", line)]
    cells = 6 if re.search(r"(?i)\sPath\s*$", text.partition("\n")[0]) else 5
    if not rows or any(len(row) < cells for row in rows):
        raise UnexpectedQuotaOutput(text)
    return [_qgroup_quota(*row[:5]) for row in rows]


def _qgroup_quota(
    name: str, referenced: str, exclusive: str, most: str, most_exclusive: str
) -> QuotaRow:
    amounts = [
        QuotaAmount(used=parse_quota_count(referenced), hard=_qgroup_limit(most)),
        QuotaAmount(used=parse_quota_count(exclusive), hard=_qgroup_limit(most_exclusive)),
    ]
    held = [a for a in amounts if a.hard]
    tightest = min(held, key=lambda a: a.hard - a.used, default=amounts[0])
    return QuotaRow(kind="qgroup", name=name, space=tightest)


def _qgroup_limit(word: str) -> int:
    found = parse_quota_bytes(word)
    return 0 if found == _NONE else found
