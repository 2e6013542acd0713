"""Decides which running jobs may be ended by what happens to their nodes, and says it to their owner.
Pure.

Nobody is told of what lets the job finish:

- an ordinary drain;
- `scontrol reboot`, with ASAP too: ASAP drains the node at once, so that it gets no further job, and
  Slurm reboots it when its jobs have ended (scontrol(1) of 22.05 to 26.05). If the reason of such a drain
  is a hardware fault, the fault is told, because the job runs on with it.

`scontrol reboot FORCE` (since 26.05) requeues the jobs at once: there is no time left for a warning, and
the check itself tells the end."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sentinel.checks.wishes import is_owner_muted
from sentinel.core import hostlist
from sentinel.core.cluster import Job, Node, Reservation, Submission
from sentinel.core.errors import Invalid
from sentinel.core.guidance import ActingCommand, Guidance
from sentinel.core.model import Finding, Status
from sentinel.core.text import shortened, visible
from sentinel.core.values import clock_text, duration_text
from sentinel.slurm.drain_reasons import is_hardware_reason, without_appended
from sentinel.slurm.sbatch_words import read_sbatch_call

TOPICS = ("node", "reservation")
"""Ends of the subjects of warnings: about nodes that may fail, and about reservations that begin. Each is
an alert of its own, so that nobody who knows of the one misses the other."""

FLAP_WAIT_S = 180.0
"""Seconds that a drain has to last before anybody is told: some are undone at once."""

CHECKPOINT_TIME_S = 600.0
"""With less time left, a whole checkpoint may not fit."""

MAX_JOBS_NAMED = 3

_SIGNAL_PATTERN = re.compile(r"([RB]*):?(?:SIG)?(USR1|USR2|10|12)(?:@\d+)?")
"""Signals that ask a job for a checkpoint. Others may end it."""


class NodeTrouble(Struct, frozen=True):
    """What happens to some nodes. `passing` troubles have to last before they are reported."""

    what: str  # In words, behind the names of the nodes.
    begins: int = 0  # When it begins, epoch seconds; 0: it has begun.
    passing: bool = False
    reservation: str = ""  # Name of the reservation that begins.


class NodeThreat(Struct, frozen=True):
    """A trouble of nodes of a running job that comes before the job's end."""

    job: Job  # The job.
    nodes: tuple[str, ...]  # Those of its nodes that have the trouble.
    trouble: NodeTrouble  # What happens to them.

    @property
    def topic(self) -> str:
        """One of TOPICS."""
        return TOPICS[bool(self.trouble.begins)]


def find_node_troubles(
    nodes: Iterable[Node], hidden: Sequence[str], private: Collection[str]
) -> dict[str, NodeTrouble]:
    """The nodes on which a running job is at stake now. Reasons with a `hidden` beginning, and all
    where Slurm hides nodes from users, are not told."""
    found = {}
    for node in nodes:
        if trouble := _find_node_trouble(node, hidden, private):
            found[node.name] = trouble
    return found


def list_reservation_troubles(
    reservations: Iterable[Reservation], private: Collection[str], now_s: float
) -> list[tuple[Reservation, NodeTrouble]]:
    """Reservations of nodes that are yet to begin. Those whose beginning moves on with the time
    never begin."""
    hides = "reservations" in private
    return [
        (
            r,
            NodeTrouble(
                ("maintenance" if "MAINT" in r.flags else "a reservation")
                + ("" if hides else f" ({shortened(visible(r.name), 60)})"),
                r.starts,
                reservation=r.name,
            ),
        )
        for r in reservations
        if r.starts > now_s and "TIME_FLOAT" not in r.flags
    ]


def find_threats(
    job: Job,
    troubles: Mapping[str, NodeTrouble],
    planned: Sequence[tuple[Reservation, NodeTrouble]],
) -> list[NodeThreat]:
    """What threatens this running job. Several nodes with the same trouble are one threat."""
    names = _expand_nodes(job.nodes) if troubles or planned else ()
    by_trouble: dict[NodeTrouble, list[str]] = {}
    for name in names:
        if trouble := troubles.get(name):
            by_trouble.setdefault(trouble, []).append(name)
    for reservation, trouble in planned:
        before_end = job.ends is None or reservation.starts < job.ends
        taken = [n for n in names if "ALL_NODES" in reservation.flags or n in reservation.nodes]
        if before_end and taken and job.user not in reservation.users:
            by_trouble[trouble] = taken
    return [NodeThreat(job, tuple(nodes), trouble) for trouble, nodes in by_trouble.items()]


