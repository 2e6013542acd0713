"""What is asked for when a training hangs, and when. Pure."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.actions.job_requests import StillLogSighting, make_job_request
from sentinel.checks.log.gather import list_job_nodes
from sentinel.checks.log.log_findings import WatchedLog
from sentinel.checks.log.topics import format_troubles
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest, Status
from sentinel.core.text import visible
from sentinel.slurm.filename_patterns import fill_symbols

REQUEST_AGAIN_AFTER_S = 1800.0
"""Seconds after which what was asked for is asked for again, while it still hangs."""

HARMLESS_ACTIONS = ("stacks",)
"""What may be asked for though a witness contradicts, or the log still grows."""

PEER_KINDS = ("NCCL connection", "NCCL network")
"""Troubles whose address is that of the node at fault, and not of the one that complains."""

MAX_WAITING_JOBS = 8
"""Jobs that a node is kept from at once: no more than one hour's actions."""


class ActionRequests(Struct, frozen=True, kw_only=True):
    """The requests about one job, and when they were made. `early`: before the limit, which counts
    for itself."""

    job: str
    requests: tuple[ActionRequest, ...] = ()
    asked: Instant | None = None
    early: bool = False


def is_request_due(one: WatchedLog, now: Instant) -> bool:
    """Once per hang, and again after a while."""
    if not one.verdict.hung or one.sight.job is None:
        return False
    if one.verdict.early:
        return not one.asked_early
    return one.seen.asked is None or get_elapsed_s(one.seen.asked, now) >= REQUEST_AGAIN_AFTER_S


class ActionParams(Struct, frozen=True, kw_only=True):
    """The actions that are wished for when it hangs, and what they need to be told.

    `patterns`: those of `progress` by name; `file` the kill-switch file; `signal` for cancel.
    """

    names: tuple[str, ...] = ()
    patterns: Mapping[str, str] = {}
    file: str = ""
    signal: str = ""

    def list_params(self, name: str, job: Job) -> dict[str, str]:
        """What is this action's own."""
        own = {
            "killswitch": {"file": self._fill_file_path(job)} if self.file else {},
            "cancel": {"signal": self.signal} if self.signal else {},
        }
        return own.get(name, {})

    def _fill_file_path(self, job: Job) -> str:
        """Empty, which the action refuses, where the job's name would lead elsewhere."""
        try:
            return fill_symbols(self.file, job)
        except CannotTell:
            return ""


class HangContext(Struct, frozen=True, kw_only=True):
    """What requests tell besides: the alert's subject, the log's last lines, and the jobs that
    wait to go on after the one that hangs."""

    subject: str
    tail: str = ""
    waiting: tuple[Job, ...] = ()


def make_requests(
    one: WatchedLog, means: ActionParams, hang: HangContext, now: Instant
) -> ActionRequests:
    """One per action, stacks first, and one per waiting job that a node is kept from.

    A job that still works according to a witness is looked at and not touched.
    """
    job = one.sight.job
    if job is None or not one.verdict.hung:
        return ActionRequests(job=job.job_id if job else "")
    early = one.verdict.early
    sure = one.verdict.status is Status.CRITICAL and not early and _is_proven_hang(one, now)
    made = tuple(
        make_job_request(
            name,
            target,
            f"hang: {one.verdict.summary}",
            subject=hang.subject,
            seen=None
            if name == "exclude"
            else _make_sighting(one, {**means.patterns, **_list_found_patterns(one)}),
            params=params,
            evidence=_collect_evidence(one, hang.tail),
        )
        for name in sorted(means.names, key=_rank_action)
        if sure or name in HARMLESS_ACTIONS
        for target, params in _list_targets(name, one, job, means, hang.waiting)
    )
    asked = now if made and not early else one.seen.asked
    return ActionRequests(job=job.job_id, requests=made, asked=asked, early=early)


def _is_proven_hang(one: WatchedLog, now: Instant) -> bool:
    """Whether it was watched standing still. After a file system that hung for all it may go on
    just now, like the jobs; and a number that never advanced in a log that grows may be none that
    does: `progress` may be wrong. These are alarms, and no reasons to end a job."""
    seen, limit = one.seen, one.verdict.limit.seconds if one.verdict.limit else 0.0
    mark = seen.marks.get(one.verdict.name)
    counts = bool(mark and mark.moves) or get_elapsed_s(seen.grown, now) >= limit
    return counts and get_elapsed_s(seen.steady or seen.first, now) >= limit


def find_culprit_node(one: WatchedLog) -> str:
    """The one node of the job that witnesses and NCCL's errors name; empty where they name none
    or several: then it is the network or a file system, and no node is to blame."""
    peers = (one.peers.get(t.peer, "") for t in one.seen.troubles if t.kind in PEER_KINDS)
    named = {*one.testimony.nodes, *filter(None, peers)}
    job = one.sight.job
    mine = list_job_nodes(job) if job else ()
    return named.pop() if len(named) == 1 and named <= {*mine} else ""


def _list_targets(
    name: str, one: WatchedLog, job: Job, means: ActionParams, waiting: Sequence[Job]
) -> list[tuple[Job, dict[str, str]]]:
    """The jobs that an action is about, with what it needs to be told."""
    if name != "exclude":
        return [(job, means.list_params(name, job))]
    node = find_culprit_node(one)
    return [
        (other, {"node": node, "exclude": other.exclude})
        for other in waiting[:MAX_WAITING_JOBS]
        if node
    ]


def _rank_action(name: str) -> int:
    """Looking comes first; then what waits is kept from the node, before it may start there."""
    order = ("stacks", "exclude")
    return order.index(name) if name in order else len(order)


def _collect_evidence(one: WatchedLog, tail: str) -> dict[str, str]:
    told = {
        "finding": one.verdict.summary,
        "log": visible(one.sight.shown_path),
        "witnesses": "; ".join(filter(None, (one.testimony.culprit, one.testimony.words))),
        "errors": format_troubles(one.seen.troubles, one.peers),
        "checkpoints": one.at_risk,
        "last lines": tail,
    }
    return {key: value for key, value in told.items() if value}


def _list_found_patterns(one: WatchedLog) -> dict[str, str]:
    """The pattern of a number that was found out."""
    number = one.seen.reading.number if one.seen.reading else None
    return {number.name: make_multiline_regex(number.pattern)} if number else {}


def _make_sighting(one: WatchedLog, patterns: Mapping[str, str]) -> StillLogSighting | None:
    """What is read again right before anything is done: the number that stood still, where one
    file has it, else the size of the file that was written last."""
    path, look = max(one.sight.looks.items(), key=lambda p: p[1].mtime, default=("", None))
    if look is None:
        return None
    name = one.verdict.name
    if len(one.sight.looks) > 1 or name not in patterns or name not in one.seen.marks:
        return StillLogSighting(path=path, size=look.size)
    number = one.seen.marks[name].value
    return StillLogSighting(path=path, size=look.size, pattern=patterns[name], number=number)


def make_multiline_regex(pattern: str) -> str:
    """The text of a pattern in which `^` and `$` mean lines, its own leading flags kept."""
    flags = re.match(r"\(\?([aiLmsux]+)\)", pattern)
    rest = pattern[flags.end() :] if flags else pattern
    return f"(?m{flags[1].replace('m', '') if flags else ''}){rest}"
