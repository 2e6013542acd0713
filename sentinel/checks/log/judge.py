"""From what a log shows now, and what it showed before, to a verdict. Pure."""

from collections.abc import Mapping

from msgspec import Struct

from sentinel.checks.log.cadence import (
    UNKNOWN,
    Bounds,
    Learned,
    Limit,
    phase_limit,
    quiet_limit,
    start_limit,
)
from sentinel.checks.log.progress import GROWTH, Mark, Seen, Sight
from sentinel.checks.log.scan import MOST as MOST_RANKS
from sentinel.core.clock import SECOND, elapsed
from sentinel.core.model import Status, Value
from sentinel.core.text import visible
from sentinel.core.values import duration_text

NOTHING = Learned()

NODES = 4096
"""Characters of a hostlist that is kept with what was seen."""


class Rules(Struct, frozen=True, kw_only=True):
    """The settings that a verdict needs, in seconds. `stale_after` None: learned.

    `allow` by phase; `joining`: for all ranks to announce themselves. `one_look`: there is no
    memory, so that only the file's own time tells.
    """

    stale_after: float | None
    startup: float
    by_number: bool
    allow: Mapping[str, float] = {}
    bounds: Bounds = Bounds(floor=120, ceiling=3600)
    joining: float = 600
    one_look: bool = False


class Verdict(Struct, frozen=True, kw_only=True):
    """How bad, in words, since how many seconds, and what limit that was held against.

    `name`: the number that stood still for longest. `hung`: progress has stopped, which is what
    second witnesses and actions are asked about. `early`: by a closer look, before the limit.
    """

    status: Status
    summary: str
    quiet: float = 0.0
    limit: Limit | None = None
    name: str = GROWTH
    hung: bool = False
    early: bool = False


def judge(sight: Sight, seen: Seen, rules: Rules, learned: Learned = NOTHING) -> Verdict:
    """Stale, missing, starting or moving; `seen` is what is remembered after this look."""
    if sight.error:
        return Verdict(status=Status.UNKNOWN, summary=sight.error)
    if not sight.looks:
        return _missing(sight, seen, rules, learned)
    if stuck := _never_joined(sight, seen, rules):
        return stuck
    name, quiet, limit = _worst(sight, seen, rules, learned)
    told = _told(sight, seen, name, quiet, rules)
    if begin := _beginning(sight, seen, rules, learned):
        limit = begin
        told = f"job {_id(sight)} started {duration_text(sight.age)} ago; {told}"
    elif sight.age < rules.startup and not (rules.by_number and seen.moving):
        started = f"job {_id(sight)} started {duration_text(sight.age)} ago"
        return Verdict(status=Status.OK, summary=f"{started}; {told}", quiet=quiet, limit=limit)
    if quiet < limit.seconds:
        return Verdict(status=Status.OK, summary=told, quiet=quiet, limit=limit)
    return Verdict(
        status=Status.CRITICAL,
        summary=told + _against(seen, limit),
        quiet=quiet,
        limit=limit,
        name=name,
        hung=True,
    )


def _beginning(sight: Sight, seen: Seen, rules: Rules, learned: Learned) -> Limit | None:
    """Before the first advance of a job whose like was seen to begin, `startup` is known."""
    learning = rules.by_number and rules.stale_after is None and not rules.one_look
    if not learning or seen.moving or seen.phase or sight.job is None:
        return None
    return start_limit(learned, rules.startup, seen.spacing, rules.bounds)


def limit_of(name: str, seen: Seen, rules: Rules, learned: Learned) -> Limit:
    """How long this number may stand still just now."""
    phase = seen.phase.name if seen.phase else ""
    if phase in rules.allow:
        return Limit(rules.allow[phase], "")
    if rules.stale_after is not None:
        return Limit(rules.stale_after, "")
    if rules.one_look:
        return Limit(min(UNKNOWN, rules.bounds.ceiling), "auto: one look learns nothing")
    number = seen.marks[name].value if name in seen.marks else 0.0
    outside = quiet_limit(learned, name, number, seen.spacing, rules.bounds, seen.key)
    if not phase:
        return outside
    within = phase_limit(learned, phase, seen.spacing, rules.bounds)
    return max(within, outside, key=lambda limit: limit.seconds)


