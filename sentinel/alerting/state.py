"""The protocol of the state for its users. sentinel.store implements it on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:  # a command that runs once needs none of these
    from sentinel.alerting.silences import Ack, Orders, Remark, Silence
    from sentinel.core.clock import Instant
    from sentinel.core.model import Alert, Batch, CheckRun, Outgoing, Receipt, Sending, Transition
    from sentinel.core.run_ledger import LedgerRow


class StateTrouble(Struct, frozen=True):
    """Why the state cannot be written now: since when, and how many writes wait.

    With `lost_detail`, too many writes waited. No open alert and no unsent message is lost. But
    samples are lost, and all transitions but the newest thousand. `kept_in` is the journal that
    holds the waiting writes. It is empty if only the memory of this process holds them.
    """

    since: Instant  # When writing first failed.
    why: str  # The database's error message.
    waiting: int = 0  # How many writes wait.
    lost_detail: bool = False
    kept_in: str = ""


class Store(Protocol):
    """The state. Only the leader writes (see `take_lead`). Each write is one transaction.

    Raises StoreError if the state cannot be read or written, and Fenced if another process leads.
    """

    def take_lead(self, holder: str, now: Instant) -> int:
        """Become the only writer and return the new fencing token. Raises StoreBusy if another
        process leads."""

    def release_lead(self) -> None:
        """Stop leading. Does nothing if this process does not lead."""

    @property
    def term(self) -> float:
        """Seconds until a lease expires that is not renewed. 0 if the lead ends only with the
        process."""

    def renew_lease(self) -> None:
        """Renew the lease. If the state has leases, call this well before the lease expires."""

    def get_lease_left_s(self) -> float:
        """Seconds for which certainly no other process leads, without asking the database. If it is
        not positive, nothing may be sent or done."""

    def read_leader(self) -> str:
        """The name of the current leader. Empty if there is none."""

    def read_alerts(self) -> list[Alert]:
        """Every alert that is pending or firing."""

    def read_runs(self) -> list[CheckRun]:
        """The last run of every check."""

    def read_memory(self, check: str) -> Mapping[str, Any]:
        """The memory that the check's last report stored. Empty at first."""

    def commit(self, batch: Batch) -> None:
        """Write the whole batch, or nothing."""

    def read_outbox(self) -> list[Outgoing]:
        """Unsent rows in the order in which they were committed."""

    def sent(self, rows: Sequence[Outgoing], now: Instant, receipt: Receipt) -> None:
        """Record that a channel accepted these rows."""

    def failed(self, rows: Sequence[Outgoing]) -> None:
        """Store attempts, tried, wait, permanent and error of the rows that were not accepted."""

    def dropped(self, rows: Sequence[Outgoing], now: Instant, why: str) -> None:
        """Give up these rows. They stay visible in the history of their alert."""

    def read_transitions(self, limit: int = 100, alert: str = "") -> list[Transition]:
        """The transitions, newest first. With an id, only those of that alert."""

    def read_deliveries(self, alert: str) -> list[tuple[Outgoing, Instant | None, str]]:
        """All outbox rows about an alert. Each has the time when it was sent (None: not sent) and
        the receipt."""

    def read_sendings(self, since: int) -> list[Sending]:
        """The messages that the channels accepted since `since` (µs UTC), oldest first."""

    def read_samples(
        self, check: str, subject: str, name: str, since: int
    ) -> list[tuple[Instant, float]]:
        """The samples of one number since `since` (µs UTC), oldest first."""

    def read_ledger(self, since: int) -> list[LedgerRow]:
        """The rows of the ledger of runs that end at or after `since` (µs UTC)."""

    def read_orders(self) -> Orders:
        """Silences and acknowledgements. Ended ones are included until they are pruned."""

    def put_silence(self, silence: Silence) -> None:
        """Add a silence, or change the one with this id. Needs no lead, because people do it."""

    def put_ack(self, ack: Ack) -> None:
        """Store that somebody has acknowledged this alert. Needs no lead."""

    def put_remark(self, remark: Remark) -> None:
        """Store a person's remark about an incident. Needs no lead."""

    def prune(self, now: Instant) -> None:
        """Delete sent rows, transitions and samples that are older than the limits of the store.
        Thin out older samples to one an hour."""

    def close(self) -> None: ...

    # The methods below are only for a store that continues while its database cannot be written.

    @property
    def trouble(self) -> StateTrouble | None:
        """The trouble of the state. None while it can be written."""
        return None

    @property
    def is_durable(self) -> bool:
        """Whether every write so far would survive the end of this process."""
        return True

    @property
    def refused_journals(self) -> tuple[str, ...]:
        """Journals that exist but were not used, with the reasons."""
        return ()

    def take_notices(self) -> tuple[str, ...]:
        """Notices for people that were not sent yet: a state was set aside."""
        return ()