def judge_threats(
    subject: str, threats: Sequence[NodeThreat], how: Submission | None, now_s: float
) -> Finding:
    """One warning about the threats of one topic to a training. `how` is the submission of the first
    job."""
    first = threats[0].job
    nodes = tuple(dict.fromkeys(name for threat in threats for name in threat.nodes))
    told = [_describe_threat(threat, now_s) for threat in threats[:MAX_JOBS_NAMED]]
    more = [f"{len(threats) - MAX_JOBS_NAMED} more"] if len(threats) > MAX_JOBS_NAMED else []
    begins = min((t.trouble.begins for t in threats if t.trouble.begins), default=0)
    command = _find_save_command(first, how)
    labels = {"job": first.name, "user": first.user, "partition": first.partition}
    labels |= {"node": nodes[0]} if len(nodes) == 1 else {}
    return Finding(
        subject=f"{subject} {threats[0].topic}",
        status=Status.WARNING,
        summary="; ".join([*told, *more]),
        acts=(command,) if command else (),
        labels={key: visible(text) for key, text in labels.items() if text},
        patience=FLAP_WAIT_S if all(t.trouble.passing for t in threats) else 0.0,
        tell_once=True,
        guidance=Guidance(
            impact="What is not in a checkpoint by then is lost if the job ends.",
            todo=_describe_save(begins - now_s if begins else None, bool(command)),
        ),
        owner_muted=is_owner_muted(first),
    )


def make_calm_finding(subject: str, topic: str, jobs: Sequence[Job]) -> Finding:
    """The end of a warning."""
    over = "no node of its running jobs is at stake any more" if jobs else "no job of it runs now"
    return Finding(
        subject=f"{subject} {topic}",
        status=Status.OK,
        summary=over,
        owner_muted=bool(jobs) and is_owner_muted(jobs[0]),
    )


def _find_node_trouble(
    node: Node, hidden: Sequence[str], private: Collection[str]
) -> NodeTrouble | None:
    if "REBOOT_ISSUED" in node.flags:
        return NodeTrouble("rebooted now")
    if "FAIL" in node.flags:
        return NodeTrouble(f"expected to fail{_tell_reason(node, hidden, private)}", passing=True)
    if "DRAIN" in node.flags and is_hardware_reason(node.reason):
        reason = _tell_reason(node, hidden, private)
        return NodeTrouble(f"drained for a hardware fault{reason}", passing=True)
    return None


def _tell_reason(node: Node, hidden: Sequence[str], private: Collection[str]) -> str:
    reason = without_appended(node.reason)
    if not reason or "nodes" in private or reason.startswith(tuple(hidden)):
        return ""
    return f" ({shortened(visible(reason), 120)})"


def _describe_threat(threat: NodeThreat, now_s: float) -> str:
    job, trouble = threat.job, threat.trouble
    nodes = shortened(hostlist.fold_for_people(threat.nodes), 80)
    number = visible(job.id)
    are = "is" if len(threat.nodes) == 1 else "are"
    if not trouble.begins:
        return f"{nodes} of job {number} {are} {trouble.what}"
    when = f"{clock_text(trouble.begins, now_s)}, in {duration_text(trouble.begins - now_s)}"
    ends = f"; its time limit comes {clock_text(job.ends, now_s)}" if job.ends else ""
    return f"{nodes} of job {number} {are} taken by {trouble.what} {when}{ends}"


def _describe_save(left: float | None, has_command: bool) -> str:
    fits = "Save a checkpoint now: the node may fail at any time"
    if left is not None:
        enough = left >= CHECKPOINT_TIME_S
        fits = "There is time for a checkpoint" if enough else "Save at once: time is short"
    way = "`scancel --signal` below sends the signal that it was submitted with"
    return f"{fits}; {way if has_command else 'ask the training to save by its own means'}."


def _find_save_command(job: Job, how: Submission | None) -> ActingCommand | None:
    """The command that sends the job the signal of its own `--signal`. None if it was submitted
    without, or that is not known."""
    words = how.line.split() if how else []
    asked = read_sbatch_call(words[1:]).signal or ""
    found = _SIGNAL_PATTERN.fullmatch(asked.upper())
    if not found or not job.job_id.isdigit():
        return None
    batch = ["--batch"] if "B" in found[1] else []
    argv = ("scancel", *batch, f"--signal={found[2]}", job.job_id)
    return ActingCommand(owner=job.user, argv=argv)


def _expand_nodes(nodes: str) -> Iterator[str] | Sequence[str]:
    try:
        return hostlist.expand_printed(nodes) if nodes else ()
    except Invalid:
        return ()
