"""Judges a log by its present and its remembered state. Pure."""

from collections.abc import Mapping

from msgspec import Struct

from sentinel.checks.log.cadence import (
    UNKNOWN_LIMIT_S,
    LimitBounds,
    QuietLimit,
    TrainingBaseline,
    compute_phase_limit,
    compute_quiet_limit,
    compute_start_limit,
)
from sentinel.checks.log.joined_ranks import MAX_RANKS as MOST_RANKS
from sentinel.checks.log.log_state import GROWTH_NAME, LogObservation, LogState, ProgressMark
from sentinel.checks.log.metric_text import SHOWN_NAMES
from sentinel.core.clock import SECOND, get_elapsed_s
from sentinel.core.model import Status, Value
from sentinel.core.text import visible
from sentinel.core.values import duration_text

EMPTY_BASELINE = TrainingBaseline()

EARLY_LOOK_SHARE = 0.1
"""A look may come early by this share of the time between two, as in alerting.state_machine."""

MAX_NODES_CHARS = 4096
"""The longest host list that is stored, in characters."""


UNSEEN_LINE = "no line matches `progress`"
UNSEEN_METRICS = "no step is in the files of `metrics`"


class StaleRules(Struct, frozen=True, kw_only=True):
    """The settings for a verdict. Times are in seconds. If `stale_after` is None, the limit is
    learned.

    `allow` is the limit of each phase. `joining` is the time for all ranks to announce themselves.
    With `one_look` there is no memory, so only the file's own time counts. `unseen` is said while no
    number was seen.
    """

    stale_after: float | None
    startup: float  # Seconds after the start without an alarm.
    by_number: bool  # Whether numbers have to advance. Otherwise the file has to grow.
    allow: Mapping[str, float] = {}
    bounds: LimitBounds = LimitBounds(floor=120, ceiling=3600)
    """The smallest and the largest limit that may be learned."""
    joining: float = 600
    one_look: bool = False
    unseen: str = UNSEEN_LINE


class LogVerdict(Struct, frozen=True, kw_only=True):
    """The status, the text, the seconds of quiet, and the limit.

    `name` is the number that stood still for longest. `hung` means that progress has stopped. Then
    second witnesses are asked and actions requested. `early` means that a closer look found it
    before the limit.
    """

    status: Status  # How bad it is.
    summary: str  # One line for people.
    quiet: float = 0.0  # Seconds without progress, by the time of the file where that is known.
    limit: QuietLimit | None = None  # The limit for the quiet time.
    name: str = GROWTH_NAME
    hung: bool = False
    early: bool = False


def judge_log(
    sight: LogObservation,
    seen: LogState,
    rules: StaleRules,
    learned: TrainingBaseline = EMPTY_BASELINE,
) -> LogVerdict:
    """The verdict: stale, missing, starting or moving. `seen` is the LogState after this run of the
    check."""
    if sight.error:
        return LogVerdict(status=Status.UNKNOWN, summary=sight.error)
    if not sight.looks:
        return _judge_missing_log(sight, seen, rules, learned)
    if stuck := _judge_missing_ranks(sight, seen, rules):
        return stuck
    name, quiet, limit = _find_worst_number(sight, seen, rules, learned)
    begin = _find_start_limit(sight, seen, rules, learned)
    limit = begin or limit
    started = f"job {_format_job_id(sight)} started {duration_text(sight.job_age_s)} ago"
    grace = sight.job_age_s < rules.startup and not (rules.by_number and seen.has_advanced)
    starting = grace and not begin
    shown = measure_shown_quiet_s(sight, seen, quiet)
    # looks are never exact to the second: one that comes early would leave it to the next
    hung = min(shown, quiet + EARLY_LOOK_SHARE * seen.spacing) >= limit.seconds and not starting
    told = _describe_progress(sight, seen, name, shown if quiet else 0.0, rules, hung=hung)
    if begin or starting:
        told = f"{started}; {told}"
    recognised = f"; {seen.reading.summary_text}" if rules.one_look and seen.reading else ""
    if not hung:
        return LogVerdict(status=Status.OK, summary=told + recognised, quiet=shown, limit=limit)
    return LogVerdict(
        status=Status.CRITICAL,
        summary=told + _describe_limit(seen, limit) + recognised,
        quiet=shown,
        limit=limit,
        name=name,
        hung=True,
    )


