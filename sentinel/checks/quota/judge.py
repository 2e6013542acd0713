"""Makes findings from quotas and targets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sentinel.checks.filesystems.limits import FileSystemUsage, SpaceLimits, judge_usage
from sentinel.checks.filesystems.remedies import (
    INODES_MEANING,
    is_short_of_inodes,
    list_usage_commands,
)
from sentinel.checks.quota.tools.quota import QuotaAmount, QuotaRow
from sentinel.checks.quota.tools.targets import StorageTarget, fullest_target, median_percent
from sentinel.core.forecast.words import format_moment
from sentinel.core.guidance import Guidance, LookingCommand
from sentinel.core.model import Finding, Status, Value, get_worst_status
from sentinel.core.text import visible
from sentinel.core.values import duration_text, format_percent, size_text

Problem = tuple[Status, str]
GRACE = 86_400.0
"""With fewer seconds of grace left than this a quota is critical, unless configured."""

_KINDS = {"data": "storage", "metadata": "metadata"}


def quota_finding(
    path: str,
    quota: QuotaRow,
    warn: SpaceLimits,
    crit: SpaceLimits,
    now: float,
    grace: float = GRACE,
) -> Finding:
    """The finding about a quota, by the limits of the check. `now` in s UTC, `grace` in seconds."""
    if quota.unread:
        return Finding(
            subject=visible(f"{path} {quota.row_title}"),
            status=Status.UNKNOWN,
            summary=visible(f"its row is not understood: {quota.unread}"),
        )
    if quota.share is None:
        problems = _space_problems(quota.space, quota.entries, warn, crit)
    else:
        problems = _share_problems(quota.share, warn, crit)
    problems += _soft_problems(quota.space, "", grace, now, size_text)
    if quota.entries:
        problems += _soft_problems(quota.entries, " of inodes", grace, now, str)
    status = get_worst_status(status for status, _ in problems)
    told = [text for degree, text in problems if degree is not Status.OK] or [problems[0][1]]
    return Finding(
        subject=visible(f"{path} {quota.row_title}"),
        status=status,
        summary="; ".join(told),
        values=_quota_values(quota),
        commands=_suggest_usage_commands(path, quota, _is_short_of_files(quota, warn, crit))
        if status.bad
        else (),
        guidance=_guide_quota(visible(path), quota, _is_short_of_files(quota, warn, crit))
        if status.bad
        else Guidance(),
    )


def _guide_quota(path: str, quota: QuotaRow, files: bool) -> Guidance:
    whose = f" of {visible(f'{quota.kind} {quota.name}')}" if quota.name else ""
    usage = quota_as_usage(quota)
    full = (bool(usage.size) and not usage.free) or (bool(usage.inodes) and not usage.inodes_free)
    soft = quota.space.over_soft or bool(quota.entries and quota.entries.over_soft)
    when = "When its grace has ended" if soft else "At the limit"
    return Guidance(
        impact=f"{'Now' if full else when} every write of its owner there fails: jobs lose logs and"
        " checkpoints.",
        todo="Its owner removes or moves what is no longer needed there; `du` below shows what is"
        f" largest.{INODES_MEANING if files else ''}",
        ask=f"raise the quota{whose} on {path}, or say where else the data may go",
    )


def _suggest_usage_commands(path: str, quota: QuotaRow, files: bool) -> tuple[LookingCommand, ...]:
    """Commands that show where the space is used; where the files are first, if their number is the
    trouble. Of a user only their own directory is read, not everybody's."""
    own = (
        f"/{quota.name}"
        if quota.kind == "user" and quota.name not in ("", *path.split("/"))
        else ""
    )
    return list_usage_commands(path.rstrip("/") + own or "/", inodes=files)


def _is_short_of_files(quota: QuotaRow, warn: SpaceLimits, crit: SpaceLimits) -> bool:
    """Whether a limit on files is crossed."""
    over = is_short_of_inodes(quota_as_usage(quota), warn, crit)
    return over or bool(quota.entries and quota.entries.over_soft)


def targets_finding(
    path: str, targets: Sequence[StorageTarget], warn: SpaceLimits, crit: SpaceLimits
) -> Finding:
    """The finding about targets. The fullest storage target and metadata target decide: a file that
    lies there cannot grow."""
    problems = [p for kind in _KINDS for p in _fullest_problems(targets, kind, warn, crit)]
    away = [t for t in targets if t.trouble]
    if away:
        names = ", ".join(visible(t.name) for t in away[:5])
        reason = visible(away[0].trouble)
        problems.append((Status.WARNING, f"{len(away)} in trouble: {names} ({reason})"))
    bad = [text for status, text in problems if status is not Status.OK]
    status = get_worst_status(status for status, _ in problems)
    return Finding(
        subject=visible(f"{path} targets"),
        status=status if problems else Status.UNKNOWN,
        summary="; ".join(bad) or "; ".join(t for _, t in problems) or "names no target",
        values=_target_values(targets),
        details=_targets_table(targets) if status.bad else "",
    )


def quota_as_usage(quota: QuotaRow) -> FileSystemUsage:
    """A quota in the form of a file system whose size is the quota's limit."""
    space, entries = quota.space, quota.entries or QuotaAmount(used=0)
    return FileSystemUsage(
        size=space.hard_end,
        used=space.used,
        free=max(0, space.hard_end - space.used) if space.hard_end else 0,
        inodes=entries.hard_end,
        inodes_free=max(0, entries.hard_end - entries.used) if entries.hard_end else 0,
        type="quota",
    )


