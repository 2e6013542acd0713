"""The audit log and the ledger of nodes in SQLite or PostgreSQL, for services and commands alike."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sentinel.core.actions import ActionRecord, Decision, Past, Reading, Switch
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Node
from sentinel.nodes import history
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, Statement, Values
from sentinel.store.retention import USUAL, Keep
from sentinel.store.rows import decode, digest, encode
from sentinel.store.session import Session

MANY = 1000
"""Records and departures a verdict rests on at least; no cap or breaker can be set higher."""

LATELY = {"limit": 50 * MANY, "lately": 2 * 3600 * SECOND}
"""What counts as lately: microseconds before the newest, and no more rows than that."""

_ANY: Values = {}
MAINTENANCE, BREAKER, LOOKED = "maintenance", "breaker", "looked"


class SqlBooks:
    """core.ports.Books. It opens at its first use; safe to use from several threads."""

    def __init__(self, backend: Backend, keep: Keep = USUAL) -> None:
        self._session = Session(backend)
        self._keep = keep

    def close(self) -> None:
        self._session.close()

    # Actions

    def past(self, target: str) -> Past:
        with self._session.reading() as connection:
            return _past(connection, target)

    def intend(self, target: str, decide: Callable[[Past], Decision]) -> Decision:
        with self._alone() as connection:
            decision = decide(_past(connection, target))
            if decision.write:
                connection.run(statements.ADD_ACTION, _row(decision.record))
            if decision.breaker:
                self._throw(connection, BREAKER, encode(decision.breaker))
            return decision

    def conclude(self, record: ActionRecord) -> bool:
        with self._alone() as connection:
            return bool(connection.run(statements.CONCLUDE_ACTION, _row(record)))

    def unresolved(self) -> list[ActionRecord]:
        with self._session.reading() as connection:
            return _bodies(connection, statements.UNRESOLVED_ACTIONS, ActionRecord)

    def records(self, target: str = "", limit: int = 100) -> list[ActionRecord]:
        wanted = {"limit": limit, "target": digest(target)}
        which = statements.ACTIONS_ABOUT if target else statements.ACTIONS
        with self._session.reading() as connection:
            return _bodies(connection, which, ActionRecord, wanted)

    # Nodes

    def observe(self, nodes: Sequence[Node], now: Instant, *, whole: bool = True) -> list[Reading]:
        with self._alone() as connection:
            body = connection.value(statements.SWITCH_OF, {"key": digest(LOOKED)})
            looked = decode(body, Instant) if body is not None else None
            last = {r.node: r for r in _bodies(connection, statements.LAST_READINGS, Reading)}
            new = list(history.news(nodes, last, looked, now))
            connection.run_many(statements.ADD_READING, [_reading(r) for r in new])
            if whole:
                self._throw(connection, LOOKED, encode(now))
            return new

    def readings(self, node: str, limit: int = 100) -> list[Reading]:
        wanted = {"node": digest(node), "limit": limit}
        with self._session.reading() as connection:
            return _bodies(connection, statements.READINGS_OF, Reading, wanted)

    # Switches

    def switch(self, name: str, switch: Switch | None) -> None:
        with self._alone() as connection:
            if switch is None:
                connection.run(statements.REMOVE_SWITCH, {"key": digest(name)})
            else:
                self._throw(connection, name, encode(switch))

    def prune(self, now: Instant) -> None:
        with self._alone() as connection:
            limits = {"before": now.wall - self._keep.actions * SECOND, "always": MANY}
            connection.run(statements.FORGET_ACTIONS, limits)
            connection.run(statements.FORGET_READINGS, limits)

    def _throw(self, connection: Connection, name: str, body: str) -> None:
        connection.run(statements.PUT_SWITCH, {"key": digest(name), "body": body})

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """A writing transaction that no other one overlaps, from its first read on.

        BEGIN IMMEDIATE is that; PostgreSQL needs a lock that still lets others read.
        """
        with self._session.writing() as connection:
            if connection.dialect == "postgresql":
                connection.run(statements.LOCK_ACTIONS)
            yield connection


def _past(connection: Connection, target: str) -> Past:
    about = {"target": digest(target), "limit": MANY}
    found = [
        *connection.rows(statements.TRIED_ACTIONS, {"limit": MANY}),
        *connection.rows(statements.ACTIONS_TRIED_LATELY, LATELY),
        *connection.rows(statements.NUMBERED_ACTIONS_ABOUT, about),
        *connection.rows(statements.UNRESOLVED_ACTIONS_ABOUT, about),
    ]
    bodies = dict(sorted((int(seq), body) for seq, body in found))
    return Past(
        records=tuple(decode(body, ActionRecord) for body in bodies.values()),
        left=tuple(_bodies(connection, statements.DEPARTURES, Reading, {"limit": MANY})),
        returned=tuple(
            r
            for r in _bodies(connection, statements.READINGS_LATELY, Reading, LATELY)
            if r.returned
        ),
        maintenance=_switch(connection, MAINTENANCE),
        breaker=_switch(connection, BREAKER),
    )


def _switch(connection: Connection, name: str) -> Switch | None:
    body = connection.value(statements.SWITCH_OF, {"key": digest(name)})
    return None if body is None else decode(body, Switch)


def _row(record: ActionRecord) -> Values:
    return {
        "id": digest(record.id),
        "target": digest(record.target),
        "tried": int(record.outcome.tried),
        "unresolved": int(record.outcome.open),
        "at": record.at.wall,
        "body": encode(record),
    }


def _reading(reading: Reading) -> Values:
    return {
        "node": digest(reading.node),
        "at": reading.seen.wall,
        "departure": reading.left.wall if reading.left else 0,
        "body": encode(reading),
    }


def _bodies(
    connection: Connection, statement: Statement, kind: type[Any], wanted: Values = _ANY
) -> list[Any]:
    return [decode(body, kind) for body in connection.column(statement, wanted)]