def _find_start_limit(
    sight: LogObservation, seen: LogState, rules: StaleRules, learned: TrainingBaseline
) -> QuietLimit | None:
    """The learned limit before the first advance. None if the training has advanced or is in a
    phase, if nothing is learned, or if no earlier job like this one was seen to start. Then
    `startup` counts."""
    learning = rules.by_number and rules.stale_after is None and not rules.one_look
    if not learning or seen.has_advanced or seen.phase or sight.job is None:
        return None
    return compute_start_limit(learned, rules.startup, seen.spacing, rules.bounds)


def find_quiet_limit(
    name: str, seen: LogState, rules: StaleRules, learned: TrainingBaseline
) -> QuietLimit:
    """How long this number may stand still at present."""
    phase = seen.phase.name if seen.phase else ""
    if phase in rules.allow:
        return QuietLimit(rules.allow[phase], "")
    if rules.stale_after is not None:
        return QuietLimit(rules.stale_after, "")
    if rules.one_look:
        return QuietLimit(
            min(UNKNOWN_LIMIT_S, rules.bounds.ceiling), "auto: one look learns nothing"
        )
    number = seen.marks[name].value if name in seen.marks else 0.0
    outside = compute_quiet_limit(learned, name, number, seen.spacing, rules.bounds, seen.run_key)
    if not phase:
        return outside
    within = compute_phase_limit(learned, phase, seen.spacing, rules.bounds)
    return max(within, outside, key=lambda limit: limit.seconds)


def list_log_values(sight: LogObservation, seen: LogState, verdict: LogVerdict) -> dict[str, Value]:
    """The values that `check` prints as JSON."""
    counted = {n: m.value for n, m in seen.marks.items() if n != GROWTH_NAME}
    more = {visible(name): value for name, value in counted.items() if name != "progress"}
    return {
        "quiet_seconds": round(verdict.quiet, 1) if sight.looks else None,
        "size_bytes": sight.size_bytes,
        "progress": seen.step,
        "job": _format_job_id(sight) or None,
        "path": visible(sight.shown_path),
        "limit_seconds": round(verdict.limit.seconds, 1) if verdict.limit else None,
        "phase": visible(seen.phase.name) if seen.phase else None,
        "nodes": visible(sight.job.nodes)
        if sight.job and len(sight.job.nodes) < MAX_NODES_CHARS
        else None,
        **{e.name: e.value for e in sight.events if e.what == "value" and e.name in SHOWN_NAMES},
        "trainer": (seen.reading.first_trainer or "unknown") if seen.reading else None,
        "unseen": ", ".join(seen.reading.missing_values) or None if seen.reading else None,
        **more,
    }


def measure_shown_quiet_s(sight: LogObservation, seen: LogState, quiet: float) -> float:
    """Seconds in which nothing advanced: since the file was written last, which may be a whole look
    before it was noticed, and looks come late. A time long before that is one of a file server's clock
    that is behind."""
    written = sight.at.wall / SECOND - sight.modified_at_s
    return written if quiet < written <= quiet + 2 * seen.spacing else quiet


def _judge_missing_log(
    sight: LogObservation, seen: LogState, rules: StaleRules, learned: TrainingBaseline
) -> LogVerdict:
    path = visible(sight.shown_path)
    if seen.size_bytes >= 0:
        gone = get_elapsed_s(seen.grown, sight.at)
        limit = find_quiet_limit(next(iter(seen.marks), GROWTH_NAME), seen, rules, learned)
        return LogVerdict(
            status=Status.CRITICAL if gone >= limit.seconds else Status.OK,
            summary=f"{path} is gone, last seen to move {duration_text(gone)} ago",
            quiet=gone,
            limit=limit,
        )
    if sight.job is None:
        return LogVerdict(status=Status.UNKNOWN, summary=f"{path} does not exist; check the path")
    since = f"job {_format_job_id(sight)} started {duration_text(sight.job_age_s)} ago"
    if sight.job_age_s < rules.startup:
        return LogVerdict(status=Status.OK, summary=f"{since}; no log yet at {path}")
    return LogVerdict(status=Status.CRITICAL, summary=f"{since}, but there is no log at {path}")


