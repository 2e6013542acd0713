"""Every statement of books.py, built once."""

from typing import Any

from sqlalchemy import Delete, Update, bindparam, delete, func, insert, select, update

from sentinel.core.clock import SECOND
from sentinel.store import statements
from sentinel.store.schema import actions, readings, switches

MANY = 1000
"""Records and departures a verdict rests on at least; no cap or breaker can be set higher."""

_by_seq = select(actions.c.seq, actions.c.body).order_by(actions.c.seq.desc())
_bodies = select(actions.c.body).order_by(actions.c.seq.desc())
_about = actions.c.target == bindparam("t")

newest = _bodies.limit(bindparam("n"))
newest_about = newest.where(_about)
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
unresolved = select(actions.c.body).where(actions.c.unresolved == 1).order_by(actions.c.seq)
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


def replacing(dialect: str) -> Any:
    """Set a switch, whether or not it was set."""
    return statements.replacing(dialect, switches)


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
