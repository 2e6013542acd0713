"""Decides which actions are requested when a training hangs, and when. Pure."""

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
from sentinel.slurm.filename_patterns import fill_symbols, whose_path

REQUEST_AGAIN_AFTER_S = 1800.0
"""Seconds until an action is requested again, while the training still hangs."""

HARMLESS_ACTIONS = ("stacks",)
"""Actions that may be requested even if a witness contradicts, or the log still grows."""

PEER_KINDS = ("NCCL connection", "NCCL network")
"""Errors that contain the address of the node at fault, not of the node that reports it."""

MAX_WAITING_JOBS = 8
"""How many waiting jobs are kept from a node at once: not more than one hour's limit of actions."""


class ActionRequests(Struct, frozen=True, kw_only=True):
    """The requests about one job, and when they were made. `early` means before the limit. Such
    requests count separately."""

    job: str  # Id of the job.
    requests: tuple[ActionRequest, ...] = ()  # The requests.
    asked: Instant | None = None  # When they were made.
    early: bool = False


def is_request_due(one: WatchedLog, now: Instant) -> bool:
    """Whether a request is due: once per hang, and again after some time."""
    if not one.verdict.hung or one.sight.job is None:
        return False
    if one.verdict.early:
        return not one.asked_early
    return one.seen.asked is None or get_elapsed_s(one.seen.asked, now) >= REQUEST_AGAIN_AFTER_S


class ActionParams(Struct, frozen=True, kw_only=True):
    """The actions for a training that hangs, with their parameters.

    patterns: Patterns of `progress`, by name.
    file: The kill-switch file.
    signal: The signal for `cancel`.
    shared: Whether trainings of several users are meant.
    """

    names: tuple[str, ...] = ()  # Names of the actions.
    patterns: Mapping[str, str] = {}
    file: str = ""
    signal: str = ""
    shared: bool = False

    def list_params(self, name: str, job: Job) -> dict[str, str]:
        """The parameters of this action alone."""
        own = {
            "killswitch": self._list_file_params(job) if self.file else {},
            "cancel": {"signal": self.signal} if self.signal else {},
        }
        return own.get(name, {})

    def _list_file_params(self, job: Job) -> dict[str, str]:
        """The file, and whether the operator wrote its whole name for one user's jobs: neither a job's
        name nor the hang of one user must decide what is created with root's rights for all."""
        literal = whose_path(self.file, job).literal and not self.shared
        return {"file": self._fill_file_path(job), **({"literal": "yes"} if literal else {})}

    def _fill_file_path(self, job: Job) -> str:
        """The path with the job's name filled in. Empty, which the action refuses, if the name
        would lead to another directory."""
        try:
            return fill_symbols(self.file, job)
        except CannotTell:
            return ""


class HangContext(Struct, frozen=True, kw_only=True):
    """Further facts for requests: the alert's subject, the log's last lines, and the jobs that wait
    for the hanging one."""

    subject: str  # What the alert is about.
    tail: str = ""  # Last lines of the log.
    waiting: tuple[Job, ...] = ()  # Jobs that wait for the end of the hanging job.


def make_requests(
    one: WatchedLog, means: ActionParams, hang: HangContext, now: Instant
) -> ActionRequests:
    """One request per action, stacks first, and one per waiting job that is kept from a node.

    The job is only examined, not changed, before the limit, if the hang is not proven, or if a
    witness says that the job still works.
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
            evidence={
                **_collect_evidence(one, hang.tail),
                **(_count_left_jobs(hang.waiting) if name == "exclude" else {}),
            },
        )
        for name in sorted(means.names, key=_rank_action)
        if sure or name in HARMLESS_ACTIONS
        for target, params in _list_targets(name, one, job, means, hang.waiting)
    )
    asked = now if made and not early else one.seen.asked
    return ActionRequests(job=job.job_id, requests=made, asked=asked, early=early)


def _is_proven_hang(one: WatchedLog, now: Instant) -> bool:
    """Whether the training was observed to stand still.

    If the whole file system hung, the training may just go on, as other jobs do. If a number never
    advanced in a growing log, `progress` may be wrong. Both are reasons for an alarm, but not for
    ending a job.
    """
    seen, limit = one.seen, one.verdict.limit.seconds if one.verdict.limit else 0.0
    mark = seen.marks.get(one.verdict.name)
    counts = bool(mark and mark.moves) or get_elapsed_s(seen.grown, now) >= limit
    return counts and get_elapsed_s(seen.steady or seen.first, now) >= limit


def find_culprit_node(one: WatchedLog) -> str:
    """The one node of the job that witnesses and NCCL errors name.

    Empty if they name none or several. Then the network or a file system is at fault, and not a
    node.
    """
    peers = (one.peers.get(t.peer, "") for t in one.seen.troubles if t.kind in PEER_KINDS)
    named = {*one.testimony.nodes, *filter(None, peers)}
    job = one.sight.job
    mine = list_job_nodes(job) if job else ()
    return named.pop() if len(named) == 1 and named <= {*mine} else ""


def _list_targets(
    name: str, one: WatchedLog, job: Job, means: ActionParams, waiting: Sequence[Job]
) -> list[tuple[Job, dict[str, str]]]:
    """The jobs that an action is about, with its parameters."""
    if name != "exclude":
        return [(job, means.list_params(name, job))]
    node = find_culprit_node(one)
    return [
        (other, {"node": node, "exclude": other.exclude})
        for other in waiting[:MAX_WAITING_JOBS]
        if node
    ]


def _count_left_jobs(waiting: Sequence[Job]) -> dict[str, str]:
    """An item of evidence: how many waiting jobs are not kept from the node."""
    left = len(waiting) - MAX_WAITING_JOBS
    return {"other waiting jobs": f"{left} more may start on the node"} if left > 0 else {}


def _rank_action(name: str) -> int:
    """The order of actions: first those that only examine. Then waiting jobs are kept from the
    node, before they can start there."""
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
    """The pattern of a number that was found automatically."""
    number = one.seen.reading.number if one.seen.reading else None
    return {number.name: make_multiline_regex(number.pattern)} if number else {}


def _make_sighting(one: WatchedLog, patterns: Mapping[str, str]) -> StillLogSighting | None:
    """What is read again directly before an action: the number that stood still, if it is in one
    file. Otherwise the size of the newest file."""
    path, look = max(one.sight.looks.items(), key=lambda p: p[1].mtime, default=("", None))
    if look is None:
        return None
    name = one.verdict.name
    if len(one.sight.looks) > 1 or name not in patterns or name not in one.seen.marks:
        return StillLogSighting(path=path, size=look.size)
    number = one.seen.marks[name].value
    return StillLogSighting(path=path, size=look.size, pattern=patterns[name], number=number)


def make_multiline_regex(pattern: str) -> str:
    """The text of a pattern in which `^` and `$` match at lines. Its own leading flags are kept."""
    flags = re.match(r"\(\?([aiLmsux]+)\)", pattern)
    rest = pattern[flags.end() :] if flags else pattern
    return f"(?m{flags[1].replace('m', '') if flags else ''}){rest}"