def _judge_missing_ranks(
    sight: LogObservation, seen: LogState, rules: StaleRules
) -> LogVerdict | None:
    """The verdict if only some ranks have announced themselves and nothing came for `joining`
    seconds. None otherwise."""
    waiting = 1 < seen.world.size <= MOST_RANKS and not seen.ready and not seen.has_advanced
    quiet = _measure_silence_s(sight, seen, rules)
    if not waiting or len(seen.world.ranks) >= seen.world.size or quiet < rules.joining:
        return None
    shown = measure_shown_quiet_s(sight, seen, quiet)
    return LogVerdict(
        status=Status.CRITICAL,
        summary=f"stuck at initialisation for {duration_text(shown)}: {seen.world.summary_text}",
        quiet=shown,
        limit=QuietLimit(rules.joining, ""),
        hung=True,
    )


def _measure_silence_s(sight: LogObservation, seen: LogState, rules: StaleRules) -> float:
    if rules.one_look:
        return max(0.0, sight.at.wall / SECOND - sight.modified_at_s)
    return get_elapsed_s(seen.grown, sight.at)


def _find_worst_number(
    sight: LogObservation, seen: LogState, rules: StaleRules, learned: TrainingBaseline
) -> tuple[str, float, QuietLimit]:
    """The number that has used the largest part of its limit, its quiet time in seconds, and its
    limit."""
    if rules.one_look or not seen.marks:
        name = next(iter(seen.marks), GROWTH_NAME)
        silent = (
            _measure_silence_s(sight, seen, rules)
            if rules.one_look
            else get_elapsed_s(seen.first, sight.at)
        )
        return name, silent, find_quiet_limit(name, seen, rules, learned)
    held = [
        (name, _measure_quiet_s(sight, seen, mark), find_quiet_limit(name, seen, rules, learned))
        for name, mark in seen.marks.items()
    ]
    return max(held, key=lambda one: one[1] / one[2].seconds)


def _measure_quiet_s(sight: LogObservation, seen: LogState, mark: ProgressMark) -> float:
    """Seconds since the last advance or the beginning of a phase, whichever is later."""
    quiet = get_elapsed_s(mark.since, sight.at)
    return min(quiet, get_elapsed_s(seen.phase.since, sight.at)) if seen.phase else quiet


def _describe_limit(seen: LogState, limit: QuietLimit) -> str:
    what = f"limit in {visible(seen.phase.name)}" if seen.phase else "limit"
    why = f"; {limit.why}" if limit.why else ""
    return f" ({what} {duration_text(limit.seconds)}{why})"


def _describe_progress(
    sight: LogObservation, seen: LogState, name: str, quiet: float, rules: StaleRules, *, hung: bool
) -> str:
    ago = duration_text(quiet)
    number = f"{visible(name)} {seen.marks[name].value:.15g}" if seen.marks and name else ""
    if rules.one_look:
        none = f"{rules.unseen}, " if rules.by_number and not number else ""
        number = f"at {number}, " if number else ""
        return f"{none}{number}last written {ago} ago (one look: by its modification time)"
    if rules.by_number and not number:
        return f"{rules.unseen}, for {ago} now"
    phase = f", in {visible(seen.phase.name)}" if seen.phase else ""
    if rules.by_number and hung:
        return f"no progress for {ago}, still at {number}{phase}"
    if rules.by_number:
        moves = "advancing" if seen.marks[name].moves else "no step seen yet"
        return f"at {number}{f' for {ago}' if quiet >= 1 else f', {moves}'}{phase}"
    return f"has not grown for {ago}{phase}" if quiet else f"grows ({visible(sight.shown_path)})"


def _format_job_id(sight: LogObservation) -> str:
    return visible(sight.job.id) if sight.job else ""
