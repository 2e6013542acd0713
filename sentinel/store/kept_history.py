"""Reads what the state keeps of the past, without changing anything: for `config check --since`."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from msgspec import Struct

from sentinel.alerting.silences import Orders
from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.model import Alert, Notification, Outgoing, Transition
from sentinel.store import statements
from sentinel.store.database import Connection
from sentinel.store.inspection import open_for_reading
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION
from sentinel.store.opening import make_backend
from sentinel.store.rows import DeliveryOutcome, StoredMemory, StoredOrder, collect_orders
from sentinel.store.samples import SampleHistory
from sentinel.store.session import (
    read_schema_version,
    require_known_version,
    translate_driver_errors,
)
from sentinel.store.sql_reads import decode_bodies, read_outbox_rows
from sentinel.store.unreadable import decode_readable


class SentMessage(Struct, frozen=True):
    """One alert in a message that a channel accepted. Those of one message have the same
    `message`."""

    channel: str  # Name of the channel.
    at: Instant  # When it was accepted.
    message: int
    notification: Notification


class KeptHistory(Struct, frozen=True, kw_only=True):
    """What the state keeps of alerts and messages. `first`: the oldest moment of which anything is
    kept (µs UTC); None: nothing is."""

    first: int | None
    alerts: tuple[Alert, ...]  # Open alerts.
    transitions: tuple[Transition, ...]  # Changes of alerts, the oldest first.
    sent: tuple[SentMessage, ...]  # Messages that were sent, the oldest first.
    waiting: tuple[Outgoing, ...]  # Messages that are not sent yet.
    orders: Orders  # What people have ordered.
    cluster: str  # What the cluster was last called.


class HistoryReader:
    """Reads one state within one transaction, so all that it returns is of the same moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._samples = SampleHistory()

    def read_history(self, cluster_key: str) -> KeptHistory:
        """Everything but the samples. `cluster_key`: where the cluster's name is remembered."""
        connection = self._connection
        memory = decode_bodies(connection, statements.ALL_MEMORY, StoredMemory)
        moments = connection.fetch_one(statements.FIRST_KEPT_MOMENTS)
        return KeptHistory(
            first=min((at for at in moments if at is not None), default=None),
            alerts=tuple(decode_bodies(connection, statements.ALERTS, Alert)),
            transitions=tuple(decode_bodies(connection, statements.ALL_TRANSITIONS, Transition)),
            sent=tuple(self._read_sent_messages()),
            waiting=tuple(read_outbox_rows(connection)),
            orders=collect_orders(decode_bodies(connection, statements.ALL_ORDERS, StoredOrder)),
            cluster=next(
                (str(m.memory.get("name", "")) for m in memory if m.check == cluster_key), ""
            ),
        )

    def read_check_samples(
        self, check: str, names: tuple[str, ...], since: int
    ) -> Mapping[str, list[tuple[Instant, dict[str, float]]]]:
        """The samples of these names since `since` (µs UTC), by subject: for each moment that
        has the first of them its numbers, the oldest first."""
        found = dict[str, dict[Instant, dict[str, float]]]()
        for words in decode_bodies(self._connection, statements.SERIES_BODIES, list[str]):
            owner, subject, name = words
            if owner == check and name in names:
                moments = found.setdefault(subject, {})
                series = (owner, subject, name)
                for at, value in self._samples.read_series(self._connection, series, since):
                    moments.setdefault(at, {})[name] = value
        return {
            subject: sorted(
                ((at, numbers) for at, numbers in moments.items() if names[0] in numbers),
                key=lambda one: one[0].wall,
            )
            for subject, moments in found.items()
        }

    def _read_sent_messages(self) -> Iterator[SentMessage]:
        for seq, body, end in self._connection.fetch_rows(statements.FINISHED_MESSAGES):
            rows = decode_readable([body], Outgoing)
            for row, outcome in zip(rows, decode_readable([end], DeliveryOutcome), strict=False):
                if outcome.sent:
                    yield SentMessage(
                        row.channel, outcome.at, outcome.message or seq, row.notification
                    )


@contextmanager
def open_kept_history(state: str) -> Iterator[HistoryReader]:
    """Open the state for reading alone. Raises StateVersionMismatch, StateDamaged,
    StateUnavailable, and StoreError if the tables are older than this version."""
    backend = make_backend(state)
    with (
        translate_driver_errors(backend),
        closing(open_for_reading(backend)) as connection,
        connection.begin_transaction(),
    ):
        version, oldest = read_schema_version(connection)
        require_known_version(backend.place, version, oldest)
        if version < NEWEST_SCHEMA_VERSION:
            raise StoreError(
                f"{backend.place}: its tables are of an older sentinel (schema {version}); the next "
                "sentinel run, tick or state migrate brings them to this version"
            )
        yield HistoryReader(connection)
