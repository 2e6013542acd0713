"""What is read from the database, as nouns, within the caller's transaction."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection, Select

from sentinel.core.clock import Instant
from sentinel.core.model import Alert, Outgoing, Run, Sending, Transition
from sentinel.store import statements
from sentinel.store.lease import Lease
from sentinel.store.rows import Addressed, Outcome, Remembered, Snapshot, decode, digest

Noun = TypeVar("Noun")
_ANY: Mapping[str, Any] = {}
Delivery = tuple[Outgoing, Instant | None, str]


def alerts(connection: Connection) -> list[Alert]:
    """Every open alert."""
    return _bodies(connection, statements.all_alerts, Alert)


def runs(connection: Connection) -> list[Run]:
    """The last run of every check."""
    return _bodies(connection, statements.all_runs, Run)


def outbox(connection: Connection) -> list[Outgoing]:
    """Unsent rows, oldest first."""
    return [_numbered(seq, body) for seq, body in connection.execute(statements.unsent)]


def snapshot(connection: Connection) -> Snapshot:
    """All that a running sentinel needs."""
    memory = _bodies(connection, statements.all_memory, Remembered)
    return Snapshot(
        alerts=tuple(alerts(connection)),
        runs=tuple(runs(connection)),
        memory={remembered.check: remembered.memory for remembered in memory},
        outbox=tuple(outbox(connection)),
        seq=connection.execute(statements.last_seq).scalar_one(),
    )


def transitions(connection: Connection, limit: int, alert: str) -> list[Transition]:
    """The newest first, of one alert where its id is given."""
    wanted: dict[str, Any] = {"n": limit}
    if not alert:
        return _bodies(connection, statements.newest, Transition, wanted)
    return _bodies(connection, statements.newest_of, Transition, {**wanted, "a": digest(alert)})


def deliveries(connection: Connection, alert: str) -> list[Delivery]:
    """Every outbox row about an alert, with what became of it."""
    rows = connection.execute(statements.rows_about, {"a": digest(alert)})
    return [delivery(_numbered(seq, body), _outcome(outcome)) for seq, body, outcome in rows]


def sendings(connection: Connection, since: int) -> list[Sending]:
    """What channels took since then, oldest first."""
    rows = connection.execute(statements.sent_since, {"t": since})
    told = ((seq, decode(body, Addressed), decode(outcome, Outcome)) for seq, body, outcome in rows)
    return [
        Sending(row.channel, row.group, outcome.at, outcome.message or seq)
        for seq, row, outcome in told
        if outcome.sent
    ]


def lease(connection: Connection) -> Lease:
    """The lease that was written last; its holder may be gone."""
    return decode(connection.execute(statements.lease).scalar_one(), Lease)


def delivery(row: Outgoing, outcome: Outcome | None) -> Delivery:
    """When the row was sent (None: not) and the receipt, or why it was given up."""
    if outcome is None:
        return row, None, ""
    return row, outcome.at if outcome.sent else None, outcome.text


def _bodies(
    connection: Connection, query: Select[Any], kind: type[Noun], wanted: Mapping[str, Any] = _ANY
) -> list[Noun]:
    found: Iterable[str] = connection.execute(query, wanted).scalars()
    return [decode(body, kind) for body in found]


def _numbered(seq: int, body: str) -> Outgoing:
    return replace(decode(body, Outgoing), seq=seq)


def _outcome(text: str) -> Outcome | None:
    return decode(text, Outcome) if text else None
