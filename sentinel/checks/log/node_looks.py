"""Examines the nodes of a training that is quiet for unusually long, and says what this proves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.closer_look_state import (
    CloserLookState,
    compute_next_pair_s,
    compute_usual_quiet_s,
    count_looks_left,
    measure_quiet_s,
    record_node_looks,
    record_ranks_behind,
)
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.rows import add_rows
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job
from sentinel.core.node_answers import Remote
from sentinel.stacks.closer import CloserLook, look_closer, sample_nodes
from sentinel.stacks.parse.verdict import (
    ProgressNumber,
    TrainingState,
    decides_after_s,
    join_facts,
    narrow_verdict,
)
from sentinel.stacks.parse.verdict_words import describe_verdict


def look_at_nodes(
    suspicion: CloserLookState,
    sight: LogObservation,
    seen: LogState,
    learned: TrainingBaseline,
    *,
    job: Job,
    name: str,
    remote: Remote,
    nodes: Sequence[str],
    again: Callable[[], LogObservation],
    limit: float,
) -> CloserLookState:
    """The state of the closer looks after two looks at the nodes of the job.

    `name` is the number that stands still. `again` and `limit` are as for take_closer_look.
    """
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
    value, events = seen.marks[name].value, again().events
    moved = any(e.what == "number" and e.name == name and e.value != value for e in events)
    moved = moved or name in add_rows(seen.rows, [(e.name, e.rows) for e in events if e.rows])[1]
    number = ProgressNumber(
        quiet=still + time.monotonic() - began,
        usual=compute_usual_quiet_s(suspicion, seen, learned),
        moved=moved,
    )
    verdict = join_facts(found.facts, number)
    is_explained = verdict.kind in (TrainingState.SLOW, TrainingState.PHASE)
    seeks = not is_explained and (not moved or suspicion.slow > 0)
    whole = seeks and len(some) < len(nodes)
    after = _record_looks(suspicion, sight.at, found, number, still, whole)
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


def _record_looks(
    suspicion: CloserLookState,
    at: Instant,
    found: CloserLook,
    number: ProgressNumber,
    still: float,
    whole: bool,
) -> CloserLookState:
    """The state with the time of the next pair of looks.

    It is due at once if all nodes are examined next (`whole`), or if this pair lacked something for
    the first time. `still` are the seconds of quiet before it.
    """
    lacks = 0.0 if whole or suspicion.partial or not found.partial else still
    took, later = number.quiet - still, decides_after_s(found.facts, number)
    due = 0.0 if whole or lacks else compute_next_pair_s(suspicion.partial or still, took, later)
    return replace(
        record_node_looks(suspicion, at, found.looks, found.launched, due), partial=lacks
    )
