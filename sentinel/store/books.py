"""The audit log and the ledger of nodes in SQLite or PostgreSQL, for services and commands alike."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    Connection,
    Delete,
    Update,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from sentinel.actions.model import ActionRecord, Decision, Past, Reading, Switch
from sentinel.core.clock import SECOND, Instant
from sentinel.nodes import history
from sentinel.slurm.model import Node
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.retention import USUAL, Keep
from sentinel.store.rows import decode, digest, encode
from sentinel.store.schema import actions, readings, switches
from sentinel.store.session import Session

MANY = 1000
"""Records and departures a verdict rests on at least; no cap or breaker can be set higher."""

_by_seq = select(actions.c.seq, actions.c.body).order_by(actions.c.seq.desc())
_newest_bodies = select(actions.c.body).order_by(actions.c.seq.desc())
_about = actions.c.target == bindparam("t")

_newest = _newest_bodies.limit(bindparam("n"))
newest_about = _newest.where(_about)
newest_tried = _by_seq.where(actions.c.tried == 1).limit(bindparam("n"))
# All of the last hours by the clock of the newest, which may be far more: one kind of action must
# not push another out of what its caps are counted from.
_last_at = select(actions.c.at).order_by(actions.c.seq.desc()).limit(1).scalar_subquery()
_last_seq = select(func.max(actions.c.seq)).scalar_subquery()
tried_lately = _by_seq.where(
    actions.c.tried == 1,
    actions.c.seq > _last_seq - 50 * MANY,
    actions.c.at > _last_at - 2 * 3600 * SECOND,
)
numbered_about = _by_seq.where(_about).limit(bindparam("n"))
unresolved_about = _by_seq.where(_about, actions.c.unresolved == 1)
_unresolved = select(actions.c.body).where(actions.c.unresolved == 1).order_by(actions.c.seq)
add_action = insert(actions)
conclude: Update = (
    update(actions)
    .where(actions.c.id == bindparam("new_id"), actions.c.unresolved == 1)
    .values({c: bindparam(f"new_{c}") for c in ("tried", "unresolved", "body")})
)

departures = (
    select(readings.c.body)
    .where(readings.c.departure > 0)
    .order_by(readings.c.seq.desc())
    .limit(bindparam("n"))
)
# As with tried_lately: by the clock of the newest, and not without end.
_last_reading = select(func.max(readings.c.seq)).scalar_subquery()
_last_seen = select(readings.c.at).order_by(readings.c.seq.desc()).limit(1).scalar_subquery()
lately = (
    select(readings.c.body)
    .where(
        readings.c.seq > _last_reading - 50 * MANY,
        readings.c.at > _last_seen - 2 * 3600 * SECOND,
    )
    .order_by(readings.c.seq)
)
readings_of = (
    select(readings.c.body)
    .where(readings.c.node == bindparam("k"))
    .order_by(readings.c.seq.desc())
    .limit(bindparam("n"))
)
_last = select(func.max(readings.c.seq)).group_by(readings.c.node)
last_readings = select(readings.c.body).where(readings.c.seq.in_(_last))
add_reading = insert(readings)

switch_of = select(switches.c.body).where(switches.c.key == bindparam("k"))
undo_switch: Delete = delete(switches).where(switches.c.key == bindparam("k"))


# A wall clock that is wrong must not make the guard forget: the newest always stay.
_recent_actions = select(actions.c.seq).order_by(actions.c.seq.desc()).limit(MANY)
_recent_readings = select(readings.c.seq).order_by(readings.c.seq.desc()).limit(MANY)
forget: tuple[Delete, ...] = (
    delete(actions).where(
        actions.c.at < bindparam("before"),
        actions.c.unresolved == 0,
        actions.c.seq.not_in(_recent_actions.scalar_subquery()),
    ),
    delete(readings).where(
        readings.c.at < bindparam("before"),
        readings.c.seq.not_in(_recent_readings.scalar_subquery()),
        readings.c.seq.not_in(_last.scalar_subquery()),
    ),
)


Row = dict[str, Any]
MAINTENANCE, BREAKER, LOOKED = "maintenance", "breaker", "looked"


class SqlBooks:
    """core.ports.Books. It opens at its first use; safe to use from several threads."""

    def __init__(self, backend: Backend, keep: Keep = USUAL) -> None:
        self._session = Session(backend)
        self._dialect, self._keep = backend.dialect, keep
        self._put_switch = statements.replacing(backend.dialect, switches)

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
                connection.execute(add_action, _row(decision.record))
            if decision.breaker:
                self._throw(connection, BREAKER, encode(decision.breaker))
            return decision

    def conclude(self, record: ActionRecord) -> bool:
        with self._alone() as connection:
            row = {f"new_{key}": value for key, value in _row(record).items()}
            del row["new_target"], row["new_at"]
            return bool(connection.execute(conclude, row).rowcount)

    def unresolved(self) -> list[ActionRecord]:
        with self._session.reading() as connection:
            return _bodies(connection, _unresolved, ActionRecord)

    def records(self, target: str = "", limit: int = 100) -> list[ActionRecord]:
        wanted: Row = {"n": limit}
        with self._session.reading() as connection:
            if not target:
                return _bodies(connection, _newest, ActionRecord, wanted)
            wanted["t"] = digest(target)
            return _bodies(connection, newest_about, ActionRecord, wanted)

    # Nodes

    def observe(self, nodes: Sequence[Node], now: Instant, *, whole: bool = True) -> list[Reading]:
        with self._alone() as connection:
            body = connection.execute(switch_of, {"k": digest(LOOKED)}).scalar()
            looked = decode(body, Instant) if body is not None else None
            last = {r.node: r for r in _bodies(connection, last_readings, Reading)}
            new = list(history.news(nodes, last, looked, now))
            if new:
                connection.execute(add_reading, [_reading(r) for r in new])
            if whole:
                self._throw(connection, LOOKED, encode(now))
            return new

    def readings(self, node: str, limit: int = 100) -> list[Reading]:
        wanted = {"k": digest(node), "n": limit}
        with self._session.reading() as connection:
            return _bodies(connection, readings_of, Reading, wanted)

    # Switches

    def switch(self, name: str, switch: Switch | None) -> None:
        with self._alone() as connection:
            if switch is None:
                connection.execute(undo_switch, {"k": digest(name)})
            else:
                self._throw(connection, name, encode(switch))

    def prune(self, now: Instant) -> None:
        with self._alone() as connection:
            before = now.wall - self._keep.actions * SECOND
            for statement in forget:
                connection.execute(statement, {"before": before})

    def _throw(self, connection: Connection, name: str, body: str) -> None:
        connection.execute(self._put_switch, {"key": digest(name), "body": body})

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """A writing transaction that no other one overlaps, from its first read on.

        BEGIN IMMEDIATE is that; PostgreSQL needs a lock that still lets others read.
        """
        with self._session.writing() as connection:
            if self._dialect == "postgresql":
                connection.execute(text("LOCK TABLE actions IN SHARE ROW EXCLUSIVE MODE"))
            yield connection


def _past(connection: Connection, target: str) -> Past:
    about = {"t": digest(target), "n": MANY}
    found = [
        *connection.execute(newest_tried, {"n": MANY}),
        *connection.execute(tried_lately),
        *connection.execute(numbered_about, about),
        *connection.execute(unresolved_about, {"t": about["t"]}),
    ]
    bodies = dict(sorted((int(seq), body) for seq, body in found))
    return Past(
        records=tuple(decode(body, ActionRecord) for body in bodies.values()),
        left=tuple(_bodies(connection, departures, Reading, {"n": MANY})),
        returned=tuple(r for r in _bodies(connection, lately, Reading) if r.returned),
        maintenance=_switch(connection, MAINTENANCE),
        breaker=_switch(connection, BREAKER),
    )


def _switch(connection: Connection, name: str) -> Switch | None:
    body = connection.execute(switch_of, {"k": digest(name)}).scalar()
    return None if body is None else decode(body, Switch)


def _row(record: ActionRecord) -> Row:
    return {
        "id": digest(record.id),
        "target": digest(record.target),
        "tried": int(record.outcome.tried),
        "unresolved": int(record.outcome.open),
        "at": record.at.wall,
        "body": encode(record),
    }


def _reading(reading: Reading) -> Row:
    return {
        "node": digest(reading.node),
        "at": reading.seen.wall,
        "departure": reading.left.wall if reading.left else 0,
        "body": encode(reading),
    }


def _bodies(
    connection: Connection, query: Any, kind: type[Any], wanted: Row | None = None
) -> list[Any]:
    found: Iterable[str] = connection.execute(query, wanted or {}).scalars()
    return [decode(body, kind) for body in found]
