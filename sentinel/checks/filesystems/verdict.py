"""From what a path answered, and what was seen of it before, to a finding. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import Limits, judge
from sentinel.checks.filesystems.probe import Answer
from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Finding, Status, Value, worst
from sentinel.core.mounts import Mount
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc import Stuck

# Errors about the question, not about the file system: nothing was seen of it.
_UNSEEN = {
    "Permission denied": "may not be looked at: permission denied on the way to it",
    "Not a directory": "is not a directory; give the directory that is to be watched",
    "Too many levels of symbolic links": "is a loop of symbolic links",
    "File name too long": "has too long a name",
    "Required key not available": "may not be looked at without a ticket (Kerberos): none is there",
    "Key has expired": "may not be looked at: the ticket (Kerberos) has expired",
}
_GONE = "No such file or directory"
KEPT = ("used_percent", "free_bytes", "inodes_used_percent", "write_seconds")
LARGEST = 20
"""Trees and quotas of one check whose size is kept too, so that one sees who grew."""
Problem = tuple[Status, str]


class Seen(Struct, frozen=True, kw_only=True):
    """What is remembered of a path: what it once had, where its file system is mounted, and the
    probe that hangs in it."""

    mounted: bool = False
    main: str = ""
    writable: tuple[str, ...] = ()
    hangs_since: Instant | None = None
    stuck: Stuck | None = None


class Rules(Struct, frozen=True, kw_only=True):
    """The settings that a verdict needs. `mounted` None: as it was before."""

    warn: Limits
    crit: Limits
    mounted: bool | None
    read_only: Status


class Sight(Struct, frozen=True, kw_only=True):
    """One path in one run: its answer (None: never asked), the mount it leads into, and the main
    mount point of that file system, which may be mounted in several places. `own_limit`: its size
    is not that of the mount point, as where a quota of the directory is its size."""

    path: str
    answer: Answer | None
    mount: Mount | None = None
    main: str = ""
    own_limit: bool = False
    at: Instant

    @property
    def mounted(self) -> bool:
        return bool(self.mount and self.answer and self.mount.point == self.answer.real)


def remembered(sight: Sight, seen: Seen) -> Seen:
    """What to remember now. Having been mounted or writable is never forgotten."""
    answer = sight.answer
    if answer is None:
        return seen
    if answer.hung:
        return replace(seen, hangs_since=seen.hangs_since or sight.at, stuck=answer.stuck)
    well = replace(seen, hangs_since=None, stuck=None)
    if answer.usage is None or (seen.mounted and not sight.mounted):
        return well
    now = sight.mount.writable if sight.mount else frozenset()
    writable = tuple(sorted({*seen.writable, *now}))
    return replace(well, mounted=sight.mounted, main=visible(sight.main), writable=writable)


def seen_at_all(sight: Sight) -> bool:
    """Whether the file system answered, if only by a hang or an error of its own."""
    answer = sight.answer
    return answer is not None and not answer.blind and answer.error not in _UNSEEN


def measured(sight: Sight, seen: Seen, rules: Rules) -> bool:
    """Whether its own numbers are there: not those of the disk below a lost mount."""
    usage = sight.answer.usage if sight.answer else None
    return usage is not None and not _lost(sight, seen, rules)


def finding(sight: Sight, seen: Seen, rules: Rules) -> Finding:
    """The worst of what is wrong decides; the summary tells all of it."""
    problems = _problems(sight, seen, rules)
    status = worst(status for status, _ in problems)
    return Finding(
        subject=visible(sight.path),
        status=status,
        summary="; ".join(text for _, text in problems),
        values=_values(sight, seen, rules),
        commands=commands(sight.path, bool(sight.answer and sight.answer.hung))
        if status.bad
        else (),
    )


def values(sight: Sight) -> dict[str, Value]:
    """What `check` prints in its table and as JSON; empty where nothing was measured."""
    usage = sight.answer.usage if sight.answer else None
    if usage is None:
        return {}
    return {
        "used_percent": usage.used_percent,
        "free_bytes": usage.free,
        "inodes_used_percent": usage.inodes_used_percent,
        "size_bytes": usage.size,
        "used_bytes": usage.used,
        "inodes": usage.inodes,
        "inodes_free": usage.inodes_free,
        "type": sight.mount.type if sight.mount else usage.type,
        "mount": visible(sight.main or sight.mount.point) if sight.mount else None,
        "read_only": len(sight.mount.writable) < 2 if sight.mount else None,
        **({"own_limit": True} if sight.own_limit else {}),
    }


def _values(sight: Sight, seen: Seen, rules: Rules) -> dict[str, Value]:
    """Where nothing was measured, the mount point that it had: paths of one are one alert."""
    if _silent(sight):
        return {"mount": seen.main} if seen.main else {}
    return {} if _lost(sight, seen, rules) else _with_limits(values(sight), rules)


def _silent(sight: Sight) -> bool:
    """Whether the file system itself hangs or answers with an error."""
    broken = seen_at_all(sight) and sight.answer and sight.answer.usage is None
    return bool(broken and sight.answer and sight.answer.error != _GONE)


def _with_limits(found: dict[str, Value], rules: Rules) -> dict[str, Value]:
    """The shares from which on its space is bad, a limit on what is free too."""
    size = found.get("size_bytes")
    for name, limits in (("warn_percent", rules.warn), ("critical_percent", rules.crit)):
        shares = [] if limits.used is None else [float(limits.used)]
        if limits.free is not None and isinstance(size, int | float) and size > 0:
            shares.append(max(0.0, 100 - 100 * limits.free / size))
        if found and shares:
            found[name] = round(min(shares), 2)
    return found


def _problems(sight: Sight, seen: Seen, rules: Rules) -> list[Problem]:
    answer = sight.answer
    if answer is None:
        return [(Status.UNKNOWN, "was not asked: too many other file systems hang")]
    if answer.hung:
        return [(Status.CRITICAL, _hang(answer, seen, sight.at))]
    if answer.blind:
        return [(Status.UNKNOWN, f"could not be asked: {answer.blind}")]
    if answer.usage is None:
        return [_refused(answer.error)]
    if _lost(sight, seen, rules):
        return [(Status.CRITICAL, _elsewhere(sight))]
    return [judge(answer.usage, rules.warn, rules.crit), *_read_only(sight, seen, rules)]


def _hang(answer: Answer, seen: Seen, now: Instant) -> str:
    if seen.hangs_since is None:
        return f"hangs: statfs did not answer within {duration_text(answer.waited)}"
    since = duration_text(elapsed(seen.hangs_since, now))
    if answer.stuck:
        return f"still hangs, since {since} (probe {answer.stuck.pid} is stuck; no other is sent)"
    return f"still hangs, since {since}: statfs does not answer"


def _refused(error: str) -> Problem:
    if error in _UNSEEN:
        return Status.UNKNOWN, _UNSEEN[error]
    if error == _GONE:
        return Status.CRITICAL, "does not exist"
    return Status.CRITICAL, f"cannot be read: {error}"


def _lost(sight: Sight, seen: Seen, rules: Rules) -> bool:
    must = seen.mounted if rules.mounted is None else rules.mounted
    return must and not sight.mounted


def _elsewhere(sight: Sight) -> str:
    if sight.mount is None:
        return "is not mounted"
    return f"is not mounted: it lies on {visible(sight.mount.point)} ({sight.mount.type})"


def _read_only(sight: Sight, seen: Seen, rules: Rules) -> list[Problem]:
    if sight.mount is None or len(sight.mount.writable) == 2:
        return []
    if word := sight.mount.gave_up:
        return [(rules.read_only, f"{sight.mount.type} writes nothing after an error ({word})")]
    if set(seen.writable) - sight.mount.writable:
        return [(rules.read_only, "has become read-only")]
    if "superblock" in sight.mount.writable:  # a bind, or the walls around a service of systemd
        return [(Status.OK, "read-only here, its disk is writable")]
    return [(Status.OK, "read-only")]


def commands(path: str, hung: bool, node: str = "") -> tuple[str, ...]:
    """What to look at next, on that node where one is named: nothing that would hang as well."""
    from shlex import quote

    name = quote(visible(path))
    look = (f"df -h {name}", f"df -i {name}")
    if hung:
        look = (f"grep -F {name} /proc/mounts", "ps -eo stat,pid,wchan:32,args | grep ^D")
    return tuple(f"ssh {node} {quote(one)}" for one in look) if node else look