def _space_problems(
    space: QuotaAmount, entries: QuotaAmount | None, warn: SpaceLimits, crit: SpaceLimits
) -> list[Problem]:
    """Problems of space. Shares are of the hard limit, or of the soft one if there is no other."""
    usage = quota_as_usage(QuotaRow(kind="", name="", space=space, entries=entries))
    if space.hard_end:
        return [judge_usage(usage, warn, crit)]
    return [
        (Status.OK, f"{size_text(space.used)} used, no limit"),
        *_files_problems(usage, warn, crit),
    ]


def _share_problems(share: float, warn: SpaceLimits, crit: SpaceLimits) -> list[Problem]:
    """Problems if the tool reports a percentage and no bytes."""
    text = f"{format_percent(share)} used"
    if warn.free is not None or crit.free is not None:
        blind = (Status.UNKNOWN, "the tool tells no bytes, so `free` cannot be judged")
        return [*_share_problems(share, replace(warn, free=None), replace(crit, free=None)), blind]
    for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
        if limits.used is not None and share >= limits.used:
            return [(status, f"{text} ({status.value} from {limits.used})")]
    return [(Status.OK, text)]


def _files_problems(usage: FileSystemUsage, warn: SpaceLimits, crit: SpaceLimits) -> list[Problem]:
    """Problems if only the number of files is limited."""
    share = usage.inodes_used_percent
    if share is None:
        return []
    for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
        if limits.inodes_used is not None and share >= limits.inodes_used:
            text = (
                f"{format_percent(share)} of inodes used ({status.value} from {limits.inodes_used})"
            )
            return [(status, text)]
    return []


def _soft_problems(
    amount: QuotaAmount, what: str, least: float, now: float, text: Callable[[float], str]
) -> list[Problem]:
    """The problem of an amount over its soft limit, with the end of its grace."""
    if not amount.over_soft:
        return []
    over = f"over the soft limit{what} of {text(amount.soft)}"
    if amount.grace is None:
        return [(Status.WARNING, over)]
    if amount.grace <= 0:
        return [(Status.CRITICAL, f"{over}: its grace has ended, nothing can be written")]
    near = amount.grace < least
    when = format_moment(now + amount.grace, now)
    left = duration_text(amount.grace)
    status = Status.CRITICAL if near else Status.WARNING
    return [(status, f"{over}: writing ends on {when} (in {left})")]


def _quota_values(quota: QuotaRow) -> dict[str, Value]:
    usage, space = quota_as_usage(quota), quota.space
    held = bool(space.hard_end)
    found: dict[str, Value] = {
        "used_percent": usage.used_percent if held else quota.share,
        "free_bytes": usage.free if held else None,
        "inodes_used_percent": usage.inodes_used_percent,
        "size_bytes": space.hard_end or None,
        "used_bytes": space.used if quota.share is None else None,
        "soft_bytes": space.soft or None,
        "grace_seconds": space.grace,
        "type": quota.kind,
    }
    if quota.entries:
        found["entries"] = quota.entries.used
        found["entries_limit"] = quota.entries.hard_end or None
        found["entries_grace_seconds"] = quota.entries.grace
    return found


def _fullest_problems(
    targets: Sequence[StorageTarget], kind: str, warn: SpaceLimits, crit: SpaceLimits
) -> list[Problem]:
    found = fullest_target(targets, kind)
    if found is None or found.used_percent is None:
        return []
    usual = format_percent(median_percent(targets, kind))
    text = (
        f"fullest {_KINDS[kind]} target {visible(found.name)} {format_percent(found.used_percent)} "
        f"used, {size_text(found.free)} free (median {usual})"
    )
    for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
        inodes = found.inodes_used_percent
        if limits.used is not None and found.used_percent >= limits.used:
            return [(status, f"{text} ({status.value} from {limits.used})")]
        if inodes is not None and limits.inodes_used is not None and inodes >= limits.inodes_used:
            limit = f"{status.value} from {limits.inodes_used} of inodes"
            return [(status, f"{text}, {format_percent(inodes)} of inodes used ({limit})")]
    return [(Status.OK, text)]


def _target_values(targets: Sequence[StorageTarget]) -> dict[str, Value]:
    data, metadata = fullest_target(targets, "data"), fullest_target(targets, "metadata")
    return {
        "targets": len(targets),
        "targets_away": sum(bool(t.trouble) for t in targets),
        "fullest": visible(data.name) if data else None,
        "fullest_used_percent": data.used_percent if data else None,
        "fullest_free_bytes": data.free if data else None,
        "median_used_percent": median_percent(targets, "data") if data else None,
        "metadata_used_percent": metadata.used_percent if metadata else None,
        "metadata_inodes_used_percent": metadata.inodes_used_percent if metadata else None,
    }


def _targets_table(targets: Sequence[StorageTarget]) -> str:
    """A table of the ten fullest targets."""
    measured = (t for t in targets if t.used_percent is not None)
    known = sorted(measured, key=lambda t: -(t.used_percent or 0.0))
    rows = (
        f"{visible(t.name)}  {format_percent(t.used_percent or 0.0)}  {size_text(t.free)} free"
        for t in known[:10]
    )
    return "\n".join(rows)
