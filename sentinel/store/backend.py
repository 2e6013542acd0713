"""What differs between the databases, as the store sees it."""

from contextlib import AbstractContextManager
from typing import Protocol

from sentinel.core.errors import StoreError
from sentinel.store.database import Connection, Dialect
from sentinel.store.lease import Lease


class Backend(Protocol):
    """One place where a state is stored. Its text has no password, so it may be used in messages."""

    place: str
    dialect: Dialect
    driver_error: type[Exception]
    """The base class of the driver's errors."""

    def classify_error(self, error: Exception, told: str) -> tuple[type[StoreError], str]:
        """The class of StoreError for a driver's error, by what a person or sentinel would do about
        it, and its text. `told`: the first line of the error."""

    def prepare_place(self) -> None:
        """Check the place before anything is created there. Raises StoreError with the remedy.
        `open_connection` and `take_lock` do this if nobody has."""

    def open_connection(self) -> Connection:
        """A new connection, whose schema is not checked yet. Raises StateUnavailable or
        StateDamaged."""

    def clean_failed_start(self) -> None:
        """Remove what this object has created, after the schema could not be written."""

    def lock_schema(self, connection: Connection) -> None:
        """Keep two processes from creating or upgrading the schema at once.

        Raises StoreError for a database that cannot hold the state.
        """

    def hold_for_migration(
        self, connection: Connection, stored: int
    ) -> AbstractContextManager[None]:
        """Wrap a change of the schema from version `stored`: meanwhile no older sentinel works on
        the state, or the change leaves everything that it knows.

        Raises StoreBusy if an older one works, StateVersionMismatch with the remedy, and
        StateUnavailable if no copy can be made."""

    def require_in_place(self) -> None:
        """Raise StateDamaged if the file that the connection writes to is no longer at its
        place."""

    def take_lock(self, connection: Connection | None, lease: Lease) -> bool:
        """Become the only leader, for as long as this process (or its session) lives. Returns
        whether it is."""

    def drop_lock(self) -> None:
        """Stop being the leader; harmless if it is not."""

    @property
    def needs_session(self) -> bool:
        """Whether `take_lock` needs a connection and ends with it."""

    @property
    def term(self) -> float:
        """Seconds after which a lease ends that was not renewed; 0 if a lock ends with its
        process."""

    def get_lease_expiry(self, connection: Connection) -> tuple[int, bool]:
        """The end of a lease that is renewed now, and whether the stored lease is over, both by the
        clock of the database (µs UTC)."""

    def end_expired_leader(self, connection: Connection) -> None:
        """End the transactions that a leader whose lease is over still holds in the database."""

    def find_holder(self, connection: Connection | None, stored: Lease) -> Lease:
        """The present leader; `stored` is the last lease that was written."""

    def move_damaged_aside(self, stamp: str) -> str:
        """Move a damaged state to another place, and return that place. Empty if the state is gone."""
