"""Keeps unreadable rows apart: a person is told, and all other rows are used."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from sentinel.core.actions import ActionRecord, NodeReading
from sentinel.core.clock import Instant
from sentinel.core.gpu_ledger import LedgerEntry
from sentinel.core.model import Alert, CheckRun, Outgoing
from sentinel.core.struct_types import decode_json
from sentinel.core.text import shortened, visible
from sentinel.store import statements
from sentinel.store.database import Connection, Statement
from sentinel.store.rows import StoredMemory, StoredOrder, UnreadableRow, decode_stored

Noun = TypeVar("Noun")
MAX_REASON_CHARS = 300
"""Characters of the reason that are kept beside a row."""

ROWS_AT_ONCE = 500
"""If one row of these cannot be read, all of them are read one by one."""

_LOG = logging.getLogger("sentinel")


class TableRows(Struct, frozen=True):
    """A table and how its rows are read and removed; `name` is for people."""

    name: str
    noun: type[Any]  # The type that a row is read as.
    rows: Statement  # Statement that reads all rows.
    remove: Statement  # Statement that removes one.


LIVE_ROWS = (
    TableRows("alerts", Alert, statements.KEYED_ALERTS, statements.CLOSE_ALERT),
    TableRows("runs of checks", CheckRun, statements.KEYED_RUNS, statements.REMOVE_RUN),
    TableRows("memory of checks", StoredMemory, statements.KEYED_MEMORY, statements.REMOVE_MEMORY),
    TableRows("unsent messages", Outgoing, statements.UNSENT_MESSAGES, statements.REMOVE_MESSAGE),
    TableRows("orders of people", StoredOrder, statements.KEYED_ORDERS, statements.REMOVE_ORDER),
    TableRows("GPUs", LedgerEntry, statements.KEYED_GPUS, statements.FORGET_GPU),
)
"""Tables whose rows are used until they are replaced. An unreadable row of the history stays in its
table, and is left out."""

AUDIT_ROWS = (
    TableRows("actions", ActionRecord, statements.KEYED_ACTIONS, statements.REMOVE_ACTION),
    TableRows("states of nodes", NodeReading, statements.KEYED_READINGS, statements.REMOVE_READING),
)
"""Tables that the guard judges by. While a row of them cannot be read, no action is done; only a
person sets it aside."""


def decode_readable(bodies: Iterable[str], noun: type[Noun]) -> list[Noun]:
    """The rows that can be read. A warning in the log names each of the others, so that it does not
    look as if there were none."""
    left, found = list(bodies), list[Noun]()
    for at in range(0, len(left), ROWS_AT_ONCE):
        some = left[at : at + ROWS_AT_ONCE]
        found += _decode_at_once(some, noun) or _decode_one_by_one(some, noun)
    return found


def _decode_at_once(bodies: Sequence[str], noun: type[Noun]) -> Sequence[Noun]:
    """All rows, in a third of the time that one by one takes. Empty if one of them cannot be read
    exactly as it is."""
    try:
        found = decode_json(f"[{','.join(bodies)}]", list[noun])  # type: ignore[valid-type]
    except (ValueError, RecursionError, msgspec.MsgspecError):  # only new versions raise ValueError
        return ()
    return found if len(found) == len(bodies) else ()


def _decode_one_by_one(bodies: Iterable[str], noun: type[Noun]) -> Iterator[Noun]:
    for body in bodies:
        try:
            yield decode_stored(body, noun)
        except UnreadableRow as error:
            _LOG.warning("left out: %s", visible(str(error)))


def set_aside_unreadable(connection: Connection, place: str, now: Instant) -> Sequence[str]:
    """Move unreadable rows of live tables into a table of their own, within the caller's
    transaction. Returns the notices for people."""
    notices = []
    for live in LIVE_ROWS:
        reasons = move_unreadable_rows(connection, live, now)
        if reasons:
            notices.append(
                f"{place}: {len(reasons)} {live.name} cannot be read and are kept apart in the table "
                f"`unreadable`; the rest serves. The first: {visible(reasons[0])}"
            )
    return notices


def move_unreadable_rows(connection: Connection, live: TableRows, now: Instant) -> list[str]:
    """Move the unreadable rows of one table. Returns for each why it cannot be read."""
    reasons = []
    for key, body in connection.fetch_rows(live.rows):
        try:
            decode_stored(body, live.noun)
        except UnreadableRow as error:
            reasons.append(shortened(str(error), MAX_REASON_CHARS))
            kept = {"noun": live.noun.__name__, "key": str(key), "at": now.wall, "body": body}
            connection.run(statements.KEEP_UNREADABLE, kept)
            connection.run(live.remove, {"key": key})
    return reasons
