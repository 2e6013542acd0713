"""A state in PostgreSQL: a database or schema of its own; a row that expires says who leads.

An advisory lock would not do: it lives as long as its session, and the session of a client that
was stopped or cut off outlives its use by minutes.
"""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sentinel.core.clock import SECOND
from sentinel.core.errors import Invalid, StoreError
from sentinel.core.values import Duration
from sentinel.store import statements
from sentinel.store.database import Connection, Dialect
from sentinel.store.errors import StateDamaged, StateUnavailable, Unstorable
from sentinel.store.lease import LEASE_TERM_S, Lease
from sentinel.store.url import DatabaseUrl

if TYPE_CHECKING:
    from types import ModuleType

SCHEMA_LOCK_KEY = 0x53656E74  # "Sent": the key of the advisory lock under which a schema is made
_CONNECTION_OPTIONS: dict[
    str, Any
] = {  # libpq: a peer that vanished is noticed within half a minute
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "sentinel",
}
_MAX_IDLE_S = 10.0
"""Seconds, and no longer than a lease, after which a client that was stopped in a transaction holds
the row no more."""

# https://www.postgresql.org/docs/current/errcodes-appendix.html; what is corrupt inside the
# server is its administrator's to mend: Unavailable until then.
_UNDEFINED_TABLE, _INSUFFICIENT_PRIVILEGE = "42P01", "42501"
_REFUSED_SQLSTATES = ("10", "20", "21", "22", "23", "26", "34", "3D", "3F", "42", "44", "P0")
"""Classes of SQLSTATE that say that the statement or its data are wrong."""


class PostgresBackend:
    """`term`: seconds a lease lasts; the URL's own `lease=10s` wins. Its clock is the server's."""

    dialect: Dialect = "postgresql"
    needs_session = True

    def __init__(self, url: str, term: float = LEASE_TERM_S) -> None:
        try:
            parsed = DatabaseUrl.parse_url(url)
            self.term = _parse_lease_term(parsed, term)
            self.place = parsed.render_place()
            without_lease = {name: v for name, v in parsed.query.items() if name != "lease"}
            self._arguments = replace(parsed, query=without_lease).get_connection_arguments()
        except ValueError as error:
            raise StoreError(
                "state: not a URL like postgresql://user@host:5432/database"
            ) from error
        self._psycopg = _import_psycopg()
        self.driver_error: type[Exception] = self._psycopg.Error

    def prepare_place(self) -> None:
        """The server is asked when it is needed."""

    def open_connection(self) -> Connection:
        driver = self._psycopg.connect(**{**self._arguments, **_CONNECTION_OPTIONS})
        connection = Connection(driver, "postgresql")
        try:
            with connection.begin_transaction():
                idle = f"{1000 * self._idle_limit_s:.0f}"
                connection.run(statements.CONFIGURE_SESSION, {"idle": idle})
        except BaseException:
            connection.close()
            raise
        return connection

    def classify_error(self, error: Exception, told: str) -> tuple[type[StoreError], str]:
        return classify_postgres_error(self._psycopg, error, told)

    def lock_schema(self, connection: Connection) -> None:
        connection.run(statements.LOCK_SCHEMA, {"key": SCHEMA_LOCK_KEY})
        encoding = connection.fetch_value(statements.SERVER_ENCODING)
        if encoding != "UTF8":
            raise StoreError(
                f"{self.place}: encoding {encoding} cannot hold every text; "
                "create the database with ENCODING 'UTF8'"
            )

    def require_in_place(self) -> None:
        """A dropped table is an error of the next statement."""

    def take_lock(self, connection: Connection | None, lease: Lease) -> bool:
        """Nothing to hold: the lease in the row is all."""
        return True

    def drop_lock(self, connection: Connection | None) -> None:
        """Nothing is held."""

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
        """Nothing to move: it is damaged for us when tables were dropped."""
        return ""


def classify_postgres_error(
    psycopg: "ModuleType", error: Exception, told: str
) -> tuple[type[StoreError], str]:
    """As Backend says, by SQLSTATE; what the client found itself has none."""
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
    """What the URL says of the lease; at least 2 s, or nobody could renew it in time."""
    said = url.query.get("lease")
    try:
        return max(2.0, Duration.parse(said[-1])) if said else usual
    except Invalid as error:
        raise StoreError(f"state: lease: {error}") from error


def _import_psycopg() -> "ModuleType":
    try:
        import psycopg
    except ImportError as error:
        name = error.name or "psycopg"
        raise StoreError(
            f"state: PostgreSQL needs the package {name}; install slurm-sentinel[postgres]"
        ) from error
    return psycopg
