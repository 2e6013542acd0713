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

# What the logs of slurmctld and slurmd say about nodes. Pure.


MAX_LOG_LINES = 5
MAX_LINE_CHARS = 240

# "state set to IDLE" says nothing here: a cancelled reboot logs it too, and leaves the node drained.
_LOG_LINE_PATTERN = re.compile(
    r"CANCELLED AT|NOT ENDING|UNKILLABLE|Kill task failed|reason set|state set"
)


class ReasonHistory(Struct, frozen=True):
    """The reasons a node was given, oldest first, since the log saw it given to a job.

    `whole`: it did see that, and no drained node is: all reasons of its absence are here.
    `trouble`: why the log, which somebody named, was not read.
    """

    reasons: tuple[str, ...] = ()
    whole: bool = False
    trouble: str = ""


def parse_reason_histories(
    log: str, nodes: Collection[str], trouble: str = ""
) -> Mapping[str, ReasonHistory]:
    """Of these nodes, by what slurmctld's log holds."""
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
    """The lines of a log that may be of interest."""
    return [line for line in log.splitlines() if _LOG_LINE_PATTERN.search(line)]


def filter_node_lines(lines: Iterable[str], node: str) -> Sequence[str]:
    """Those that have the name as a word."""
    word = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])")
    return [line for line in lines if word.search(line)]


def format_last_lines(lines: Sequence[str]) -> str:
    """The last of them, ready to be shown."""
    last = lines[-MAX_LOG_LINES:]
    return "\n".join(shortened(visible(line.strip()), MAX_LINE_CHARS) for line in last)


class RunningJobs(Struct, frozen=True, kw_only=True):
    """The jobs that run on a node, by all ids that their processes may carry, and whose they are;
    `anywhere`: the ids of all jobs that run."""

    jobs: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    anywhere: frozenset[str] = frozenset()


class NodeEvidence(Struct, frozen=True, kw_only=True):
    """A node, its past, and what it answered.

    `expediting`: jobs that Slurm requeues at once and that this node keeps from starting.
    `completing`: seconds for which it has not ended a job, where that is too long.
    `answer` None: it was not asked. `readings` None: there is no ledger here. `here`: what Slurm
    has on the node; None where nobody asked. `sluids`: job ids by SLUID. `ran`: the answers to the
    configured proofs, by their names; `history`: what slurmctld's log has of its reasons.
    """

    node: Node
    now: int
    answer: NodeProbe | Unreached | None = None
    readings: Sequence[NodeReading] | None = None
    records: Sequence[ActionRecord] = ()
    here: RunningJobs | None = None
    sluids: Mapping[str, str] = {}
    expediting: tuple[str, ...] = ()
    completing: float | None = None
    history: ReasonHistory = ReasonHistory()
    logs: dict[str, str] = {}
    ran: dict[str, Answer] = {}

    @property
    def wrong_since(self) -> float | None:
        """Since when (epoch seconds) something is wrong: it was drained, or does not end a job."""
        began = None if self.completing is None else self.now - self.completing
        given = (began, self.node.reason_time if "DRAIN" in self.node.flags else None)
        return min((time for time in given if time is not None), default=None)

    @property
    def node_probe(self) -> NodeProbe | None:
        """What the node told, if it did."""
        return self.answer if isinstance(self.answer, NodeProbe) else None


class ProofRules(Struct, frozen=True, kw_only=True):
    """The settings that a verdict needs, and the names of all nodes."""

    reasons: tuple[str, ...]
    names: frozenset[str] = frozenset()
    ignore_users: frozenset[str] = frozenset()
    first_uid: int = 1000
    gpus: int | None = None
    xids: bool = True
    proofs: tuple[str, ...] = ()


class ProofItem(Struct, frozen=True, kw_only=True):
    """One thing that must be so before a node goes back: it is (True), is not, or nobody knows.
    `moment`: not known, and the next look may find it over."""

    name: str
    good: bool | None
    text: str
    moment: bool = False
