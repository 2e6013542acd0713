"""mmlsquota -Y of IBM Storage Scale: https://www.ibm.com/docs/en/storage-scale (mmlsquota)."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel.checks.quota.tools.quota import (
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
    parse_grace,
    parse_quota_count,
)

_KIB = 1024
_KINDS = {"USR": "user", "GRP": "group", "FILESET": "fileset"}
_NEEDED = ("quotaType", "name", "blockUsage", "blockQuota", "blockLimit", "blockInDoubt")


def read_gpfs_quota(text: str) -> list[QuotaRow]:
    """Columns by the names in the HEADER line, KiB. What is in doubt counts as used: it counts
    against the hard limit (mmlsquota(1), "Checking quotas"). Default limits are in the row (its
    remarks say d or d_fset). Where people have a quota in each
    fileset, they are named with it.

    A heading alone is no answer: nothing documents that it means that there is no quota, and what
    is not in the list may be left out of it."""
    columns, found = list[str](), list[QuotaRow]()
    for line in filter(None, map(str.strip, text.splitlines())):
        words = line.split(":")
        if len(words) < 8 or words[0] != "mmlsquota":
            raise UnexpectedQuotaOutput(line)
        if words[2] == "HEADER":
            columns = words
            continue
        found.append(_quota_row(dict(zip(columns, map(_unescape_name, words), strict=False)), line))
    if not found:
        raise UnexpectedQuotaOutput(text or "nothing at all")
    return found


def _quota_row(row: Mapping[str, str], line: str) -> QuotaRow:
    if any(name not in row for name in _NEEDED) or row["quotaType"] not in _KINDS:
        raise UnexpectedQuotaOutput(line)
    kind, fileset = _KINDS[row["quotaType"]], row.get("filesetname", "")
    apart = kind != "fileset" and row["name"] and fileset not in ("", "root")
    return QuotaRow(
        kind=kind,
        name=f"{row['name']}@{fileset}" if apart else row["name"] or fileset,
        space=_gpfs_amount(row, "block", _KIB),
        entries=_gpfs_amount(row, "files", 1) if "filesUsage" in row else None,
    )


def _gpfs_amount(row: Mapping[str, str], what: str, unit: int) -> QuotaAmount:
    used = parse_quota_count(row[f"{what}Usage"]) + parse_quota_count(
        row.get(f"{what}InDoubt") or "0"
    )
    soft, hard = parse_quota_count(row[f"{what}Quota"]), parse_quota_count(row[f"{what}Limit"])
    grace = row.get(f"{what}Grace", "none")
    left = None if grace == "none" else parse_grace(grace, bool(soft) and used > soft)
    return QuotaAmount(used=used * unit, soft=soft * unit, hard=hard * unit, grace=left)


def _unescape_name(word: str) -> str:
    """-Y output writes `:` and `%` of names as %3A and %25."""
    import re

    return re.sub(r"%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), word)
