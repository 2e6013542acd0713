"""All that is known about one drained node in one run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.actions import ActionRecord, NodeReading
from sentinel.core.cluster import Node
from sentinel.core.node_answers import Answer, Unreached
from sentinel.core.text import shortened, visible
from sentinel.nodes.probe import NodeProbe
from sentinel.slurm.slurmctld_log import EPILOG, EVENT, UNTOLD, expand_nodes

# What the logs of slurmctld and slurmd say about nodes.


MAX_LOG_LINES = 5
MAX_LINE_CHARS = 240

# "state set to IDLE" proves nothing: a cancelled reboot logs it too, although the node stays
# drained.
_LOG_LINE_PATTERN = re.compile(r"\b(?:error|fatal): |reason set|state set")
_ERROR_PATTERN = re.compile(r"\b(?:error|fatal): ")
"""How Slurm's daemons mark an error, whatever stamp stands before it: log_msg() in
src/common/log.c."""


class ReasonHistory(Struct, frozen=True):
    """The reasons that a node was given, oldest first, since slurmctld's log shows it in use by a
    job.

    `whole`: the log shows that use. A drained node is given to no job, so all reasons of its
    absence are here. `trouble`: why the log could not be read. Empty if it was read, or is not
    configured.
    """

    reasons: tuple[str, ...] = ()  # The reasons, the oldest first.
    whole: bool = False
    trouble: str = ""


def parse_reason_histories(
    log: str, nodes: Collection[str], trouble: str = ""
) -> Mapping[str, ReasonHistory]:
    """The histories of reasons of these nodes, from slurmctld's log."""
    found, wanted = dict.fromkeys(nodes, ReasonHistory(trouble=trouble)), frozenset(nodes)
    meant: dict[str, frozenset[str]] = {}
    for event in EVENT.finditer(log):
        if at_work := event["allocated"] or event["started"]:
            if at_work not in meant:
                meant[at_work] = wanted & expand_nodes(at_work)
            found.update(dict.fromkeys(meant[at_work], ReasonHistory(whole=True)))
        elif (node := event["given"] or event["drained"] or event["failed"]) in found:
            reason = EPILOG if event["failed"] else (event["reason"] or UNTOLD).strip()
            found[node] = replace(found[node], reasons=(*found[node].reasons, reason))
    return found


def filter_log_lines(log: str) -> Sequence[str]:
    """The errors in slurmctld's log, and what was set of nodes."""
    return [line for line in log.splitlines() if _LOG_LINE_PATTERN.search(line)]


def find_lines_at_error(log: str) -> Sequence[str]:
    """The lines at the last error in slurmd's log: it, those before it, and one behind it. Empty if
    there is no error."""
    lines = log.splitlines()
    last = max((i for i, line in enumerate(lines) if _ERROR_PATTERN.search(line)), default=None)
    return [] if last is None else lines[max(0, last + 2 - MAX_LOG_LINES) : last + 2]


def filter_node_lines(lines: Iterable[str], node: str) -> Sequence[str]:
    """The lines that contain the name as a word."""
    word = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])")
    return [line for line in lines if word.search(line)]


def format_last_lines(lines: Sequence[str]) -> str:
    """The last MAX_LOG_LINES of these lines, ready to be shown."""
    last = lines[-MAX_LOG_LINES:]
    return "\n".join(shortened(visible(line.strip()), MAX_LINE_CHARS) for line in last)


class NodeEvidence(Struct, frozen=True, kw_only=True):
    """A node, its past, and its answers.

    `expediting` are jobs that Slurm requeues at once, and that this node keeps from starting. `paused`
    are suspended jobs: they are there, although a node that has no other is IDLE.
    `completing` are the seconds for which it has not ended a job, if that is too long. `note` is
    what somebody wrote into its Comment or Extra since it was drained, in words. `answer` is None if
    the node was not asked. `readings` is None without a ledger. `here` are the ids of the jobs that
    Slurm has on the node, None if it was not asked. `sluids` are job ids by SLUID. `ran` are the answers to the
    configured proofs, by name. `history` are its reasons in slurmctld's log.
    """

    node: Node  # The node, as Slurm shows it.
    now: int  # Epoch seconds.
    answer: NodeProbe | Unreached | None = None
    readings: Sequence[NodeReading] | None = None
    records: Sequence[ActionRecord] = ()  # Actions on the node.
    here: frozenset[str] | None = None
    sluids: Mapping[str, str] = {}
    expediting: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    completing: float | None = None
    note: str = ""
    history: ReasonHistory = ReasonHistory()
    logs: dict[str, str] = {}  # Other log lines, by name.
    ran: dict[str, Answer] = {}

    @property
    def wrong_since(self) -> float | None:
        """Since when something is wrong, in epoch seconds: the node was drained, or does not end a
        job. None if that is not known."""
        began = None if self.completing is None else self.now - self.completing
        given = (began, self.node.reason_time if "DRAIN" in self.node.flags else None)
        return min((time for time in given if time is not None), default=None)

    @property
    def node_probe(self) -> NodeProbe | None:
        """The answer of the node. None if it did not answer."""
        return self.answer if isinstance(self.answer, NodeProbe) else None


class ProofRules(Struct, frozen=True, kw_only=True):
    """The settings that a verdict needs, and the names of all nodes."""

    reasons: tuple[str, ...]  # Prefixes of reasons that may be undrained.
    names: frozenset[str] = frozenset()  # Names of all nodes.
    ignore_users: frozenset[str] = frozenset()  # Users whose processes may stay on the node.
    first_uid: int = 1000  # The smallest uid of a normal user.
    gpus: int | None = None  # The required number of GPUs. None: the number that Slurm has.
    xids: bool = True  # Whether a driver error keeps the node drained.
    proofs: tuple[str, ...] = ()  # Names of commands that must exit with 0.


class ProofItem(Struct, frozen=True, kw_only=True):
    """One condition that must be met before a node goes back. `moment`: it is not known, and the
    next run of the check may find that it is met."""

    name: str  # The name of the condition.
    good: bool | None  # Whether the condition is met. None: not known.
    text: str  # What was seen.
    moment: bool = False
