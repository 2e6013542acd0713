"""Makes a finding from a path's answer and its earlier state. Pure."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.filesystems.ext4_errors import RecordedErrors
from sentinel.checks.filesystems.limits import FileSystemUsage, SpaceLimits, judge_usage
from sentinel.checks.filesystems.probe import PathAnswer
from sentinel.checks.filesystems.remedies import (
    GONE,
    NOT_THERE,
    guide_full,
    guide_hang,
    guide_lost,
    guide_read_only,
    guide_refusal,
    is_short_of_inodes,
    list_lost_commands,
    list_mount_commands,
    list_usage_commands,
    may_be_walked,
)
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.guidance import ADMINISTRATOR, ActingCommand, Guidance, LookingCommand, look
from sentinel.core.model import Finding, Status, Value, get_worst_status
from sentinel.core.mounts import Mount
from sentinel.core.text import visible
from sentinel.core.values import clock_text, duration_text
from sentinel.proc import StuckProcess

# Errors about the question, not about the file system, of those that statfs(2) names, and more. They do
# not say how the file system is.
LOOP = "Too many levels of symbolic links"
_UNSEEN = {
    "Permission denied": "may not be looked at: permission denied on the way to it",
    "Not a directory": "is not a directory; give the directory that is to be watched",
    LOOP: "is a loop of symbolic links",
    "File name too long": "has too long a name",
    "Function not implemented": "tells nothing of its size: its driver knows no statfs",
    "Operation not supported": "tells nothing of its size: its driver knows no statfs",
    "Operation not permitted": "is not open to the user who runs this",
    "Too many open files in system": "could not be asked: this machine has too many open files",
    "Too many open files": "could not be asked: this process has too many open files",
    "Interrupted system call": "could not be asked: a signal came between",
    "Value too large for defined data type": "has a number that does not fit: a tool of 32 bits asked it",
    "Cannot allocate memory": "could not be asked: this machine has no memory left",
}
_KEY_PATTERN = re.compile(r"\b(?:Required key|Key (?:has|was)) [^\n:]*")
"""ENOKEY, EKEYEXPIRED, EKEYREVOKED and EKEYREJECTED: NFS, CIFS, AFS and fscrypt give them to whoever
has no valid ticket or key (keyrings(7))."""
DO_NOT_LOOK = "`ls` or `cd` there would hang too"
KEPT = ("used_percent", "free_bytes", "inodes_used_percent", "write_seconds")
LARGEST = 20
"""Trees and quotas of one check whose size is kept too, so that one sees who grew."""
Problem = tuple[Status, str]


class PathState(Struct, frozen=True, kw_only=True):
    """What is remembered about a path: its earlier properties, the mount point of its file system, and the
    probe that hangs in it.

    `errors` is the number of its mount, and how many errors ext4 had recorded when that mount was
    first seen.
    """

    mounted: bool = False  # Whether it was a mount point.
    main: str = ""  # Where its file system is mounted.
    writable: tuple[str, ...] = ()  # The parts that were writable before: `mount`, `superblock`.
    hangs_since: Instant | None = None  # Since when it hangs.
    stuck: StuckProcess | None = None  # The child process that hangs.
    errors: tuple[int, int] | None = None


class VerdictSettings(Struct, frozen=True, kw_only=True):
    """The settings that a verdict needs. `mounted` None: as it was before."""

    warn: SpaceLimits  # Limits of a warning.
    crit: SpaceLimits  # Limits of a critical alert.
    mounted: bool | None
    read_only: Status  # How bad it is that it has become read-only.


class PathObservation(Struct, frozen=True, kw_only=True):
    """The observation of one path in one run.

    It has the answer (None: not asked), the mount of the path, and the main mount point of that
    file system, which may be mounted in several places. `own_limit`: its size differs from that of
    the mount point, e.g. because of a quota on the directory.
    """

    path: str  # The path.
    answer: PathAnswer | None  # What it answered; None: never asked.
    mount: Mount | None = None  # The mount that the path is on.
    main: str = ""  # The main mount point of that file system.
    own_limit: bool = False
    errors: RecordedErrors | None = None  # Errors that ext4 has recorded.
    at: Instant  # When it was checked.

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
    return replace(
        well,
        mounted=sight.is_mounted,
        main=visible(sight.main),
        writable=writable,
        errors=_first_errors(sight, seen),
    )


def _first_errors(sight: PathObservation, seen: PathState) -> tuple[int, int] | None:
    """The number of the mount and the errors that were recorded when it was first seen."""
    if sight.mount is None or sight.errors is None:
        return None
    if seen.errors is not None and seen.errors[0] == sight.mount.id:
        return seen.errors
    return sight.mount.id, sight.errors.count


def was_answered(sight: PathObservation) -> bool:
    """Whether the file system answered, if only by a hang or an error of its own."""
    answer = sight.answer
    return answer is not None and not answer.blind and not explain_question(answer.error)


def explain_question(why: str) -> str:
    """Why an error, in the C library's words, says nothing about the file system. Empty if it says
    something."""
    if key := _KEY_PATTERN.search(why):
        return f"may not be looked at without a valid ticket (Kerberos) or key: {key[0].lower()}"
    return next((words for error, words in _UNSEEN.items() if error in why), "")


def is_measured(sight: PathObservation, seen: PathState, rules: VerdictSettings) -> bool:
    """Whether its own numbers are there: not those of the disk below a lost mount."""
    usage = sight.answer.usage if sight.answer else None
    return usage is not None and not _is_lost(sight, seen, rules)


def path_finding(sight: PathObservation, seen: PathState, rules: VerdictSettings) -> Finding:
    """The finding about a path. The worst problem gives the status. The summary names all problems."""
    problems = _path_problems(sight, seen, rules)
    status = get_worst_status(status for status, _ in problems)
    return Finding(
        subject=visible(sight.path),
        status=status,
        summary="; ".join(text for _, text in problems),
        values=_state_values(sight, seen, rules),
        commands=_suggest_path_commands(sight, seen, rules) if status.bad else (),
        acts=_suggest_mount(sight) if status.bad and _is_lost(sight, seen, rules) else (),
        guidance=_guide_path(sight, seen, rules, status) if status.bad else Guidance(),
    )


def _guide_path(
    sight: PathObservation, seen: PathState, rules: VerdictSettings, status: Status
) -> Guidance:
    path, answer = visible(sight.path), sight.answer
    if answer is not None and answer.hung:
        return guide_hang(path)
    if answer is not None and answer.usage is None:
        return guide_refusal(path, visible(answer.error))
    if _is_lost(sight, seen, rules):
        return guide_lost(path)
    if _read_only_problems(sight, seen, rules) or _recorded_problems(sight, seen, rules):
        return guide_read_only(path)
    usage = answer.usage if answer else None
    if usage is None:
        return guide_full(path, status=status)
    inodes = is_short_of_inodes(usage, rules.warn, rules.crit)
    walked = _may_be_walked(sight, usage)
    return guide_full(path, status=status, inodes=inodes, walked=walked, kind=usage.type)


def _suggest_path_commands(
    sight: PathObservation, seen: PathState, rules: VerdictSettings
) -> tuple[LookingCommand, ...]:
    usage = sight.answer.usage if sight.answer else None
    if sight.answer and sight.answer.hung:
        return list_mount_commands(sight.path, hung=True)
    if not _is_lost(sight, seen, rules):
        if usage is None or not judge_usage(usage, rules.warn, rules.crit)[0].bad:
            return list_mount_commands(sight.path, hung=False)
        if not _may_be_walked(sight, usage):
            return (look("df -h {}", sight.path),)
        inodes = is_short_of_inodes(usage, rules.warn, rules.crit)
        return list_usage_commands(sight.path, inodes=inodes)
    if _is_silent(sight):  # a stale handle stays until the old mount is gone
        return list_lost_commands(sight.path)[1], look("df -h {}", sight.path)
    return list_lost_commands(sight.path)


def _suggest_mount(sight: PathObservation) -> tuple[ActingCommand, ...]:
    """A stale handle stays until the old mount is gone."""
    hung = bool(sight.answer and sight.answer.hung)
    if hung or not _is_silent(sight):
        return ()
    return (
        ActingCommand(
            owner=ADMINISTRATOR, argv=("umount", "-l", sight.path), then=("mount", sight.path)
        ),
    )


def _may_be_walked(sight: PathObservation, usage: FileSystemUsage) -> bool:
    return may_be_walked(sight.mount.type if sight.mount else usage.type)


def path_values(sight: PathObservation) -> dict[str, Value]:
    """The values that `check` prints in its table and as JSON. Empty if nothing was measured."""
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
    return bool(broken and sight.answer and sight.answer.error != GONE)


def _add_limits(found: dict[str, Value], rules: VerdictSettings) -> dict[str, Value]:
    """Add the limits for its space, as shares and as free bytes."""
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
    used = judge_usage(answer.usage, rules.warn, rules.crit)
    if used[0].bad and sight.mount and sight.mount.is_image and not seen.writable:
        used = Status.OK, f"answers; an image ({sight.mount.type}) is full by its nature"
    return [
        used,
        *(_read_only_problems(sight, seen, rules) or _recorded_problems(sight, seen, rules)),
    ]


def _describe_hang(answer: PathAnswer, seen: PathState, now: Instant) -> str:
    if seen.hangs_since is None:
        return f"no answer within {duration_text(answer.waited)}; {DO_NOT_LOOK}"
    since = duration_text(get_elapsed_s(seen.hangs_since, now))
    if answer.stuck:
        return f"no answer for {since} (probe {answer.stuck.pid} is stuck; no other is sent); {DO_NOT_LOOK}"
    return f"no answer for {since}; {DO_NOT_LOOK}"


def _refused_problem(error: str) -> Problem:
    if question := explain_question(error):
        return Status.UNKNOWN, question
    if error == GONE:
        return Status.CRITICAL, NOT_THERE
    return Status.CRITICAL, f"cannot be read: {error}"


def _is_lost(sight: PathObservation, seen: PathState, rules: VerdictSettings) -> bool:
    must = seen.mounted if rules.mounted is None else rules.mounted
    return must and not sight.is_mounted


def _describe_elsewhere(sight: PathObservation) -> str:
    if sight.mount is None:
        return "is not mounted"
    return f"is not mounted: what is written there goes to {visible(sight.mount.point)} ({sight.mount.type})"


def _read_only_problems(
    sight: PathObservation, seen: PathState, rules: VerdictSettings
) -> list[Problem]:
    if sight.mount is None or len(sight.mount.writable_layers) == 2:
        return []
    if word := sight.mount.gave_up_option:
        return [(rules.read_only, f"{sight.mount.type} writes nothing after an error ({word})")]
    if sight.mount.lost_writing or set(seen.writable) - sight.mount.writable_layers:
        return [(rules.read_only, "has become read-only")]
    if (
        "superblock" in sight.mount.writable_layers
    ):  # a bind mount, or the sandbox of a systemd service
        return [(Status.OK, "read-only here, its disk is writable")]
    return [(Status.OK, "read-only")]


def _recorded_problems(
    sight: PathObservation, seen: PathState, rules: VerdictSettings
) -> list[Problem]:
    """Errors since the boot of which the mount table says nothing. One that came while this mount
    stood has ended writing where it is mounted so; of an older one nobody knows."""
    errors, mount = sight.errors, sight.mount
    if mount is None or errors is None or not errors.count:
        return []
    ago = sight.at.wall / SECOND - errors.last
    if ago > sight.at.mono / SECOND:  # this was before the boot
        return []
    many = "an error" if errors.count == 1 else f"{errors.count} errors"
    text = f"ext4 has recorded {many}, the last {clock_text(errors.last, sight.at.wall / SECOND)}"
    first = _first_errors(sight, seen)
    if first and errors.count > first[1] and "errors=remount-ro" in mount.super_options:
        return [(rules.read_only, f"{text}: it writes nothing until it is checked (e2fsck)")]
    return [(Status.WARNING, f"{text}: check it (e2fsck), and whether it can still be written")]
