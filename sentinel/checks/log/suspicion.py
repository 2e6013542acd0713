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

from sentinel.checks.log.cadence import Cadence, Learned
from sentinel.checks.log.judge import Verdict
from sentinel.checks.log.progress import FADING, GROWTH, Seen, Sight
from sentinel.checks.log.settings import Looks
from sentinel.checks.users import me
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.cluster import Job, Submission
from sentinel.core.model import Status
from sentinel.core.node_answers import Remote, by_steps

SHORTEST = 30.0
"""Seconds of quiet below which nobody looks: a line may wait in a buffer."""
BRIEF = 10.0
"""Seconds of quiet that are nothing, however short the steps are: nobody waits for what follows."""
TIMES = 2.0
"""Usual quiets from which on one looks, and how much longer it is each further time."""
MOVES = 3
"""Looks at the log that have to have shown progress: what starts or compiles is not suspected."""
A_DAY = 40
"""Looks at the nodes of a job in 24 hours."""
DAY = 86400.0
PAIR = 2
"""Looks that are compared."""
SLOWER = 1.5
"""Times the usual seconds of an advance from which on one asks which rank holds the others up."""
DENSE = 5
"""Advances between two looks at the log from which on their seconds are known well enough."""
STEADY = 0.9
"""What is left of the usual seconds of an advance after one more look that was not slower."""
FEW = 2
"""Ranks that are named as those that hold up the others."""
LASTS = 3
"""Looks at the log in a row that have to be slower; each further time twice as many."""


class Suspicion(Struct, frozen=True, kw_only=True):
    """What is remembered of one run of a job: `run` tells it from others (Seen.key).

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
    seek: int = LASTS
    lag: tuple[int, ...] = ()
    behind: str = ""
    whole: bool = False
    partial: float = 0.0
    asked: bool = False
    launched: dict[str, int] = {}


def noticed(before: Suspicion, sight: Sight, seen: Seen, last: Instant) -> Suspicion:
    """After a look at the log; `last`: the one before."""
    if before.run != seen.key:
        before = Suspicion(run=seen.key)
    name = latest(seen, 1)
    if name is None or elapsed(seen.marks[name].since, sight.at) > 0:
        return before
    spacing = elapsed(last, sight.at)
    count = sum(e.what == "number" and e.name == name for e in sight.events)
    late = _late(sight, last, spacing)
    # From the last advance before that look to the last one now: what stopped right after a look has
    # not become slow, and what is slow has not become fast.
    each = (spacing + before.late - late) / max(1, count)
    step = max(FADING * before.step, each)
    kept = Suspicion(run=before.run, day=before.day, looks=before.looks, launched=before.launched)
    return replace(_paced(kept, before, each, count), step=step, late=late)


def _paced(kept: Suspicion, before: Suspicion, each: float, count: int) -> Suspicion:
    """With how fast it goes: what is slower is no part of what is usual."""
    if before.pace and each >= SLOWER * before.pace:
        slow = before.slow + 1
        kept = replace(kept, lag=before.lag, behind=before.behind, whole=before.whole)
        return replace(kept, pace=before.pace, slow=slow, seek=before.seek)
    if count < DENSE:
        return replace(kept, pace=before.pace)
    return replace(kept, pace=STEADY * before.pace + (1 - STEADY) * each if before.pace else each)


def _late(sight: Sight, last: Instant, spacing: float) -> float:
    """By the file server's clock, where that agrees: what was written since the last look is not
    older than it."""
    written = sight.mtime
    if not last.wall / SECOND - 1 <= written <= sight.at.wall / SECOND + 1:
        return 0.0
    return min(spacing, max(0.0, sight.at.wall / SECOND - written))


def latest(seen: Seen, moves: int = MOVES) -> str | None:
    """The number that advanced last; None: none did so often, or only the file's size is known."""
    known = [(m.since.wall, n) for n, m in seen.marks.items() if n != GROWTH and m.moves >= moves]
    return max(known)[1] if known else None


def quiet(suspicion: Suspicion, seen: Seen, at: Instant) -> float:
    """Seconds for which nothing has advanced, as exactly as it is known."""
    name = latest(seen)
    return elapsed(seen.marks[name].since, at) + suspicion.late if name is not None else 0.0


def usual(suspicion: Suspicion, seen: Seen, learned: Learned) -> float:
    """Seconds for which it is quiet while it is well, at this number."""
    name = latest(seen)
    if name is None:
        return 0.0
    cadence = learned.quiets.get(name, Cadence())
    return max(suspicion.step, cadence.usual, cadence.due(seen.marks[name].value))


def due_in(suspicion: Suspicion, seen: Seen, learned: Learned, at: Instant) -> float:
    """Seconds until a closer look is due; infinite while it is quiet for no longer than it has been while
    it was well. None in a known phase, and none once it is decided."""
    if latest(seen) is None or seen.phase or seen.done or suspicion.told:
        return inf
    if suspicion.slow and (suspicion.slow >= suspicion.seek or suspicion.whole):
        return 0.0 if left(suspicion, at) >= A_DAY / 2 else inf  # the rest is for what stands still
    still, longest = quiet(suspicion, seen, at), usual(suspicion, seen, learned)
    if still <= max(BRIEF, longest) or left(suspicion, at) < PAIR:
        return inf
    return max(0.0, max(SHORTEST, TIMES * longest, suspicion.due) - still)


