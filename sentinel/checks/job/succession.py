"""Whether the end of a job is a death or a gap: what followed such an end before, and how soon.

TIMEOUT is a chain's normal end and a launcher resubmits what has FAILED, so the same end is a
death of one training and a gap of another. Pure.
"""

from collections.abc import Iterable, Sequence

from msgspec import structs

from sentinel.checks.job.done import last_run
from sentinel.checks.job.memory import Followed, Gone, Memory
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.errors import Invalid
from sentinel.core.hostlist import expand
from sentinel.core.values import duration_text
from sentinel.slurm.job_states import meaning
from sentinel.slurm.model import Job, Reservation

SECOND_LOOK = 30.0
"""Seconds after which Slurm is asked again before a death is told: epilogs and launchers have
submitted by then, and a cut list is whole again."""

GAP = 600.0
"""Seconds that a gap may last of which nothing is known: a change of jobs in a busy queue."""

FEW, ENOUGH = 3600.0, 10
"""Seconds that a gap may last while fewer than ENOUGH have been seen after such an end."""

BY_HAND = 4 * 3600.0
"""As FEW, for what was cancelled: people edit and test before they submit again."""

TIMES, LONGEST = 4.0, 12 * 3600.0
"""A gap may last so many times as long as the longest one seen, and never more than LONGEST
seconds: of 90 further gaps with lognormal lengths (sigma 1) 0.05 are longer than that."""

BEFORE = 120.0
"""Seconds before the end of a job within which it may itself submit its successor: a trap of
`sbatch --signal` does. Earlier ones were queued in any case and say nothing of what follows."""

_CANCELLED, _FORGOTTEN = "CANCELLED", "forgotten"


def by_owner(gone: Gone) -> bool:
    """Whether accounting says that its own user has cancelled it."""
    return _word(gone) == _CANCELLED and _canceller(gone) == gone.seen.user != ""


def patience(last: Gone | None, memory: Memory) -> float:
    """Seconds that nothing of a training may be there after this end before that is told."""
    if last is None:
        return 0.0
    known = _known(last, memory)
    if known is None:
        return SECOND_LOOK if _is_death(last) else GAP
    usual = GAP
    if known.count < ENOUGH:
        usual = BY_HAND if _word(last) == _CANCELLED else FEW
    return min(LONGEST, max(usual, TIMES * known.longest))


def reason(last: Gone, memory: Memory) -> str:
    """Why it is told when it is, for people; empty where there is nothing to say."""
    known, seconds = _known(last, memory), patience(last, memory)
    if known is not None:
        often = "once" if known.count == 1 else f"{known.count} times"
        return (
            f"another job has followed such an end {often}, after {duration_text(known.longest)} at"
            f" most: this is told when nothing has followed for {duration_text(seconds)}"
        )
    if _is_death(last):
        return "" if last.lost else "no job has followed such an end of this training before"
    return f"this may be a gap between two jobs: it is told after {duration_text(seconds)}"


def maintenance(last: Gone, reservations: Iterable[Reservation], now: Instant) -> str:
    """The maintenance reservation that is in force on one of its nodes, of several the one that ends
    last; "" for none."""
    nodes = frozenset(_expanded(last.end.nodes if last.end else "") or _expanded(last.seen.nodes))
    wall = now.wall // SECOND
    found = [
        (r.ends, r.name)
        for r in reservations
        if "MAINT" in r.flags
        and r.starts <= wall < r.ends
        and ("ALL_NODES" in r.flags or not nodes.isdisjoint(r.nodes))
    ]
    return max(found)[1] if found and last.ran else ""


def _expanded(nodes: str) -> Sequence[str]:
    try:
        return expand(nodes)
    except Invalid:  # cut where it was too long to be remembered
        return ()


def learned(before: Memory, memory: Memory, jobs: Sequence[Job], now: Instant) -> Memory:
    """The memory with what has followed the last end: a job that was submitted since, one that began
    and ended between two looks, or the same one requeued; what sentinel itself has submitted again
    says nothing. `before` and `memory` are those before and after this look at the `jobs`."""
    last = last_run(before)
    if last is not None and any(job.job_id == last.seen.job_id for job in jobs):
        return _noted(memory, last, elapsed(last.at, now))
    unseen = _unseen(before, memory, now)
    last = last_run(structs.replace(memory, gone=[g for g in memory.gone if g not in unseen]))
    ours = last is not None and any(one.job == last.seen.id for one in memory.revived)
    if last is None or last.followed or not last.asked or ours:
        return memory
    seen = before.looked or last.at  # what nobody remembers ended after it was looked at last
    ended = (last.end.ended if last.end else None) or seen.wall // SECOND
    since = [at - ended for job in jobs if (at := job.submitted or 0) >= ended - BEFORE]
    # After longer than that others may have come before it, of which Slurm says nothing any more.
    since += [at - ended for g in unseen if ended - BEFORE <= (at := g.started or 0) <= ended + GAP]
    if not since:
        return memory
    gone = tuple(structs.replace(g, followed=True) if g is last else g for g in memory.gone)
    return _noted(structs.replace(memory, gone=gone), last, max(0.0, min(since)))


def _unseen(before: Memory, memory: Memory, now: Instant) -> list[Gone]:
    """Those that began and ended between this look and the one before."""
    known = {s.job_id for s in before.seen} | {g.seen.job_id for g in before.gone}
    return [g for g in memory.gone if g.ran and g.at == now and g.seen.job_id not in known]


def _noted(memory: Memory, last: Gone, seconds: float) -> Memory:
    kind = _kind(last)
    known = memory.followed.get(kind, Followed())
    more = Followed(count=known.count + 1, longest=max(known.longest, seconds))
    return structs.replace(memory, followed={**memory.followed, kind: more})


def _known(last: Gone, memory: Memory) -> Followed | None:
    """What has followed such ends; one that nobody remembers may have been of any kind."""
    if _word(last) != _FORGOTTEN:
        return memory.followed.get(_kind(last)) or memory.followed.get(_FORGOTTEN)
    every = memory.followed.values()
    if not every:
        return None
    return Followed(sum(f.count for f in every), max(f.longest for f in every))


def _is_death(gone: Gone) -> bool:
    """What no plan of a job's owner is: it failed, or somebody else has cancelled it. What Slurm
    has forgotten is over for MinJobAge at least, and nothing has come since."""
    if gone.lost is not None or _word(gone) == _FORGOTTEN or meaning(_word(gone)).is_death:
        return gone.asked
    return _word(gone) == _CANCELLED and _canceller(gone) not in ("", gone.seen.user)


def _kind(gone: Gone) -> str:
    """Ends that are alike: what followed one says something of the other."""
    other = _word(gone) == _CANCELLED and _is_death(gone)
    return "CANCELLED by somebody else" if other else _word(gone)


def _canceller(gone: Gone) -> str:
    return gone.end.cancelled_by if gone.end else ""


def _word(gone: Gone) -> str:
    return gone.end.state.split(" ")[0] if gone.end else _FORGOTTEN
