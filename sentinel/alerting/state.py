"""The state as what uses it sees it, a protocol; sentinel.store has it on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:  # a one-shot needs none of these here
    from sentinel.alerting.silences import Ack, Orders, Remark, Silence
    from sentinel.core.clock import Instant
    from sentinel.core.model import Alert, Batch, CheckRun, Outgoing, Receipt, Sending, Transition


class StateTrouble(Struct, frozen=True):
    """Why the state is not written just now: since when, and how many writes wait.

    `lost_detail`: too many waited. No open alert or unsent message is lost, but samples
    are, and of transitions all but the newest thousand. `kept_in`: the journal that holds what
    waits, empty where only this process's memory does.
    """

    since: Instant
    why: str
    waiting: int = 0
    lost_detail: bool = False
    kept_in: str = ""


class Store(Protocol):
    """The state. Every write belongs to the leader (see `take_lead`) and is one transaction.

    Raises StoreError when it cannot be read or written and Fenced when another leads.
    """

    def take_lead(self, holder: str, now: Instant) -> int:
        """Become the only writer and return the new fencing token; StoreBusy if taken."""

    def release_lead(self) -> None:
        """Stop leading; harmless when not leading."""

    @property
    def term(self) -> float:
        """Seconds a lease lasts that is not renewed; 0 where leading ends only with its process."""

    def renew_lease(self) -> None:
        """Go on leading: where a lease expires, this is to be called well before it does."""

    def get_lease_left_s(self) -> float:
        """Seconds for which surely nobody else leads; without asking anybody. Nothing may be
        sent or done when it is not positive."""

    def read_leader(self) -> str:
        """Who leads now, or an empty string."""

    def read_alerts(self) -> list[Alert]:
        """Every alert that is pending or firing."""

    def read_runs(self) -> list[CheckRun]:
        """The last run of every check."""

    def read_memory(self, check: str) -> Mapping[str, Any]:
        """What the check's last report stored; empty at first."""

    def commit(self, batch: Batch) -> None:
        """Write all of the batch or nothing."""

    def read_outbox(self) -> list[Outgoing]:
        """Unsent rows in the order in which they were committed."""

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        """The rows were taken by their channel."""

    def failed(self, rows: Sequence[Outgoing]) -> None:
        """Keep attempts, tried, wait, permanent and error of rows that were not taken."""

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        """Give rows up for good; they stay visible in the history of their alert."""

    def read_transitions(self, limit: int = 100, alert: str = "") -> list[Transition]:
        """The newest transitions first; of one alert where its id is given."""

    def read_deliveries(self, alert: str) -> list[tuple[Outgoing, Instant | None, str]]:
        """All outbox rows about an alert with when sent (None: not) and the receipt."""

    def read_sendings(self, since: int) -> list[Sending]:
        """What channels took from `since` (µs UTC) on, oldest first."""

    def read_samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        """The history of one number from `since` (µs UTC) on, oldest first."""

    def read_orders(self) -> Orders:
        """Silences and acknowledgements, ended ones too until they are pruned."""

    def put_silence(self, silence: Silence) -> None:
        """Begin, or by its id change, a silence. Needs no leadership: people write it."""

    def put_ack(self, ack: Ack) -> None:
        """Somebody has this alert. Needs no leadership."""

    def put_remark(self, remark: Remark) -> None:
        """Somebody has said something of an incident. Needs no leadership."""

    def prune(self, now: Instant) -> None:
        """Forget sent rows, transitions and samples that are older than the store keeps, and thin
        older samples to one an hour."""

    def close(self) -> None: ...

    # What only a store has to say that goes on while it cannot be written

    @property
    def trouble(self) -> StateTrouble | None:
        """None while it is written as it should be."""
        return None

    @property
    def is_durable(self) -> bool:
        """Whether all that was written outlives this process."""
        return True

    @property
    def refused_journals(self) -> tuple[str, ...]:
        """Journals that are there and not used, and why."""
        return ()

    def take_notices(self) -> tuple[str, ...]:
        """What a person must hear and was not told yet: a state was set aside."""
        return ()
