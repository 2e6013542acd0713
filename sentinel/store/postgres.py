"""A state in PostgreSQL: a database or schema of its own. A row with a lease that expires says who
leads.

An advisory lock would not do: it lives as long as its session, and the session of a client that was
stopped or cut off outlives it by minutes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel.core.clock import SECOND
from sentinel.core.errors import Invalid, StoreBusy, StoreError, describe_missing_extra
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.store import statements
from sentinel.store.database import Connection, Dialect
from sentinel.store.errors import (
    StateDamaged,
    StateUnavailable,
    StateVersionMismatch,
    Unstorable,
)
from sentinel.store.lease import LEASE_TERM_S, Lease
from sentinel.store.measured_answers import make_measured_class
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION, read_served_version
from sentinel.store.server_proof import (
    SERVER_REMEDY,
    find_unproven_server,
    require_server_proof,
)
from sentinel.store.url import DatabaseUrl

if TYPE_CHECKING:
    from types import ModuleType

SCHEMA_LOCK_KEY = 0x53656E74  # "Sent": the key of the advisory lock under which a schema is made
_CONNECTION_OPTIONS: dict[str, Any] = {  # libpq: notices within half a minute that the peer is gone
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "sentinel",
}
_MAX_IDLE_S = 10.0
"""Seconds (at most the lease) after which the server ends a transaction of a client that was
stopped in it, so that the row is free."""

# https://www.postgresql.org/docs/current/errcodes-appendix.html. Only the server's administrator
# can repair corrupt data. Until then: StateUnavailable.
_UNDEFINED_TABLE, _INSUFFICIENT_PRIVILEGE = "42P01", "42501"
_REFUSED_SQLSTATES = ("10", "20", "21", "22", "23", "26", "34", "3D", "3F", "42", "44", "P0")
"""Classes of SQLSTATE which mean that the statement or its data are wrong."""


class PostgresBackend:
    """`term`: seconds that a lease lasts; `lease=10s` in the URL counts more. Its clock is the
    server's."""

    dialect: Dialect = "postgresql"
    needs_session = True
    migrating = False
    """Whether a person has requested a change that older sentinels cannot read."""

    def __init__(self, url: str, term: float = LEASE_TERM_S) -> None:
        try:
            parsed = DatabaseUrl.parse_url(url)
            self.term = _parse_lease_term(parsed, term)
            self.place = parsed.render_place()
            without_lease = {name: v for name, v in parsed.query.items() if name != "lease"}
            arguments = replace(parsed, query=without_lease).get_connection_arguments()
        except ValueError as error:
            raise StoreError(
                "state: not a URL like postgresql://user@host:5432/database"
            ) from error
        self._psycopg = _import_psycopg()
        self._arguments = arguments
        self.driver_error: type[Exception] = self._psycopg.Error

    def prepare_place(self) -> None:
        """Does nothing, because the server is asked only when it is needed."""

    def open_connection(self) -> Connection:
        measured = make_measured_class(self._psycopg)
        proven = require_server_proof(self._arguments, self._psycopg.pq)
        driver = measured.connect(**{**proven, **_CONNECTION_OPTIONS})
        # otherwise psycopg stores every notification
        driver.add_notify_handler(lambda _notification: None)
        connection = Connection(driver, "postgresql")
        try:
            with connection.begin_transaction():
                schema, owner = connection.fetch_first(statements.FIND_SCHEMA) or ("public", None)
                idle = f"{1000 * self._idle_limit_s:.0f}"
                connection.run(statements.CONFIGURE_SESSION, {"idle": idle})
            if owner:
                raise StateUnavailable(
                    f"{self.place}: its tables in schema {visible(schema)} belong to {visible(owner)}, who "
                    "could change what is kept; give sentinel a schema of its own"
                )
            connection.schema = schema
        except BaseException:
            connection.close()
            raise
        return connection

    def find_doubt(self) -> str:
        """Why a server that is not the right one could get the password; empty where it cannot."""
        return find_unproven_server(self._arguments, self._psycopg.pq)

    def classify_error(self, error: Exception, told: str) -> tuple[type[StoreError], str]:
        if "authentication method requirement" in told:  # libpq found it, so it has no SQLSTATE
            told = f"{told}; {SERVER_REMEDY}"
        return classify_postgres_error(self._psycopg, error, told)

    def clean_failed_start(self) -> None:
        """Do nothing, since nothing was created."""

    def lock_schema(self, connection: Connection) -> None:
        connection.run(statements.LOCK_SCHEMA, {"key": SCHEMA_LOCK_KEY})
        encoding = connection.fetch_value(statements.SERVER_ENCODING)
        if encoding != "UTF8":
            raise StoreError(
                f"{self.place}: encoding {encoding} cannot hold every text; "
                "create the database with ENCODING 'UTF8'"
            )

    @contextmanager
    def hold_for_migration(self, connection: Connection, stored: int) -> Iterator[None]:
        """Allow a change of the schema. Other sentinels may be at work, so unless a person
        requested it, only changes that they can still read are made."""
        served = read_served_version(self.dialect)
        if stored < served and not self.migrating:
            raise StateVersionMismatch(
                f"{self.place}: written by an older sentinel: schema {stored}, this one needs "
                f"{NEWEST_SCHEMA_VERSION}; end all of the older ones, then: sentinel state migrate"
            )
        if stored < served and not self.get_lease_expiry(connection)[1]:
            raise StoreBusy(f"{self.place}: an older sentinel still leads; end it first")
        yield

    def require_in_place(self) -> None:
        """Do nothing: if a table was dropped, the next statement fails."""

    def take_lock(self, connection: Connection | None, lease: Lease) -> bool:
        """Always True: the lease in the row decides alone."""
        return True

    def drop_lock(self) -> None:
        """Do nothing, since no lock is held."""

    def get_lease_expiry(self, connection: Connection) -> tuple[int, bool]:
        until, over = connection.fetch_one(
            statements.LEASE_EXPIRES, {"term": int(self.term * SECOND)}
        )
        return int(until), bool(over)

    def end_expired_leader(self, connection: Connection) -> None:
        connection.run(statements.END_SESSIONS_OF_LATE_LEADER, {"idle": self._idle_limit_s})
        connection.run(statements.WAIT_FOR_LOCKS, {"limit": f"{1000 * self._idle_limit_s:.0f}"})

    @property
    def _idle_limit_s(self) -> float:
        return min(_MAX_IDLE_S, self.term)

    def find_holder(self, connection: Connection | None, stored: Lease) -> Lease:
        assert connection is not None
        return Lease() if self.get_lease_expiry(connection)[1] else stored

    def move_damaged_aside(self, stamp: str) -> str:
        """Always empty: a state here counts as damaged if its tables were dropped, so nothing is
        left to move."""
        return ""


def classify_postgres_error(
    psycopg: "ModuleType", error: Exception, told: str
) -> tuple[type[StoreError], str]:
    """Classify an error as `Backend.classify_error` says, by its SQLSTATE. An error that the client
    itself found has none."""
    state = getattr(error, "sqlstate", None)
    if state == _UNDEFINED_TABLE:
        return StateDamaged, f"damaged: {told}"
    if state is None:
        refused = isinstance(
            error, (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError)
        )
    else:
        refused = state.startswith(_REFUSED_SQLSTATES) and state != _INSUFFICIENT_PRIVILEGE
    return (Unstorable if refused else StateUnavailable), told


def _parse_lease_term(url: DatabaseUrl, usual: float) -> float:
    """The lease of the URL, at least 2 s: nobody could renew a shorter one in time."""
    said = url.query.get("lease")
    try:
        return max(2.0, Duration.parse(said[-1])) if said else usual
    except Invalid as error:
        raise StoreError(f"state: lease: {error}") from error


def _import_psycopg() -> "ModuleType":
    try:
        import psycopg
    except ImportError as error:
        raise StoreError(
            f"state: PostgreSQL {describe_missing_extra('postgres', error)}"
        ) from error
    return psycopg
