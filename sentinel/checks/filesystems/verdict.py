"""From what a path answered, and what was seen of it before, to a finding. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import SpaceLimits, judge_usage
from sentinel.checks.filesystems.probe import PathAnswer
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.model import Finding, Status, Value, get_worst_status
from sentinel.core.mounts import Mount
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc import StuckProcess

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


class PathState(Struct, frozen=True, kw_only=True):
    """What is remembered of a path: what it once had, where its file system is mounted, and the
    probe that hangs in it."""

    mounted: bool = False
    main: str = ""
    writable: tuple[str, ...] = ()
    hangs_since: Instant | None = None
    stuck: StuckProcess | None = None


class VerdictSettings(Struct, frozen=True, kw_only=True):
    """The settings that a verdict needs. `mounted` None: as it was before."""

    warn: SpaceLimits
    crit: SpaceLimits
    mounted: bool | None
    read_only: Status


class PathObservation(Struct, frozen=True, kw_only=True):
    """One path in one run: its answer (None: never asked), the mount it leads into, and the main
    mount point of that file system, which may be mounted in several places. `own_limit`: its size
    is not that of the mount point, as where a quota of the directory is its size."""

    path: str
    answer: PathAnswer | None
    mount: Mount | None = None
    main: str = ""
    own_limit: bool = False
    at: Instant

    @property
    def is_mounted(self) -> bool:
        return bool(self.mount and self.answer and self.mount.point == self.answer.real)


def next_path_state(sight: PathObservation, seen: PathState) -> PathState:
    """What to remember now. Having been mounted or writable is never forgotten."""
    answer = sight.answer
    if answer is None:
        return seen
    if answer.hung:
        return replace(seen, hangs_since=seen.hangs_since or sight.at, stuck=answer.stuck)
    well = replace(seen, hangs_since=None, stuck=None)
    if answer.usage is None or (seen.mounted and not sight.is_mounted):
        return well
    now = sight.mount.writable_layers if sight.mount else frozenset()
    writable = tuple(sorted({*seen.writable, *now}))
    return replace(well, mounted=sight.is_mounted, main=visible(sight.main), writable=writable)


def was_answered(sight: PathObservation) -> bool:
    """Whether the file system answered, if only by a hang or an error of its own."""
    answer = sight.answer
    return answer is not None and not answer.blind and answer.error not in _UNSEEN


def is_measured(sight: PathObservation, seen: PathState, rules: VerdictSettings) -> bool:
    """Whether its own numbers are there: not those of the disk below a lost mount."""
    usage = sight.answer.usage if sight.answer else None
    return usage is not None and not _is_lost(sight, seen, rules)


def path_finding(sight: PathObservation, seen: PathState, rules: VerdictSettings) -> Finding:
    """The worst of what is wrong decides; the summary tells all of it."""
    problems = _path_problems(sight, seen, rules)
    status = get_worst_status(status for status, _ in problems)
    return Finding(
        subject=visible(sight.path),
        status=status,
        summary="; ".join(text for _, text in problems),
        values=_state_values(sight, seen, rules),
        commands=next_commands(sight.path, bool(sight.answer and sight.answer.hung))
        if status.bad
        else (),
    )


def path_values(sight: PathObservation) -> dict[str, Value]:
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
        "read_only": len(sight.mount.writable_layers) < 2 if sight.mount else None,
        **({"own_limit": True} if sight.own_limit else {}),
    }


def _state_values(
    sight: PathObservation, seen: PathState, rules: VerdictSettings
) -> dict[str, Value]:
    """Where nothing was measured, the mount point that it had: paths of one are one alert."""
    if _is_silent(sight):
        return {"mount": seen.main} if seen.main else {}
    return {} if _is_lost(sight, seen, rules) else _add_limits(path_values(sight), rules)


def _is_silent(sight: PathObservation) -> bool:
    """Whether the file system itself hangs or answers with an error."""
    broken = was_answered(sight) and sight.answer and sight.answer.usage is None
    return bool(broken and sight.answer and sight.answer.error != _GONE)


def _add_limits(found: dict[str, Value], rules: VerdictSettings) -> dict[str, Value]:
    """The shares from which on its space is bad, a limit on what is free too."""
    size = found.get("size_bytes")
    for name, limits in (("warn_percent", rules.warn), ("critical_percent", rules.crit)):
        shares = [] if limits.used is None else [float(limits.used)]
        if limits.free is not None and isinstance(size, int | float) and size > 0:
            shares.append(max(0.0, 100 - 100 * limits.free / size))
        if found and shares:
            found[name] = round(min(shares), 2)
    return found


def _path_problems(
    sight: PathObservation, seen: PathState, rules: VerdictSettings
) -> list[Problem]:
    answer = sight.answer
    if answer is None:
        return [(Status.UNKNOWN, "was not asked: too many other file systems hang")]
    if answer.hung:
        return [(Status.CRITICAL, _describe_hang(answer, seen, sight.at))]
    if answer.blind:
        return [(Status.UNKNOWN, f"could not be asked: {answer.blind}")]
    if answer.usage is None:
        return [_refused_problem(answer.error)]
    if _is_lost(sight, seen, rules):
        return [(Status.CRITICAL, _describe_elsewhere(sight))]
    return [
        judge_usage(answer.usage, rules.warn, rules.crit),
        *_read_only_problems(sight, seen, rules),
    ]


def _describe_hang(answer: PathAnswer, seen: PathState, now: Instant) -> str:
    if seen.hangs_since is None:
        return f"hangs: statfs did not answer within {duration_text(answer.waited)}"
    since = duration_text(get_elapsed_s(seen.hangs_since, now))
    if answer.stuck:
        return f"still hangs, since {since} (probe {answer.stuck.pid} is stuck; no other is sent)"
    return f"still hangs, since {since}: statfs does not answer"


def _refused_problem(error: str) -> Problem:
    if error in _UNSEEN:
        return Status.UNKNOWN, _UNSEEN[error]
    if error == _GONE:
        return Status.CRITICAL, "does not exist"
    return Status.CRITICAL, f"cannot be read: {error}"


def _is_lost(sight: PathObservation, seen: PathState, rules: VerdictSettings) -> bool:
    must = seen.mounted if rules.mounted is None else rules.mounted
    return must and not sight.is_mounted


def _describe_elsewhere(sight: PathObservation) -> str:
    if sight.mount is None:
        return "is not mounted"
    return f"is not mounted: it lies on {visible(sight.mount.point)} ({sight.mount.type})"


def _read_only_problems(
    sight: PathObservation, seen: PathState, rules: VerdictSettings
) -> list[Problem]:
    if sight.mount is None or len(sight.mount.writable_layers) == 2:
        return []
    if word := sight.mount.gave_up_option:
        return [(rules.read_only, f"{sight.mount.type} writes nothing after an error ({word})")]
    if set(seen.writable) - sight.mount.writable_layers:
        return [(rules.read_only, "has become read-only")]
    if (
        "superblock" in sight.mount.writable_layers
    ):  # a bind, or the walls around a service of systemd
        return [(Status.OK, "read-only here, its disk is writable")]
    return [(Status.OK, "read-only")]


def next_commands(path: str, hung: bool, node: str = "") -> tuple[str, ...]:
    """What to look at next, on that node where one is named: nothing that would hang as well."""
    from shlex import quote

    name = quote(visible(path))
    look = (f"df -h {name}", f"df -i {name}")
    if hung:
        look = (f"grep -F {name} /proc/mounts", "ps -eo stat,pid,wchan:32,args | grep ^D")
    return tuple(f"ssh {node} {quote(one)}" for one in look) if node else look
