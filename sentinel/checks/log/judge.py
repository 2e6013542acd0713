"""From what a log shows now, and what it showed before, to a finding. Pure."""

import re
from collections import deque

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.files import Look
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status, Value
from sentinel.core.slurm import Job
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text


class Seen(Struct, frozen=True, kw_only=True):
    """What is remembered of one log in one run of a job: when it last moved, and from where.

    `started` tells a requeued job from its former run, whose log says nothing about it.
    """

    path: str
    since: Instant
    started: int | None = None
    size: int = -1
    inode: str = ""
    number: float | None = None


class Sight(Struct, frozen=True, kw_only=True):
    """One log now. `look` None: no file; `error`: nothing could be seen."""

    path: str
    at: Instant
    job: Job | None = None
    look: Look | None = None
    number: float | None = None
    error: str = ""
    tail: str = ""

    @property
    def age(self) -> float:
        """Seconds since the job started; without a job the log is older than anything."""
        started = self.job.started if self.job else None
        return float("inf") if started is None else max(0.0, self.at.wall / SECOND - started)


class Rules(Struct, frozen=True, kw_only=True):
    """The settings that a verdict needs, in seconds. `one_look`: there is no memory."""

    stale_after: float
    startup: float
    by_number: bool
    one_look: bool = False


class Verdict(Struct, frozen=True, kw_only=True):
    status: Status
    summary: str
    quiet: float = 0.0


def number_in(text: str, pattern: "re.Pattern[str]") -> float | None:
    """What the last finished line that matches captures; None where none does.

    A line that is still being written may hold half a number. Raises CannotTell when the
    captured text is no number.
    """
    finished = max(text.rfind("\n"), text.rfind("\r"))
    matches = deque(pattern.finditer(text if finished < 0 else text[:finished]), maxlen=1)
    if not matches:
        return None
    captured = str(matches[0][1])
    try:
        return float(captured.replace(",", "").replace("_", ""))
    except ValueError:
        raise CannotTell(
            f"`progress` captured {visible(shortened(captured, 60))!r}, which is no number"
        ) from None


def remembered(sight: Sight, seen: Seen | None, rules: Rules) -> Seen:
    """What to remember now; a log that was replaced or cut, or a lower number, has moved."""
    started = sight.job.started if sight.job else None
    if seen is None or (seen.path, seen.started) != (sight.path, started):
        seen = Seen(path=sight.path, since=sight.at, started=started)
    if sight.error or sight.look is None:
        return seen
    size, inode = sight.look.size, sight.look.inode
    number = seen.number if sight.number is None else sight.number
    moved = number != seen.number if rules.by_number else (size, inode) != (seen.size, seen.inode)
    since = sight.at if moved else seen.since
    return replace(seen, since=since, size=size, inode=inode, number=number)


def judge(sight: Sight, seen: Seen, rules: Rules) -> Verdict:
    """Stale, missing, starting or moving; `seen` is what is remembered after this look."""
    if sight.error:
        return Verdict(status=Status.UNKNOWN, summary=sight.error)
    if sight.look is None:
        return _missing(sight, seen, rules)
    quiet = _quiet(sight, sight.look, seen, rules)
    told = _told(sight, seen, quiet, rules)
    unproven = rules.by_number and seen.number is None
    if sight.age < rules.startup and (unproven or not rules.by_number):
        started = f"job {_id(sight)} started {duration_text(sight.age)} ago"
        return Verdict(status=Status.OK, summary=f"{started}; {told}", quiet=quiet)
    if quiet >= rules.stale_after:
        limit = f" (stale after {duration_text(rules.stale_after)})"
        return Verdict(status=Status.CRITICAL, summary=told + limit, quiet=quiet)
    return Verdict(status=Status.OK, summary=told, quiet=quiet)


def values(sight: Sight, seen: Seen, verdict: Verdict) -> dict[str, Value]:
    """What `check` prints as JSON."""
    return {
        "quiet_seconds": round(verdict.quiet, 1) if sight.look else None,
        "size_bytes": sight.look.size if sight.look else None,
        "progress": seen.number,
        "job": _id(sight) or None,
        "path": visible(sight.path),
    }


def _missing(sight: Sight, seen: Seen, rules: Rules) -> Verdict:
    path = visible(sight.path)
    if seen.size >= 0:
        gone = elapsed(seen.since, sight.at)
        status = Status.CRITICAL if gone >= rules.stale_after else Status.OK
        return Verdict(
            status=status,
            summary=f"{path} is gone, last seen to move {duration_text(gone)} ago",
            quiet=gone,
        )
    if sight.job is None:
        return Verdict(status=Status.UNKNOWN, summary=f"{path} does not exist; check the path")
    since = f"job {_id(sight)} started {duration_text(sight.age)} ago"
    if sight.age < rules.startup:
        return Verdict(status=Status.OK, summary=f"{since}; no log yet at {path}")
    return Verdict(status=Status.CRITICAL, summary=f"{since}, but there is no log at {path}")


def _quiet(sight: Sight, look: Look, seen: Seen, rules: Rules) -> float:
    if rules.one_look:
        return max(0.0, sight.at.wall / SECOND - look.mtime)
    return elapsed(seen.since, sight.at)


def _told(sight: Sight, seen: Seen, quiet: float, rules: Rules) -> str:
    ago = duration_text(quiet)
    if rules.one_look:
        number = f"progress at {seen.number:g}, " if seen.number is not None else ""
        none = "no line matches `progress`, " if rules.by_number and not number else ""
        return f"{none}{number}last written {ago} ago (one look: by its modification time)"
    if rules.by_number and seen.number is None:
        return f"no line matches `progress`, for {ago} now"
    if rules.by_number:
        return f"progress at {seen.number:.15g} for {ago}"
    return f"has not grown for {ago}" if quiet else f"grows ({visible(sight.path)})"


def _id(sight: Sight) -> str:
    return visible(sight.job.id) if sight.job else ""
