"""Looking closer at a training that is quiet for unusually long, and what is told of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sentinel.checks.log.cadence import Learned
from sentinel.checks.log.judge import Verdict
from sentinel.checks.log.progress import Seen, Sight
from sentinel.checks.log.settings import Looks
from sentinel.checks.log.suspicion import Suspicion, behind, is_due, latest, looked, quiet, usual
from sentinel.checks.users import me
from sentinel.core.clock import SECOND
from sentinel.core.model import Status
from sentinel.nodes.model import Remote, by_steps
from sentinel.slurm.model import Job

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
    if job is None or name is None or not nodes or not is_due(suspicion, seen, learned, sight.at):
        return suspicion
    try:
        from sentinel.stacks.closer import closer, sample
        from sentinel.stacks.parse.verdict import Is, Number, joined, told
    except ModuleNotFoundError:
        return suspicion
    began, still = time.monotonic(), quiet(suspicion, seen, sight.at)
    some = nodes if suspicion.whole else sample(nodes)
    since = sight.at.wall / SECOND - still
    found = closer(
        remote,
        job,
        some,
        log=sight.file,
        quiet=still,
        before=suspicion.launched,
        limit=limit,
    )
    value = seen.marks[name].value
    moved = any(e.what == "number" and e.name == name and e.value != value for e in again().events)
    still += time.monotonic() - began
    number = Number(quiet=still, usual=usual(suspicion, seen, learned), moved=moved)
    verdict = joined(found.facts, number)
    seeks = not moved or suspicion.slow > 0
    whole = len(some) < len(nodes) and verdict.kind not in (Is.SLOW, Is.PHASE) and seeks
    after = looked(suspicion, seen, sight.at, found.launched, again=whole)
    if verdict.kind is Is.SLOW:
        after = behind(after, verdict.ranks, told(verdict))
    if not verdict.sure or whole:
        return replace(after, whole=whole)
    clock = time.strftime("%H:%M", time.localtime(since))
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
