"""What the core asks of the world, as protocols; the edges implement them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.model import (
    Alert,
    Batch,
    Notification,
    Outgoing,
    Receipt,
    Report,
    Run,
    Transition,
)
from sentinel.core.slurm import Controller, Job, JobEnd, Node


class Clock(Protocol):
    """The only source of the present."""

    def now(self) -> Instant: ...


class Slurm(Protocol):
    """One view of Slurm for all checks of a pass; every method raises CannotTell when blind."""

    def jobs(self) -> Sequence[Job]:
        """Pending, running, suspended and completing jobs of the users asked for."""

    def nodes(self) -> Sequence[Node]:
        """Every node Slurm knows."""

    def job_end(self, job_id: str) -> JobEnd | None:
        """How a job that left the queue ended; None when nothing remembers it."""

    def controller(self) -> Controller:
        """Whether slurmctld (and its backup) answers, and how fast; never cached."""


class Context(Struct, kw_only=True):
    """What a check may use while it runs: ports and what it remembered, nothing global.

    `limit`: seconds the whole run may take. `memory`: what its last Report stored.
    `one_shot`: no state exists and none is kept; judge from what is seen now.
    """

    name: str
    now: Instant
    limit: float
    slurm: Slurm
    memory: Mapping[str, Any] = {}
    one_shot: bool = False
    history: Callable[[str, str, float], Sequence[tuple[Instant, float]]] = lambda *_: ()


class Check(Protocol):
    """A configured check. Its fields are its settings; it may raise CannotTell."""

    def run(self, ctx: Context) -> Report: ...


class Channel(Protocol):
    """A way to people or machines. Its fields are its settings.

    `send` returns what the other side answered or raises ChannelError; it neither retries
    nor waits longer than its own timeout. Several notifications come at once only to a
    channel whose class says `groups = True`.
    """

    async def send(self, notifications: Sequence[Notification]) -> Receipt: ...


class Store(Protocol):
    """The state. Every write belongs to the leader (see `lead`) and is one transaction.

    Raises StoreError when it cannot be read or written and Fenced when another leads.
    """

    def lead(self, holder: str, now: Instant) -> int:
        """Become the only writer and return the new fencing token; StoreBusy if taken."""

    def release(self) -> None:
        """Stop leading; harmless when not leading."""

    def leader(self) -> str:
        """Who leads now, or an empty string."""

    def alerts(self) -> list[Alert]:
        """Every alert that is pending or firing."""

    def runs(self) -> list[Run]:
        """The last run of every check."""

    def memory(self, check: str) -> Mapping[str, Any]:
        """What the check's last report stored; empty at first."""

    def commit(self, batch: Batch) -> None:
        """Write all of the batch or nothing."""

    def outbox(self) -> list[Outgoing]:
        """Unsent rows in the order in which they were committed."""

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        """The rows were taken by their channel."""

    def failed(self, rows: Sequence[Outgoing]) -> None:
        """Keep attempts, tried, wait, permanent and error of rows that were not taken."""

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        """Give rows up for good; they stay visible in the history of their alert."""

    def history(self, limit: int = 100, alert: str = "") -> list[Transition]:
        """The newest transitions first; of one alert where its id is given."""

    def deliveries(self, alert: str) -> list[tuple[Outgoing, Instant | None, str]]:
        """All outbox rows about an alert with when sent (None: not) and the receipt."""

    def samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        """The history of one number from `since` (µs UTC) on, oldest first."""

    def prune(self, now: Instant) -> None:
        """Forget sent rows, transitions and samples that are older than the store keeps."""

    def close(self) -> None: ...
