"""What differs between the databases, as the store sees it."""

from typing import Protocol

from sentinel.core.errors import StoreError
from sentinel.store.database import Connection, Dialect
from sentinel.store.lease import Lease


class Backend(Protocol):
    """One place where a state lives. Its text is fit for messages (no password)."""

    place: str
    dialect: Dialect
    driver_error: type[Exception]
    """The base of the errors of the driver."""

    def classify_error(self, error: Exception, told: str) -> tuple[type[StoreError], str]:
        """The kind of a driver's error, which follows from what a person or sentinel would do about
        it, and its text; `told`: its first line."""

    def prepare_place(self) -> None:
        """Look at the place before anything is made there; raises StoreError with the remedy.
        `open_connection` and `take_lock` do it where nobody has."""

    def open_connection(self) -> Connection:
        """A new connection, with the schema unseen; raises StateUnavailable or StateDamaged."""

    def lock_schema(self, connection: Connection) -> None:
        """Keep two processes from creating or upgrading the schema at once.

        Raises StoreError for a database that cannot hold the state.
        """

    def require_in_place(self) -> None:
        """Raises StateDamaged when what the connection writes to is no longer at its place."""

    def take_lock(self, connection: Connection | None, lease: Lease) -> bool:
        """Become the only leader, for as long as this process (or its session) lives."""

    def drop_lock(self, connection: Connection | None) -> None:
        """Stop being it; harmless otherwise."""

    @property
    def needs_session(self) -> bool:
        """Whether `take_lock` needs a connection and ends with it."""

    @property
    def term(self) -> float:
        """Seconds after which a lease ends that was not renewed; 0 where a lock ends with its
        process."""

    def get_lease_expiry(self, connection: Connection) -> tuple[int, bool]:
        """The end of a lease that is renewed now, and whether the stored one is over, both by
        the clock of the database (µs UTC)."""

    def end_expired_leader(self, connection: Connection) -> None:
        """End what a leader whose lease is over still holds of the database."""

    def find_holder(self, connection: Connection | None, stored: Lease) -> Lease:
        """Who leads just now; `stored` is the last lease that was written."""

    def move_damaged_aside(self, stamp: str) -> str:
        """Move what is damaged out of the way; returns where it is now, empty if it is gone."""