def values(sight: Sight, seen: Seen, verdict: Verdict) -> dict[str, Value]:
    """What `check` prints as JSON."""
    counted = {n: m.value for n, m in seen.marks.items() if n != GROWTH}
    first = next(iter(counted.values()), None)
    more = {visible(name): value for name, value in counted.items() if name != "progress"}
    return {
        "quiet_seconds": round(verdict.quiet, 1) if sight.looks else None,
        "size_bytes": sight.size,
        "progress": first,
        "job": _id(sight) or None,
        "path": visible(sight.file),
        "limit_seconds": round(verdict.limit.seconds, 1) if verdict.limit else None,
        "phase": visible(seen.phase.name) if seen.phase else None,
        "nodes": visible(sight.job.nodes) if sight.job and len(sight.job.nodes) < NODES else None,
        "trainer": (seen.reading.trainer or "unknown") if seen.reading else None,
        "unseen": ", ".join(seen.reading.blind) or None if seen.reading else None,
        **more,
    }


def _missing(sight: Sight, seen: Seen, rules: Rules, learned: Learned) -> Verdict:
    path = visible(sight.file)
    if seen.size >= 0:
        gone = elapsed(seen.grown, sight.at)
        limit = limit_of(next(iter(seen.marks), GROWTH), seen, rules, learned)
        return Verdict(
            status=Status.CRITICAL if gone >= limit.seconds else Status.OK,
            summary=f"{path} is gone, last seen to move {duration_text(gone)} ago",
            quiet=gone,
            limit=limit,
        )
    if sight.job is None:
        return Verdict(status=Status.UNKNOWN, summary=f"{path} does not exist; check the path")
    since = f"job {_id(sight)} started {duration_text(sight.age)} ago"
    if sight.age < rules.startup:
        return Verdict(status=Status.OK, summary=f"{since}; no log yet at {path}")
    return Verdict(status=Status.CRITICAL, summary=f"{since}, but there is no log at {path}")


def _never_joined(sight: Sight, seen: Seen, rules: Rules) -> Verdict | None:
    """Some ranks announced themselves, and nothing at all came after."""
    waiting = 1 < seen.world.size <= MOST_RANKS and not seen.ready and not seen.moving
    quiet = _silence(sight, seen, rules)
    if not waiting or len(seen.world.ranks) >= seen.world.size or quiet < rules.joining:
        return None
    ago, limit = duration_text(quiet), Limit(rules.joining, "")
    return Verdict(
        status=Status.CRITICAL,
        summary=f"stuck at initialisation for {ago}: {seen.world.words}",
        quiet=quiet,
        limit=limit,
        hung=True,
    )


def _silence(sight: Sight, seen: Seen, rules: Rules) -> float:
    if rules.one_look:
        return max(0.0, sight.at.wall / SECOND - sight.mtime)
    return elapsed(seen.grown, sight.at)


def _worst(sight: Sight, seen: Seen, rules: Rules, learned: Learned) -> tuple[str, float, Limit]:
    """The number that has stood still for the longest part of what it may."""
    if rules.one_look or not seen.marks:
        name = next(iter(seen.marks), GROWTH)
        silent = _silence(sight, seen, rules) if rules.one_look else elapsed(seen.first, sight.at)
        return name, silent, limit_of(name, seen, rules, learned)
    held = [
        (name, _quiet(sight, seen, mark), limit_of(name, seen, rules, learned))
        for name, mark in seen.marks.items()
    ]
    return max(held, key=lambda one: one[1] / one[2].seconds)


def _quiet(sight: Sight, seen: Seen, mark: Mark) -> float:
    """From the last advance or the beginning of a phase, whichever is later."""
    quiet = elapsed(mark.since, sight.at)
    return min(quiet, elapsed(seen.phase.since, sight.at)) if seen.phase else quiet


def _against(seen: Seen, limit: Limit) -> str:
    what = f"in {visible(seen.phase.name)}: stale" if seen.phase else "stale"
    why = f"; {limit.why}" if limit.why else ""
    return f" ({what} after {duration_text(limit.seconds)}{why})"


def _told(sight: Sight, seen: Seen, name: str, quiet: float, rules: Rules) -> str:
    ago = duration_text(quiet)
    number = f"{visible(name)} at {seen.marks[name].value:.15g}" if seen.marks and name else ""
    if rules.one_look:
        none = "no line matches `progress`, " if rules.by_number and not number else ""
        number = f"{number}, " if number else ""
        what = f"; {seen.reading.words}" if seen.reading else ""
        return f"{none}{number}last written {ago} ago (one look: by its modification time){what}"
    if rules.by_number and not number:
        return f"no line matches `progress`, for {ago} now"
    phase = f", in {visible(seen.phase.name)}" if seen.phase else ""
    if rules.by_number:
        return f"{number} for {ago}{phase}"
    return f"has not grown for {ago}{phase}" if quiet else f"grows ({visible(sight.file)})"


def _id(sight: Sight) -> str:
    return visible(sight.job.id) if sight.job else ""
