"""A look at all of Slurm's nodes and jobs now and then, for whoever shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import to_builtins

from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.slurm.model import Job, Node
from sentinel.status.last_seen import NodeLook, grouped


class Told(Protocol):
    """Slurm, with what it told last."""

    def nodes(self) -> Sequence[Node]: ...

    def last(self) -> tuple[Sequence[Node] | None, Sequence[Job] | None]:
        """Nodes and jobs as told last; nothing is asked."""


class Sight:
    """For one thread at a time. `asks`: whether Slurm is asked for its nodes if no check did."""

    def __init__(self, slurm: Told, *, asks: bool) -> None:
        self._slurm, self._asks = slurm, asks
        self._before: tuple[object, object] = (None, None)
        self._kept: NodeLook | None = None
        self.busy = False

    def look(self, now: Instant) -> Mapping[str, Any] | None:
        """What to remember under `looks.NODES`; None where there is nothing new."""
        self.busy = True
        try:
            return self._look(now)
        finally:
            self.busy = False

    def _look(self, now: Instant) -> Mapping[str, Any] | None:
        told, trouble = self._ask() if self._asks else (None, "")
        last, jobs = self._slurm.last()
        nodes = last if told is None else told
        news = (nodes, jobs)
        if nodes is None or (self._before[0] is nodes and self._before[1] is jobs and not trouble):
            return self._blind(now, trouble)
        self._before = news
        before = self._kept.jobs if self._kept else {}
        states = before if jobs is None else _by_state(jobs)
        self._kept = NodeLook(at=now, groups=grouped(nodes), jobs=states, trouble=trouble)
        return _built(self._kept)

    def _ask(self) -> tuple[Sequence[Node] | None, str]:
        try:
            return self._slurm.nodes(), ""
        except CannotTell as error:
            return None, str(error)

    def _blind(self, now: Instant, trouble: str) -> Mapping[str, Any] | None:
        """What was seen last, with why it is not seen now."""
        if not trouble:
            return None
        kept = self._kept or NodeLook(at=now)
        return _built(NodeLook(at=kept.at, groups=kept.groups, jobs=kept.jobs, trouble=trouble))


def _by_state(jobs: Sequence[Job]) -> Mapping[str, int]:
    states = Counter[str]()
    for job in jobs:
        states[job.state] += job.elements
    return states


def _built(look: NodeLook) -> Mapping[str, Any]:
    told: Mapping[str, Any] = to_builtins(look)
    return told
