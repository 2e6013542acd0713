"""When a training that is quiet is looked at closer, long before it is an alarm. Pure.

Suspicion wakes nobody. It is bounded: a look is due at twice the usual quiet, then each time the
quiet has doubled (see next_pair), and so many a day.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.cadence import Cadence, TrainingBaseline
from sentinel.checks.log.judge import LogVerdict
from sentinel.checks.log.progress import GROWTH_NAME, JUMP_FADING_FACTOR, LogObservation, LogState
from sentinel.checks.log.settings import CloserLookMode
from sentinel.checks.users import own_user_name
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job, Submission
from sentinel.core.model import Status
from sentinel.core.node_answers import Remote, uses_steps

MIN_SUSPECT_QUIET_S = 30.0
"""Seconds of quiet below which nobody looks: a line may wait in a buffer."""
NEGLIGIBLE_QUIET_S = 10.0
"""Seconds of quiet that are nothing, however short the steps are: nobody waits for what follows."""
QUIET_FACTOR = 2.0
"""Usual quiets from which on one looks, and how much longer it is each further time."""
MIN_MOVES = 3
"""Looks at the log that have to have shown progress: what starts or compiles is not suspected."""
MAX_DAILY_LOOKS = 40
"""Looks at the nodes of a job in 24 hours."""
DAY_S = 86400.0
PAIR_LOOKS = 2
"""Looks that are compared."""
SLOWER_FACTOR = 1.5
"""Times the usual seconds of an advance from which on one asks which rank holds the others up."""
MIN_DENSE_ADVANCES = 5
"""Advances between two looks at the log from which on their seconds are known well enough."""
STEADY_FACTOR = 0.9
"""What is left of the usual seconds of an advance after one more look that was not slower."""
MAX_NAMED_RANKS = 2
"""Ranks that are named as those that hold up the others."""
MIN_SLOW_LOOKS = 3
"""Looks at the log in a row that have to be slower; each further time twice as many."""


class CloserLookState(Struct, frozen=True, kw_only=True):
    """What is remembered of one run of a job: `run` tells it from others (LogState.run_key).

    `step`: seconds between two advances, the longest of late; `late`: seconds before the look that
    saw the last advance in which nothing was written; `looks` taken since `day`; `due`: quiet from
    which on the next are taken; `told`: what was found, while it stands still, with the culprit's
    `nodes` and what is wrong with its node itself (`fault`); `how` it was submitted; `whole`: the
    next look is at all nodes, not at a sample of them; `partial`: the quiet at which the last pair lacked
    something, for which the next one comes at once; `asked`: actions were asked for because of it;
    `launched`: see sentinel.stacks.closer.

    `pace`: seconds of an advance while it is well; `slow`: looks in a row that were slower, from `seek`
    on one looks who is behind; `lag`: the ranks that the last pair of looks found behind, `behind`: in
    words, once two pairs agree.
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
    """After a look at the log; `last`: the one before."""
    if before.run != seen.run_key:
        before = CloserLookState(run=seen.run_key)
    name = find_latest_number(seen, 1)
    if name is None or get_elapsed_s(seen.marks[name].since, sight.at) > 0:
        return before
    spacing = get_elapsed_s(last, sight.at)
    count = sum(e.what == "number" and e.name == name for e in sight.events)
    late = _measure_lateness_s(sight, last, spacing)
    # From the last advance before that look to the last one now: what stopped right after a look has
    # not become slow, and what is slow has not become fast.
    each = (spacing + before.late - late) / max(1, count)
    step = max(JUMP_FADING_FACTOR * before.step, each)
    kept = CloserLookState(
        run=before.run, day=before.day, looks=before.looks, launched=before.launched
    )
    return replace(_update_advance_time(kept, before, each, count), step=step, late=late)


def _update_advance_time(
    kept: CloserLookState, before: CloserLookState, each: float, count: int
) -> CloserLookState:
    """With how fast it goes: what is slower is no part of what is usual."""
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
    """By the file server's clock, where that agrees: what was written since the last look is not
    older than it."""
    written = sight.modified_at_s
    if not last.wall / SECOND - 1 <= written <= sight.at.wall / SECOND + 1:
        return 0.0
    return min(spacing, max(0.0, sight.at.wall / SECOND - written))


def find_latest_number(seen: LogState, moves: int = MIN_MOVES) -> str | None:
    """The number that advanced last; None: none did so often, or only the file's size is known."""
    known = [
        (m.since.wall, n) for n, m in seen.marks.items() if n != GROWTH_NAME and m.moves >= moves
    ]
    return max(known)[1] if known else None


def measure_quiet_s(suspicion: CloserLookState, seen: LogState, at: Instant) -> float:
    """Seconds for which nothing has advanced, as exactly as it is known."""
    name = find_latest_number(seen)
    return get_elapsed_s(seen.marks[name].since, at) + suspicion.late if name is not None else 0.0


def compute_usual_quiet_s(
    suspicion: CloserLookState, seen: LogState, learned: TrainingBaseline
) -> float:
    """Seconds for which it is quiet while it is well, at this number."""
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
    """Seconds until a closer look is due; infinite while it is quiet for no longer than it has been while
    it was well. None in a known phase, and none once it is decided."""
    if find_latest_number(seen) is None or seen.phase or seen.done or suspicion.told:
        return inf
    if suspicion.slow and (suspicion.slow >= suspicion.seek or suspicion.whole):
        return (
            0.0 if count_looks_left(suspicion, at) >= MAX_DAILY_LOOKS / 2 else inf
        )  # the rest is for what stands still
    still, longest = (
        measure_quiet_s(suspicion, seen, at),
        compute_usual_quiet_s(suspicion, seen, learned),
    )
    if still <= max(NEGLIGIBLE_QUIET_S, longest) or count_looks_left(suspicion, at) < PAIR_LOOKS:
        return inf
    return max(0.0, max(MIN_SUSPECT_QUIET_S, QUIET_FACTOR * longest, suspicion.due) - still)