def left(suspicion: Suspicion, at: Instant) -> int:
    """Looks that the job may still take today."""
    fresh = suspicion.day is None or elapsed(suspicion.day, at) >= DAY
    return A_DAY if fresh else A_DAY - suspicion.looks


def looked(
    suspicion: Suspicion, at: Instant, looks: int, launched: Mapping[str, int], due: float
) -> Suspicion:
    """After so many looks in one run. `due`: seconds of quiet from which on the next one is; 0: at once."""
    fresh = suspicion.day is None or elapsed(suspicion.day, at) >= DAY
    return replace(
        suspicion,
        day=at if fresh else suspicion.day,
        looks=looks + (0 if fresh else suspicion.looks),
        seek=max(LASTS, 2 * suspicion.slow),
        due=due,
        launched={**suspicion.launched, **launched} if len(launched) <= 64 else suspicion.launched,
    )


def next_pair(began: float, took: float, ripe: float) -> float:
    """Seconds of quiet from which on the next pair is due, after one that began at a quiet of `began`,
    took so long and decided nothing. Where its signs count from a quiet of `ripe` seconds on: when it
    will be that long. Else when it has doubled."""
    return min(TIMES * began, ripe - took if ripe else inf)


def behind(
    suspicion: Suspicion, ranks: tuple[int, ...], tell: Callable[[tuple[int, ...]], str]
) -> Suspicion:
    """With the ranks that a pair of looks found behind. At any moment some rank is the last one: it
    is named where two pairs find the same, and few."""
    same = tuple(rank for rank in ranks if rank in suspicion.lag)
    few = 0 < len(same) <= FEW and len(ranks) <= FEW
    return replace(suspicion, lag=ranks, behind=tell(same) if few else "")


# Looking closer at a training that is quiet for unusually long, and what is told of it.


PART = 0.6
"""Part of a run's time that a pair of looks takes; with less left it waits for the next pass."""


def may_look(looks: Looks, job: Job, remote: Remote | None) -> bool:
    """Whether the nodes of this job may be looked at on mere suspicion."""
    if looks == "off" or remote is None or (by_steps(remote) and looks != "srun"):
        return False
    return job.user == me() or (looks == "all" and os.geteuid() == 0)


def closer_look(
    suspicion: Suspicion,
    sight: Sight,
    seen: Seen,
    learned: Learned,
    *,
    remote: Remote,
    nodes: Sequence[str],
    again: Callable[[], Sight],
    limit: float,
) -> Suspicion:
    """After two looks at the nodes, where they are due. `again` reads the log once more: what has
    advanced meanwhile is not hung. `limit`: seconds for all of it. Of a large job a sample of its nodes comes first."""
    job, name = sight.job, latest(seen)
    if job is None or name is None or not nodes or due_in(suspicion, seen, learned, sight.at) > 0:
        return suspicion
    try:
        from sentinel.stacks.closer import closer, sample
        from sentinel.stacks.parse.verdict import Is, Number, joined, narrowed, ripe, told
    except ModuleNotFoundError:
        return suspicion
    began, still = time.monotonic(), quiet(suspicion, seen, sight.at)
    some = nodes if suspicion.whole else sample(nodes)
    found = closer(
        remote,
        job,
        some,
        log=sight.file,
        quiet=still,
        before=suspicion.launched,
        limit=limit,
        looks=left(suspicion, sight.at),
    )
    value = seen.marks[name].value
    moved = any(e.what == "number" and e.name == name and e.value != value for e in again().events)
    number = Number(
        quiet=still + time.monotonic() - began, usual=usual(suspicion, seen, learned), moved=moved
    )
    verdict = joined(found.facts, number)
    seeks = not moved or suspicion.slow > 0
    whole = len(some) < len(nodes) and verdict.kind not in (Is.SLOW, Is.PHASE) and seeks
    lacks = 0.0 if whole or suspicion.partial or not found.partial else still
    took, later = number.quiet - still, ripe(found.facts, number)
    due = 0.0 if whole or lacks else next_pair(suspicion.partial or still, took, later)
    after = replace(looked(suspicion, sight.at, found.looks, found.launched, due), partial=lacks)
    if verdict.kind is Is.SLOW:
        after = behind(after, verdict.ranks, lambda some: told(narrowed(verdict, some)))
    if not verdict.sure or whole:
        return replace(after, whole=whole)
    clock = time.strftime("%H:%M", time.localtime(sight.at.wall / SECOND - still))
    words = told(verdict, f" since {clock} at {name} {value:.15g}")
    return replace(after, told=words, nodes=verdict.proven, fault=verdict.fault, whole=False)


def weighed_early(verdict: Verdict, suspicion: Suspicion, still: float) -> Verdict:
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
