"""mmlsquota -Y of IBM Storage Scale: https://www.ibm.com/docs/en/storage-scale (mmlsquota)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sentinel.checks.quota.tools.quota import (
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
    parse_grace,
    parse_quota_count,
    unread_row,
)

_KIB = 1024
_KINDS = {"USR": "user", "GRP": "group", "FILESET": "fileset"}
_NEEDED = (
    "quotaType",
    "name",
    "blockUsage",
    "blockQuota",
    "blockLimit",
    "blockInDoubt",
    "blockGrace",
)
_NEEDED_OF_FILES = ("filesQuota", "filesLimit", "filesGrace")
"""Columns that must be there if `filesUsage` is."""


def read_gpfs_quota(text: str) -> list[QuotaRow]:
    """Quotas from `mmlsquota -Y`; columns have the names in the HEADER line, and sizes are KiB.

    Space in doubt counts as used, since it counts against the hard limit (mmlsquota(1), "Checking
    quotas"). Default limits are in the row (its remarks say d or d_fset). If users have a quota in
    each fileset, the name contains the fileset.

    A heading without rows is not an answer: no documentation says that it means no quota, and a row
    may have been left out."""
    columns, found = list[str](), list[QuotaRow]()
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith(("mmlsquota: [W]", "mmlsquota: [I]")):
            continue  # a remark, not a row
        words = line.split(":")
        if len(words) < 8 or words[0] != "mmlsquota":
            raise UnexpectedQuotaOutput(line)
        if words[2] == "HEADER":
            columns = [*words]
            while columns[-1] == "":
                columns.pop()
            continue
        row = dict(zip(columns, map(_unescape_name, words), strict=False))
        try:
            if len(words) < len(columns):  # the line was cut, maybe in the middle of a number
                raise UnexpectedQuotaOutput(line)
            found.append(_quota_row(row, line))
        except UnexpectedQuotaOutput:
            found.append(unread_row(row.get("quotaType", "").lower(), row.get("name", ""), line))
    if all(row.unread for row in found):
        raise UnexpectedQuotaOutput(found[0].unread if found else text or "nothing at all")
    return found


def _quota_row(row: Mapping[str, str], line: str) -> QuotaRow:
    needed = (*_NEEDED, *(_NEEDED_OF_FILES if "filesUsage" in row else ()))
    if any(name not in row for name in needed) or row["quotaType"] not in _KINDS:
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
    """The name with %3A and %25 replaced by `:` and `%`, as -Y output writes them."""
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), word)
