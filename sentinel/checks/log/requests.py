"""What is asked for when a training hangs, and when. Pure."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.actions.job_requests import Sighting, about
from sentinel.checks.log.gather import nodes_of
from sentinel.checks.log.secondary import lines
from sentinel.checks.log.words import Watched
from sentinel.core.clock import Instant, elapsed
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest, Status
from sentinel.core.text import visible
from sentinel.slurm.filename_patterns import fill_symbols

AGAIN = 1800.0
"""Seconds after which what was asked for is asked for again, while it still hangs."""

HARMLESS = ("stacks",)
"""What may be asked for though a witness contradicts, or the log still grows."""

ABOUT_PEERS = ("NCCL connection", "NCCL network")
"""Troubles whose address is that of the node at fault, and not of the one that complains."""

MOST_WAITING = 8
"""Jobs that a node is kept from at once: no more than one hour's actions."""


class Wish(Struct, frozen=True, kw_only=True):
    """The requests about one job, and when they were made. `early`: before the limit, which counts
    for itself."""

    job: str
    requests: tuple[ActionRequest, ...] = ()
    asked: Instant | None = None
    early: bool = False


def due(one: Watched, now: Instant) -> bool:
    """Once per hang, and again after a while."""
    if not one.verdict.hung or one.sight.job is None:
        return False
    if one.verdict.early:
        return not one.asked_early
    return one.seen.asked is None or elapsed(one.seen.asked, now) >= AGAIN


class Means(Struct, frozen=True, kw_only=True):
    """The actions that are wished for when it hangs, and what they need to be told.

    `patterns`: those of `progress` by name; `file` the kill-switch file; `signal` for cancel.
    """

    names: tuple[str, ...] = ()
    patterns: Mapping[str, str] = {}
    file: str = ""
    signal: str = ""

    def params(self, name: str, job: Job) -> dict[str, str]:
        """What is this action's own."""
        own = {
            "killswitch": {"file": self._file_of(job)} if self.file else {},
            "cancel": {"signal": self.signal} if self.signal else {},
        }
        return own.get(name, {})

    def _file_of(self, job: Job) -> str:
        """Empty, which the action refuses, where the job's name would lead elsewhere."""
        try:
            return fill_symbols(self.file, job)
        except CannotTell:
            return ""


class Hang(Struct, frozen=True, kw_only=True):
    """What requests tell besides: the alert's subject, the log's last lines, and the jobs that
    wait to go on after the one that hangs."""

    subject: str
    tail: str = ""
    waiting: tuple[Job, ...] = ()


def wish(one: Watched, means: Means, hang: Hang, now: Instant) -> Wish:
    """One per action, stacks first, and one per waiting job that a node is kept from.

    A job that still works according to a witness is looked at and not touched.
    """
    job = one.sight.job
    if job is None or not one.verdict.hung:
        return Wish(job=job.job_id if job else "")
    early = one.verdict.early
    sure = one.verdict.status is Status.CRITICAL and not early and _proven(one, now)
    made = tuple(
        about(
            name,
            target,
            f"hang: {one.verdict.summary}",
            subject=hang.subject,
            seen=None if name == "exclude" else _sighting(one, {**means.patterns, **_found(one)}),
            params=params,
            evidence=_evidence(one, hang.tail),
        )
        for name in sorted(means.names, key=_turn)
        if sure or name in HARMLESS
        for target, params in _targets(name, one, job, means, hang.waiting)
    )
    asked = now if made and not early else one.seen.asked
    return Wish(job=job.job_id, requests=made, asked=asked, early=early)


def _proven(one: Watched, now: Instant) -> bool:
    """Whether it was watched standing still. After a file system that hung for all it may go on
    just now, like the jobs; and a number that never advanced in a log that grows may be none that
    does: `progress` may be wrong. These are alarms, and no reasons to end a job."""
    seen, limit = one.seen, one.verdict.limit.seconds if one.verdict.limit else 0.0
    mark = seen.marks.get(one.verdict.name)
    counts = bool(mark and mark.moves) or elapsed(seen.grown, now) >= limit
    return counts and elapsed(seen.steady or seen.first, now) >= limit


def culprit(one: Watched) -> str:
    """The one node of the job that witnesses and NCCL's errors name; empty where they name none
    or several: then it is the network or a file system, and no node is to blame."""
    peers = (one.peers.get(t.peer, "") for t in one.seen.troubles if t.kind in ABOUT_PEERS)
    named = {*one.testimony.nodes, *filter(None, peers)}
    job = one.sight.job
    mine = nodes_of(job) if job else ()
    return named.pop() if len(named) == 1 and named <= {*mine} else ""


def _targets(
    name: str, one: Watched, job: Job, means: Means, waiting: Sequence[Job]
) -> list[tuple[Job, dict[str, str]]]:
    """The jobs that an action is about, with what it needs to be told."""
    if name != "exclude":
        return [(job, means.params(name, job))]
    node = culprit(one)
    return [
        (other, {"node": node, "exclude": other.exclude})
        for other in waiting[:MOST_WAITING]
        if node
    ]


def _turn(name: str) -> int:
    """Looking comes first; then what waits is kept from the node, before it may start there."""
    order = ("stacks", "exclude")
    return order.index(name) if name in order else len(order)


def _evidence(one: Watched, tail: str) -> dict[str, str]:
    told = {
        "finding": one.verdict.summary,
        "log": visible(one.sight.file),
        "witnesses": "; ".join(filter(None, (one.testimony.culprit, one.testimony.words))),
        "errors": lines(one.seen.troubles, one.peers),
        "checkpoints": one.at_risk,
        "last lines": tail,
    }
    return {key: value for key, value in told.items() if value}


def _found(one: Watched) -> dict[str, str]:
    """The pattern of a number that was found out."""
    number = one.seen.reading.number if one.seen.reading else None
    return {number.name: by_line(number.pattern)} if number else {}


def _sighting(one: Watched, patterns: Mapping[str, str]) -> Sighting | None:
    """What is read again right before anything is done: the number that stood still, where one
    file has it, else the size of the file that was written last."""
    path, look = max(one.sight.looks.items(), key=lambda p: p[1].mtime, default=("", None))
    if look is None:
        return None
    name = one.verdict.name
    if len(one.sight.looks) > 1 or name not in patterns or name not in one.seen.marks:
        return Sighting(path=path, size=look.size)
    number = one.seen.marks[name].value
    return Sighting(path=path, size=look.size, pattern=patterns[name], number=number)


def by_line(pattern: str) -> str:
    """The text of a pattern in which `^` and `$` mean lines, its own leading flags kept."""
    flags = re.match(r"\(\?([aiLmsux]+)\)", pattern)
    rest = pattern[flags.end() :] if flags else pattern
    return f"(?m{flags[1].replace('m', '') if flags else ''}){rest}"