def count_looks_left(suspicion: CloserLookState, at: Instant) -> int:
    """Looks that the job may still take today."""
    fresh = suspicion.day is None or get_elapsed_s(suspicion.day, at) >= DAY_S
    return MAX_DAILY_LOOKS if fresh else MAX_DAILY_LOOKS - suspicion.looks


def record_node_looks(
    suspicion: CloserLookState, at: Instant, looks: int, launched: Mapping[str, int], due: float
) -> CloserLookState:
    """After so many looks in one run. `due`: seconds of quiet from which on the next one is; 0: at once."""
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
    """Seconds of quiet from which on the next pair is due, after one that began at a quiet of `began`,
    took so long and decided nothing. Where its signs count from a quiet of `ripe` seconds on: when it
    will be that long. Else when it has doubled."""
    return min(QUIET_FACTOR * began, ripe - took if ripe else inf)


def record_ranks_behind(
    suspicion: CloserLookState, ranks: tuple[int, ...], tell: Callable[[tuple[int, ...]], str]
) -> CloserLookState:
    """With the ranks that a pair of looks found behind. At any moment some rank is the last one: it
    is named where two pairs find the same, and few."""
    same = tuple(rank for rank in ranks if rank in suspicion.lag)
    few = 0 < len(same) <= MAX_NAMED_RANKS and len(ranks) <= MAX_NAMED_RANKS
    return replace(suspicion, lag=ranks, behind=tell(same) if few else "")


# Looking closer at a training that is quiet for unusually long, and what is told of it.


LOOK_LIMIT_SHARE = 0.6
"""Part of a run's time that a pair of looks takes; with less left it waits for the next pass."""


def may_look_at_nodes(looks: CloserLookMode, job: Job, remote: Remote | None) -> bool:
    """Whether the nodes of this job may be looked at on mere suspicion."""
    if looks == "off" or remote is None or (uses_steps(remote) and looks != "srun"):
        return False
    return job.user == own_user_name() or (looks == "all" and os.geteuid() == 0)


def take_closer_look(
    suspicion: CloserLookState,
    sight: LogObservation,
    seen: LogState,
    learned: TrainingBaseline,
    *,
    remote: Remote,
    nodes: Sequence[str],
    again: Callable[[], LogObservation],
    limit: float,
) -> CloserLookState:
    """After two looks at the nodes, where they are due. `again` reads the log once more: what has
    advanced meanwhile is not hung. `limit`: seconds for all of it. Of a large job a sample of its nodes comes first."""
    job, name = sight.job, find_latest_number(seen)
    if (
        job is None
        or name is None
        or not nodes
        or compute_due_in_s(suspicion, seen, learned, sight.at) > 0
    ):
        return suspicion
    try:
        from sentinel.stacks.closer import look_closer, sample_nodes
        from sentinel.stacks.parse.verdict import (
            ProgressNumber,
            TrainingState,
            decides_after_s,
            describe_verdict,
            join_facts,
            narrow_verdict,
        )
    except ModuleNotFoundError:
        return suspicion
    began, still = time.monotonic(), measure_quiet_s(suspicion, seen, sight.at)
    some = nodes if suspicion.whole else sample_nodes(nodes)
    found = look_closer(
        remote,
        job,
        some,
        log=sight.shown_path,
        quiet=still,
        before=suspicion.launched,
        limit=limit,
        looks=count_looks_left(suspicion, sight.at),
    )
    value = seen.marks[name].value
    moved = any(e.what == "number" and e.name == name and e.value != value for e in again().events)
    number = ProgressNumber(
        quiet=still + time.monotonic() - began,
        usual=compute_usual_quiet_s(suspicion, seen, learned),
        moved=moved,
    )
    verdict = join_facts(found.facts, number)
    seeks = not moved or suspicion.slow > 0
    whole = (
        len(some) < len(nodes)
        and verdict.kind not in (TrainingState.SLOW, TrainingState.PHASE)
        and seeks
    )
    lacks = 0.0 if whole or suspicion.partial or not found.partial else still
    took, later = number.quiet - still, decides_after_s(found.facts, number)
    due = 0.0 if whole or lacks else compute_next_pair_s(suspicion.partial or still, took, later)
    after = replace(
        record_node_looks(suspicion, sight.at, found.looks, found.launched, due), partial=lacks
    )
    if verdict.kind is TrainingState.SLOW:
        after = record_ranks_behind(
            after, verdict.ranks, lambda some: describe_verdict(narrow_verdict(verdict, some))
        )
    if not verdict.is_sure or whole:
        return replace(after, whole=whole)
    clock = time.strftime("%H:%M", time.localtime(sight.at.wall / SECOND - still))
    words = describe_verdict(verdict, f" since {clock} at {name} {value:.15g}")
    return replace(
        after, told=words, nodes=verdict.proven_nodes, fault=verdict.node_fault, whole=False
    )


def apply_closer_look(verdict: LogVerdict, suspicion: CloserLookState, still: float) -> LogVerdict:
    """With what the closer look found: before the limit an alarm by itself, after it the first
    words."""
    if not suspicion.told:
        return verdict
    if verdict.hung:
        return replace(verdict, summary=f"{suspicion.told}; {verdict.summary}")
    return replace(
        verdict,
        status=Status.CRITICAL,
        summary=suspicion.told,
        quiet=still,
        hung=True,
        early=True,
    )
