"""A note for the next leader that the state was restored from a copy."""

from sentinel.core.clock import Instant
from sentinel.core.model import CheckRun
from sentinel.core.text import visible
from sentinel.store import statements
from sentinel.store.database import Connection
from sentinel.store.lease import format_utc
from sentinel.store.rows import StoredMemory, digest_parts, encode_stored
from sentinel.store.unreadable import decode_readable

RESTORED_KEY = "sentinel/restored"
"""Key under which a state remembers that it was restored, until a sentinel leads it."""


def write_restore_note(connection: Connection, now: Instant) -> None:
    """Write the note within the caller's transaction."""
    runs = decode_readable(connection.fetch_column(statements.RUNS), CheckRun)
    last = max((run.at.wall for run in runs), default=0)
    note = StoredMemory(RESTORED_KEY, {"at": now.wall, "last": last})
    row = {"key": digest_parts(RESTORED_KEY), "body": encode_stored(note)}
    connection.run(statements.PUT_MEMORY, row)


def take_restore_note(connection: Connection) -> list[str]:
    """Remove the note, and return its notice for people; empty if there is no note. This is within
    the caller's transaction."""
    key = {"key": digest_parts(RESTORED_KEY)}
    notes = decode_readable(connection.fetch_column(statements.MEMORY_OF, key), StoredMemory)
    if not notes:
        return []
    connection.run(statements.REMOVE_MEMORY, key)
    last = notes[0].memory.get("last")
    of = f" of {format_utc(last)}" if isinstance(last, int) and last else ""
    return [
        visible(
            f"the state was restored from a copy{of}: what happened since is not known, and what was "
            "told since may be told again"
        )
    ]
