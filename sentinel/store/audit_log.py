"""The audit log and the ledger of nodes in SQLite or PostgreSQL, for services and commands alike."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from sentinel.core.actions import (
    ActionHistory,
    ActionRecord,
    ActionSwitch,
    GuardDecision,
    NodeReading,
)
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.nodes import history
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, Statement, Values
from sentinel.store.retention import DEFAULT_RETENTION, Retention
from sentinel.store.rows import UnreadableRow, decode_stored, digest_parts, encode_stored
from sentinel.store.session import DatabaseSession
from sentinel.store.unreadable import AUDIT_ROWS, Noun, decode_readable, move_unreadable_rows

MIN_HISTORY_RECORDS = 1000
"""A verdict rests on at least this many records and departures; no cap or breaker can be set
higher."""

RECENT_LIMITS = {"limit": 50 * MIN_HISTORY_RECORDS, "lately": 2 * 3600 * SECOND}
"""Which records count as recent: at most `limit` rows, and at most `lately` µs older than the
newest."""

_NO_VALUES: Values = {}
MAINTENANCE, BREAKER, LOOKED = "maintenance", "breaker", "looked"
SWITCHES = "switches"
"""The name for people of a switch that cannot be read, beside the names of the audit log's
tables."""


class SqlAuditLog:
    """Implements core.ports.AuditLog. The database is opened at the first use; several threads may
    use it."""

    def __init__(self, backend: Backend, keep: Retention = DEFAULT_RETENTION) -> None:
        self._session = DatabaseSession(backend)
        self._keep = keep

    def close(self) -> None:
        self._session.close()

    # Actions

    def read_past_actions(self, target: str) -> ActionHistory:
        with self._session.read_transaction() as connection:
            return _read_past_actions(connection, target)

    def record_intent(
        self, target: str, decide: Callable[[ActionHistory], GuardDecision]
    ) -> GuardDecision:
        with self._lock_actions_table() as connection:
            decision = decide(_read_past_actions(connection, target))
            if decision.write:
                connection.run(statements.ADD_ACTION, _encode_action(decision.record))
            if decision.breaker:
                self._put_switch(connection, BREAKER, encode_stored(decision.breaker))
            return decision

    def record_outcome(self, record: ActionRecord) -> bool:
        with self._lock_actions_table() as connection:
            return bool(connection.run(statements.CONCLUDE_ACTION, _encode_action(record)))

    def read_unresolved(self) -> list[ActionRecord]:
        with self._session.read_transaction() as connection:
            return _decode_bodies(connection, statements.UNRESOLVED_ACTIONS, ActionRecord)

    def records(self, target: str = "", limit: int = 100) -> list[ActionRecord]:
        wanted = {"limit": limit, "target": digest_parts(target)}
        which = statements.ACTIONS_ABOUT if target else statements.ACTIONS
        with self._session.read_transaction() as connection:
            return decode_readable(connection.fetch_column(which, wanted), ActionRecord)

    # Nodes

    def record_readings(
        self, nodes: Sequence[Node], now: Instant, *, whole: bool = True
    ) -> list[NodeReading]:
        with self._lock_actions_table() as connection:
            found = connection.fetch_column(statements.SWITCH_OF, {"key": digest_parts(LOOKED)})
            looked = next(iter(decode_readable(found, Instant)), None)
            bodies = connection.fetch_column(statements.LAST_READINGS)
            last = {r.node: r for r in decode_readable(bodies, NodeReading)}
            new = list(history.news(nodes, last, looked, now))
            connection.run_many(statements.ADD_READING, [_encode_reading(r) for r in new])
            if whole:
                self._put_switch(connection, LOOKED, encode_stored(now))
            return new

    def readings(self, node: str, limit: int = 100) -> list[NodeReading]:
        wanted = {"node": digest_parts(node), "limit": limit}
        with self._session.read_transaction() as connection:
            bodies = connection.fetch_column(statements.READINGS_OF, wanted)
            return decode_readable(bodies, NodeReading)

    # Switches for all actions

    def set_switch(self, name: str, switch: ActionSwitch | None) -> None:
        with self._lock_actions_table() as connection:
            if switch is None:
                connection.run(statements.REMOVE_SWITCH, {"key": digest_parts(name)})
            else:
                self._put_switch(connection, name, encode_stored(switch))

    def set_unreadable_aside(self, pause: ActionSwitch) -> dict[str, int]:
        """Keep unreadable rows apart, and switch maintenance on, since the recent actions are not
        completely known any more.

        A maintenance that lasts longer stays; an unreadable one becomes one without an end. Returns
        how many rows of each table were kept apart. If all rows can be read, nothing is changed."""
        with self._lock_actions_table() as connection:
            moved = {
                rows.name: len(move_unreadable_rows(connection, rows, pause.since))
                for rows in AUDIT_ROWS
            }
            moved[SWITCHES] = sum(
                _move_unreadable_switch(connection, name, pause.since)
                for name in (MAINTENANCE, BREAKER)
            )
            pause = replace(pause, seconds=None) if moved[SWITCHES] else pause
            kept = _read_switch(connection, MAINTENANCE)
            left = kept.get_seconds_left(pause.since) if kept else 0.0
            if any(moved.values()) and left < pause.get_seconds_left(pause.since):
                self._put_switch(connection, MAINTENANCE, encode_stored(pause))
            return {name: count for name, count in moved.items() if count}

    def prune(self, now: Instant) -> None:
        with self._lock_actions_table() as connection:
            limits = {
                "before": now.wall - self._keep.actions * SECOND,
                "always": MIN_HISTORY_RECORDS,
            }
            connection.run(statements.FORGET_ACTIONS, limits)
            connection.run(statements.FORGET_READINGS, limits)

    def _put_switch(self, connection: Connection, name: str, body: str) -> None:
        connection.run(statements.PUT_SWITCH, {"key": digest_parts(name), "body": body})

    @contextmanager
    def _lock_actions_table(self) -> Iterator[Connection]:
        """A writing transaction that overlaps with no other, from its first read on.

        In SQLite BEGIN IMMEDIATE does this; PostgreSQL needs a lock that still lets others read."""
        with self._session.write_transaction() as connection:
            if connection.dialect == "postgresql":
                connection.run(statements.LOCK_ACTIONS)
            yield connection


def _read_past_actions(connection: Connection, target: str) -> ActionHistory:
    about = {"target": digest_parts(target), "limit": MIN_HISTORY_RECORDS}
    found = [
        *connection.fetch_rows(statements.TRIED_ACTIONS, {"limit": MIN_HISTORY_RECORDS}),
        *connection.fetch_rows(statements.RECENT_TRIED_ACTIONS, RECENT_LIMITS),
        *connection.fetch_rows(statements.NUMBERED_ACTIONS_ABOUT, about),
        *connection.fetch_rows(statements.UNRESOLVED_ACTIONS_ABOUT, about),
    ]
    bodies = dict(sorted((int(seq), body) for seq, body in found))
    return ActionHistory(
        records=tuple(_decode_required(body, ActionRecord) for body in bodies.values()),
        left=tuple(
            _decode_bodies(
                connection, statements.NODE_DEPARTURES, NodeReading, {"limit": MIN_HISTORY_RECORDS}
            )
        ),
        returned=tuple(
            r
            for r in _decode_bodies(
                connection, statements.RECENT_READINGS, NodeReading, RECENT_LIMITS
            )
            if r.returned
        ),
        maintenance=_read_switch(connection, MAINTENANCE),
        breaker=_read_switch(connection, BREAKER),
    )


def _move_unreadable_switch(connection: Connection, name: str, now: Instant) -> bool:
    key = digest_parts(name)
    body = connection.fetch_value(statements.SWITCH_OF, {"key": key})
    try:
        if body is not None:
            decode_stored(body, ActionSwitch)
        return False
    except UnreadableRow:
        kept = {"noun": ActionSwitch.__name__, "key": name, "at": now.wall, "body": body}
        connection.run(statements.KEEP_UNREADABLE, kept)
        connection.run(statements.REMOVE_SWITCH, {"key": key})
        return True


def _read_switch(connection: Connection, name: str) -> ActionSwitch | None:
    body = connection.fetch_value(statements.SWITCH_OF, {"key": digest_parts(name)})
    return None if body is None else _decode_required(body, ActionSwitch)


def _encode_action(record: ActionRecord) -> Values:
    return {
        "id": digest_parts(record.id),
        "target": digest_parts(record.target),
        "tried": int(record.outcome.is_attempted),
        "unresolved": int(record.outcome.is_open),
        "at": record.at.wall,
        "body": encode_stored(record),
    }


def _encode_reading(reading: NodeReading) -> Values:
    return {
        "node": digest_parts(reading.node),
        "at": reading.seen.wall,
        "departure": reading.left.wall if reading.left else 0,
        "body": encode_stored(reading),
    }


def _decode_bodies(
    connection: Connection, statement: Statement, kind: type[Any], wanted: Values = _NO_VALUES
) -> list[Any]:
    """Decode the rows that verdicts rest on. Raises UnreadableRow for a row that cannot be read, so
    that no action is done."""
    return [_decode_required(body, kind) for body in connection.fetch_column(statement, wanted)]


def _decode_required(body: str, kind: type[Noun]) -> Noun:
    try:
        return decode_stored(body, kind)
    except UnreadableRow as error:
        raise UnreadableRow(f"{error}; no action is done until: sentinel state repair") from error
