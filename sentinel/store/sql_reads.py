"""Reads data that are spread over several tables, from one connection."""

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from sentinel.core.model import Alert, CheckRun, Outgoing
from sentinel.store import statements
from sentinel.store.database import Connection, Statement, Values
from sentinel.store.lease import UNKNOWN_LEASE, Lease
from sentinel.store.rows import (
    StateSnapshot,
    StoredMemory,
)
from sentinel.store.unreadable import decode_readable

Noun = TypeVar("Noun")

NO_VALUES: Mapping[str, Any] = {}


def read_outbox_rows(connection: Connection) -> list[Outgoing]:
    """Unsent messages, the oldest first."""
    return [
        replace(row, seq=seq)
        for seq, body in connection.fetch_rows(statements.UNSENT_MESSAGES)
        for row in decode_readable([body], Outgoing)
    ]


def read_snapshot_rows(connection: Connection) -> StateSnapshot:
    """The whole state that a running sentinel needs."""
    memory = decode_bodies(connection, statements.ALL_MEMORY, StoredMemory)
    seq, token = connection.fetch_one(statements.LAST_SEQ)
    return StateSnapshot(
        alerts=tuple(decode_bodies(connection, statements.ALERTS, Alert)),
        runs=tuple(decode_bodies(connection, statements.RUNS, CheckRun)),
        memory={remembered.check: remembered.memory for remembered in memory},
        outbox=tuple(read_outbox_rows(connection)),
        seq=seq,
        token=token,
    )


def read_stored_lease(connection: Connection) -> Lease:
    """The lease that was written last. Its holder may be gone."""
    return next(
        iter(decode_readable(connection.fetch_one(statements.STORED_LEASE), Lease)), UNKNOWN_LEASE
    )


def decode_bodies(
    connection: Connection, statement: Statement, kind: type[Noun], wanted: Values = NO_VALUES
) -> list[Noun]:
    return decode_readable(connection.fetch_column(statement, wanted), kind)
