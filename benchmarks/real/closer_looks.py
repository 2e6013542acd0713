"""How often real runs, which are all well, would have had their nodes looked at closer: in the worst
case, that no pair of looks decides anything.
"""

import statistics
from collections.abc import Sequence
from random import Random

from msgspec import Struct

from benchmarks.real.hangs import instant, progress_of
from benchmarks.real.logs import Run, lines
from sentinel.checks.log.closer_look_state import (
    PAIR_LOOKS,
    CloserLookState,
    compute_due_in_s,
    compute_next_pair_s,
    measure_quiet_s,
    record_log_look,
    record_node_looks,
)
from sentinel.checks.log.run import MIN_RERUN_S
from sentinel.core.clock import Instant
from sentinel.core.cluster import Job
from sentinel.engine.engine import MAX_SECOND_LOOKS
from sentinel.engine.pipeline import MAX_SECOND_LOOK_WAIT_S
from tests.replay.simulate import DAY, EVERY, File, Watcher, job_of, looks

TOOK = 15.0
"""Seconds of a pair of looks."""


class Looked(Struct, frozen=True):
    """So many looks at the nodes of one job, in so many seconds."""

    looks: int
    seconds: float


def looked_at(several: Sequence[Run], seed: int) -> list[Looked]:
    """The jobs of one name one after the other, with a pass a minute and those that the check asks for."""
    random, watcher = Random(seed), Watcher(progress_of(several[0]))
    return [_job(watcher, run, number, random) for number, run in enumerate(several, 1)]


def _job(watcher: Watcher, run: Run, number: int, random: Random) -> Looked:
    clock, written, upcoming, count = number * 1e7, lines(run), 0, 0
    job, file, doubt = job_of(number, clock), File(f"1:{number}"), CloserLookState()
    for due in looks(run.seconds, EVERY, random):
        now = due
        for _ in range(1 + MAX_SECOND_LOOKS):
            while upcoming < len(written) and written[upcoming][0] <= now:
                file.data += written[upcoming][1]
                upcoming += 1
            doubt, taken = _pass(watcher, file, doubt, instant(clock + now), job)
            count += taken
            now += TOOK if taken else 0.0
            wait = max(MIN_RERUN_S, _due(watcher, doubt, instant(clock + now)))
            if wait > MAX_SECOND_LOOK_WAIT_S or now + wait >= run.seconds:
                break
            now += wait
    return Looked(count, run.seconds)


def _pass(
    watcher: Watcher, file: File, doubt: CloserLookState, now: Instant, job: Job
) -> tuple[CloserLookState, int]:
    """One run of the check: what is suspected after it, and the looks that it took."""
    last = watcher.seen.looked if watcher.seen else now
    watcher.look(file, now, job)
    assert watcher.sight
    assert watcher.seen
    doubt = record_log_look(doubt, watcher.sight, watcher.seen, last)
    if _due(watcher, doubt, now) > 0:
        return doubt, 0
    later = compute_next_pair_s(measure_quiet_s(doubt, watcher.seen, now), TOOK, 0.0)
    return record_node_looks(doubt, now, PAIR_LOOKS, {}, later), PAIR_LOOKS


def _due(watcher: Watcher, doubt: CloserLookState, now: Instant) -> float:
    assert watcher.seen
    return compute_due_in_s(doubt, watcher.seen, watcher.learned, now)


def table(found: Sequence[Looked]) -> str:
    """What is told of all jobs."""
    days = sum(one.seconds for one in found) / DAY
    counts = sorted(one.looks for one in found)
    rates = sorted(one.looks / one.seconds * DAY for one in found)
    at = round(0.95 * (len(found) - 1))
    return (
        f"closer looks at {len(found)} jobs of {days:.1f} days: {counts.count(0)} jobs without, 95 % with"
        f" {counts[at]} at most, {counts[-1]} at most; a job-day {sum(counts) / days:.1f}, by jobs median"
        f" {statistics.median(rates):.1f}, 95th percentile {rates[at]:.1f}"
    )
