"""Decides when the nodes of a quiet training are examined, long before there is an alarm. Pure.

This notifies nobody by itself. The number of looks is limited: the first is due at twice the usual
quiet time, the next each time the quiet time has doubled (see compute_next_pair_s). There is also a
daily limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.cadence import Cadence, TrainingBaseline
from sentinel.checks.log.log_state import GROWTH_NAME, LogObservation, LogState
from sentinel.checks.log.progress import JUMP_FADING_FACTOR
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Submission

MIN_SUSPECT_QUIET_S = 30.0
"""A quiet time below this many seconds causes no look, because a line may wait in a buffer."""
NEGLIGIBLE_QUIET_S = 10.0
"""A quiet time below this many seconds never counts, however short the steps are."""
QUIET_FACTOR = 2.0
"""A look is due at the usual quiet time multiplied by this. The same factor applies to each further
look."""
MIN_MOVES = 3
"""How many runs must have seen progress first. So a training that starts or compiles is not
suspected."""
MAX_DAILY_LOOKS = 40
"""How many looks at the nodes of a job are made in 24 hours."""
DAY_S = 86400.0
PAIR_LOOKS = 2
"""How many looks are compared."""
SLOWER_FACTOR = 1.5
"""If an advance takes the usual time multiplied by this, the nodes are asked which rank is behind.
"""
MIN_DENSE_ADVANCES = 5
"""If there were this many advances between two runs of the check, their duration is known well
enough."""
STEADY_FACTOR = 0.9
"""The weight of the old value in the usual duration of an advance, at each run that was not slower.
"""
MAX_NAMED_RANKS = 2
"""How many ranks are named as those that are behind."""
MIN_SLOW_LOOKS = 3
"""How many runs in a row must be slower. Each further time, twice as many are needed."""


class CloserLookState(Struct, frozen=True, kw_only=True):
    """What is remembered of one run of a job.

    run: Identifies the run among others (LogState.run_key).
    step: Seconds between two advances, the longest recent value.
    late: Seconds without output before the run that saw the last advance.
    looks: How many looks were made since `day`.
    due: The quiet time in seconds at which the next looks are due.
    told: What was found, while the training stands still.
    nodes: The nodes of the culprit.
    fault: What is wrong with the culprit's node itself.
    how: How the job was submitted.
    whole: The next look is at all nodes, not at a sample of them.
    partial: The quiet time at which the last pair lacked something. Then the next pair comes at
        once.
    asked: Actions were requested because of it.
    launched: See sentinel.stacks.closer.
    pace: Seconds of an advance while the training is well.
    slow: How many runs in a row were slower.
    seek: At this value of `slow`, the nodes are asked which rank is behind.
    lag: The ranks that the last pair of looks found behind.
    behind: The same in words, when two pairs agree.
    """

    run: str = ""
    step: float = 0.0
    late: float = 0.0
    day: Instant | None = None
    looks: int = 0
    due: float = 0.0
    told: str = ""
    nodes: tuple[str, ...] = ()
    fault: str = ""
    how: Submission | None = None
    pace: float = 0.0
    slow: int = 0
    seek: int = MIN_SLOW_LOOKS
    lag: tuple[int, ...] = ()
    behind: str = ""
    whole: bool = False
    partial: float = 0.0
    asked: bool = False
    launched: dict[str, int] = {}


def record_log_look(
    before: CloserLookState, sight: LogObservation, seen: LogState, last: Instant
) -> CloserLookState:
    """The state after reading the log. `last` is the time of the reading before."""
    if before.run != seen.run_key:
        before = CloserLookState(run=seen.run_key)
    name = find_latest_number(seen, 1)
    if name is None or get_elapsed_s(seen.marks[name].since, sight.at) > 0:
        return before
    spacing = get_elapsed_s(last, sight.at)
    count = sum(e.what == "number" and e.name == name for e in sight.events)
    late = _measure_lateness_s(sight, last, spacing)
    # Measure from the last advance before that reading to the last one now. Otherwise a training
    # that stopped directly after a reading would seem slow, and a slow one fast.
    each = (spacing + before.late - late) / max(1, count)
    step = max(JUMP_FADING_FACTOR * before.step, each)
    kept = CloserLookState(
        run=before.run, day=before.day, looks=before.looks, launched=before.launched
    )
    return replace(_update_advance_time(kept, before, each, count), step=step, late=late)


def _update_advance_time(
    kept: CloserLookState, before: CloserLookState, each: float, count: int
) -> CloserLookState:
    """The state with the new speed. A slower advance does not change the usual duration."""
    if before.pace and each >= SLOWER_FACTOR * before.pace:
        slow = before.slow + 1
        kept = replace(kept, lag=before.lag, behind=before.behind, whole=before.whole)
        return replace(kept, pace=before.pace, slow=slow, seek=before.seek)
    if count < MIN_DENSE_ADVANCES:
        return replace(kept, pace=before.pace)
    return replace(
        kept, pace=STEADY_FACTOR * before.pace + (1 - STEADY_FACTOR) * each if before.pace else each
    )


def _measure_lateness_s(sight: LogObservation, last: Instant, spacing: float) -> float:
    """Seconds without output before this run, by the file server's clock. If that clock is wrong,
    0."""
    written = sight.modified_at_s
    if not last.wall / SECOND - 1 <= written <= sight.at.wall / SECOND + 1:
        return 0.0
    return min(spacing, max(0.0, sight.at.wall / SECOND - written))


def find_latest_number(seen: LogState, moves: int = MIN_MOVES) -> str | None:
    """The number that advanced last. None if none advanced that often, or if only the file's size
    is known."""
    known = [
        (m.since.wall, n) for n, m in seen.marks.items() if n != GROWTH_NAME and m.moves >= moves
    ]
    return max(known)[1] if known else None


def measure_quiet_s(suspicion: CloserLookState, seen: LogState, at: Instant) -> float:
    """Seconds without any advance, as exactly as they are known."""
    name = find_latest_number(seen)
    return get_elapsed_s(seen.marks[name].since, at) + suspicion.late if name is not None else 0.0


def compute_usual_quiet_s(
    suspicion: CloserLookState, seen: LogState, learned: TrainingBaseline
) -> float:
    """Seconds of quiet that are usual at this number while the training is well."""
    name = find_latest_number(seen)
    if name is None:
        return 0.0
    cadence = learned.quiets.get(name, Cadence())
    return max(
        suspicion.step, cadence.usual_quiet_s, cadence.find_due_pause_s(seen.marks[name].value)
    )


def compute_due_in_s(
    suspicion: CloserLookState, seen: LogState, learned: TrainingBaseline, at: Instant
) -> float:
    """Seconds until a closer look is due. 0 also if the advances have become slow and the rank that
    is behind is sought.

    It is infinite while the quiet time is usual, in a known phase, at the end of the training,
    after a result, and if too few looks are left for today.
    """
    if find_latest_number(seen) is None or seen.phase or seen.done or suspicion.told:
        return inf
    if suspicion.slow and (suspicion.slow >= suspicion.seek or suspicion.whole):
        return (
            0.0 if count_looks_left(suspicion, at) >= MAX_DAILY_LOOKS / 2 else inf
        )  # the other looks are reserved for a training that stands still
    still, longest = (
        measure_quiet_s(suspicion, seen, at),
        compute_usual_quiet_s(suspicion, seen, learned),
    )
    if still <= max(NEGLIGIBLE_QUIET_S, longest) or count_looks_left(suspicion, at) < PAIR_LOOKS:
        return inf
    return max(0.0, max(MIN_SUSPECT_QUIET_S, QUIET_FACTOR * longest, suspicion.due) - still)


def count_looks_left(suspicion: CloserLookState, at: Instant) -> int:
    """How many looks at the job may still be made today."""
    fresh = suspicion.day is None or get_elapsed_s(suspicion.day, at) >= DAY_S
    return MAX_DAILY_LOOKS if fresh else MAX_DAILY_LOOKS - suspicion.looks


def record_node_looks(
    suspicion: CloserLookState, at: Instant, looks: int, launched: Mapping[str, int], due: float
) -> CloserLookState:
    """The state after looks at the nodes. The next one is due after `due` seconds of quiet. 0 means
    at once."""
    fresh = suspicion.day is None or get_elapsed_s(suspicion.day, at) >= DAY_S
    return replace(
        suspicion,
        day=at if fresh else suspicion.day,
        looks=looks + (0 if fresh else suspicion.looks),
        seek=max(MIN_SLOW_LOOKS, 2 * suspicion.slow),
        due=due,
        launched={**suspicion.launched, **launched} if len(launched) <= 64 else suspicion.launched,
    )


def compute_next_pair_s(began: float, took: float, ripe: float) -> float:
    """The quiet time in seconds at which the next pair is due.

    The last pair began at a quiet time of `began`, took `took` seconds and decided nothing. The
    next one is due when the quiet time has doubled. It is due earlier if the signs of the last pair
    count from a quiet time of `ripe` seconds on: then it ends at about that time.
    """
    return min(QUIET_FACTOR * began, ripe - took if ripe else inf)


def record_ranks_behind(
    suspicion: CloserLookState, ranks: tuple[int, ...], tell: Callable[[tuple[int, ...]], str]
) -> CloserLookState:
    """The state with the ranks that a pair of looks found behind.

    Some rank is always the last one. So ranks are named only if two pairs find the same ones, and
    they are few.
    """
    same = tuple(rank for rank in ranks if rank in suspicion.lag)
    few = 0 < len(same) <= MAX_NAMED_RANKS and len(ranks) <= MAX_NAMED_RANKS
    return replace(suspicion, lag=ranks, behind=tell(same) if few else "")
