"""All that is known about one drained node in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.actions.model import ActionRecord, Reading
from sentinel.checks.drained.logs import History
from sentinel.nodes.model import Answer, Unreached
from sentinel.nodes.probe import NodeProbe
from sentinel.slurm.model import Node


class Here(Struct, frozen=True, kw_only=True):
    """The jobs that run on a node, by all ids that their processes may carry, and whose they are;
    `anywhere`: the ids of all jobs that run."""

    jobs: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    anywhere: frozenset[str] = frozenset()


class Sight(Struct, frozen=True, kw_only=True):
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
    readings: Sequence[Reading] | None = None
    records: Sequence[ActionRecord] = ()
    here: Here | None = None
    sluids: Mapping[str, str] = {}
    expediting: tuple[str, ...] = ()
    completing: float | None = None
    history: History = History()
    logs: dict[str, str] = {}
    ran: dict[str, Answer] = {}

    @property
    def since(self) -> float | None:
        """Since when (epoch seconds) something is wrong: it was drained, or does not end a job."""
        began = None if self.completing is None else self.now - self.completing
        given = (began, self.node.reason_time if "DRAIN" in self.node.flags else None)
        return min((time for time in given if time is not None), default=None)

    @property
    def probe(self) -> NodeProbe | None:
        """What the node told, if it did."""
        return self.answer if isinstance(self.answer, NodeProbe) else None


class Rules(Struct, frozen=True, kw_only=True):
    """The settings that a verdict needs, and the names of all nodes."""

    reasons: tuple[str, ...]
    names: frozenset[str] = frozenset()
    ignore_users: frozenset[str] = frozenset()
    first_uid: int = 1000
    gpus: int | None = None
    xids: bool = True
    proofs: tuple[str, ...] = ()


class Item(Struct, frozen=True, kw_only=True):
    """One thing that must be so before a node goes back: it is (True), is not, or nobody knows."""

    name: str
    good: bool | None
    text: str
