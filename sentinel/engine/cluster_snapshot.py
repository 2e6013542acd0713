"""Reads all of Slurm's nodes and jobs from time to time, for the web page and the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.core.clock import Instant
from sentinel.core.cluster import Job, Node, has_processes
from sentinel.core.errors import CannotTell
from sentinel.core.hostlist import fold_for_people
from sentinel.slurm.gres import count_gres_gpus
from sentinel.status.last_seen import NodeLook, PlacedJob, group_nodes

MAX_PLACED_JOBS = 2000
"""How many jobs are kept with their nodes, the largest ones. Their row is written again with each
observation."""


class SlurmAnswers(Protocol):
    """Slurm, with its last answers."""

    def nodes(self) -> Sequence[Node]: ...

    def topology(self) -> Mapping[str, str]:
        """Leaf switches or blocks with their hostlists."""

    def private(self) -> Collection[str]:
        """The words of PrivateData."""

    def last(self) -> tuple[Sequence[Node] | None, Sequence[Job] | None]:
        """Nodes and jobs of the last answers, without asking Slurm."""


class ClusterPoller:
    """Polls Slurm. It is for one thread at a time. If it `asks`, it asks Slurm for its nodes.
    Otherwise it uses the answers that checks got."""

    def __init__(self, slurm: SlurmAnswers, *, asks: bool) -> None:
        self._slurm, self._asks = slurm, asks
        self._before: tuple[object, object] = (None, None)
        self._kept: NodeLook | None = None
        self.busy = False

    def poll_nodes(self, now: Instant) -> Mapping[str, Any] | None:
        """The row to store under last_seen.NODES_KEY. None if there is nothing new."""
        self.busy = True
        try:
            return self._build_look(now)
        finally:
            self.busy = False

    def _build_look(self, now: Instant) -> Mapping[str, Any] | None:
        told, trouble = self._ask_node_list() if self._asks else (None, "")
        last, jobs = self._slurm.last()
        nodes = last if told is None else told
        news = (nodes, jobs)
        if nodes is None or (self._before[0] is nodes and self._before[1] is jobs and not trouble):
            return self._build_blind_look(now, trouble)
        self._before = news
        before = self._kept.jobs if self._kept else {}
        states = before if jobs is None else _count_by_state(jobs)
        self._kept = NodeLook(
            at=now,
            groups=group_nodes(nodes),
            jobs=states,
            gpus=_group_by_gpu_count(nodes),
            work=_select_running_jobs(jobs or ()),
            racks=self._read_racks(),
            private=self._read_private_data(),
            trouble=trouble,
        )
        return _encode_look(self._kept)

    def _read_racks(self) -> Mapping[str, str]:
        """The racks. If Slurm does not show them now, the former ones, because they seldom change."""
        if self._asks:
            with suppress(CannotTell):
                return self._slurm.topology()
        return self._kept.racks if self._kept else {}

    def _read_private_data(self) -> tuple[str, ...] | None:
        """The words of PrivateData. If Slurm does not show them now, the words that it showed last.
        None if it never did."""
        if self._asks:
            with suppress(CannotTell):
                return tuple(sorted(self._slurm.private()))
        return self._kept.private if self._kept else None

    def _ask_node_list(self) -> tuple[Sequence[Node] | None, str]:
        try:
            return self._slurm.nodes(), ""
        except CannotTell as error:
            return None, str(error)

    def _build_blind_look(self, now: Instant, trouble: str) -> Mapping[str, Any] | None:
        """The last observation, with the reason why there is no new one. None without a `trouble`."""
        if not trouble:
            return None
        kept = self._kept or NodeLook(at=now)
        return _encode_look(replace(kept, trouble=trouble))


def _count_by_state(jobs: Sequence[Job]) -> Mapping[str, int]:
    states = Counter[str]()
    for job in jobs:
        states[job.state] += job.elements
    return states


def _group_by_gpu_count(nodes: Sequence[Node]) -> Mapping[str, str]:
    """Hostlists by the number of GPUs, as a key of JSON. Nodes without GPUs are left out."""
    found: dict[int, list[str]] = {}
    for node in nodes:
        if node.gres and (count := count_gres_gpus(node.gres)):
            found.setdefault(count, []).append(node.name)
    return {str(count): fold_for_people(names) for count, names in found.items()}


def _select_running_jobs(jobs: Sequence[Job]) -> tuple[PlacedJob, ...]:
    running = sorted((job for job in jobs if has_processes(job)), key=lambda job: -job.node_count)[
        :MAX_PLACED_JOBS
    ]
    return tuple(PlacedJob(id=j.id, name=j.name, user=j.user, nodes=j.nodes) for j in running)


def _encode_look(look: NodeLook) -> Mapping[str, Any]:
    told: Mapping[str, Any] = to_builtins(look)
    return told
