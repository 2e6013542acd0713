"""A state in PostgreSQL: a database or schema of its own; a row that expires says who leads.

An advisory lock would not do: it lives as long as its session, and the session of a client that
was stopped or cut off outlives its use by minutes.
"""

from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from sentinel.core.clock import SECOND
from sentinel.core.errors import Invalid, StoreError
from sentinel.core.values import Duration
from sentinel.store.lease import TERM, Lease

LOCK = 0x53656E74  # "Sent": the key of the advisory lock under which a schema is made
_LIVE: dict[str, Any] = {  # libpq: a peer that vanished is noticed within half a minute
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "sentinel",
}
_SETTINGS = (
    "SET client_encoding = 'UTF8'; SET statement_timeout = '60s'; SET lock_timeout = '20s'; "
    "SET idle_in_transaction_session_timeout = {}"
)
_IDLE = 10.0
"""Seconds, and no longer than a lease, after which a client that was stopped in a transaction holds
the row no more (milliseconds in _SETTINGS)."""
_EXPIRES = text(
    "SELECT now + :term, expires <= now FROM leader, "
    "LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) AS clock"
)
_HOLDERS = text(
    "SELECT pg_terminate_backend(pid) FROM leader, "
    "LATERAL (SELECT clock_timestamp() AS now) AS clock, pg_stat_activity JOIN pg_locks USING (pid) "
    "WHERE expires <= (extract(epoch FROM now) * 1000000)::bigint "
    "AND xact_start < now - make_interval(secs => :idle) "
    "AND datname = current_database() AND relation = 'leader'::regclass AND mode <> 'AccessShareLock' "
    "AND wait_event_type IS DISTINCT FROM 'Lock' AND usename = current_user AND pid <> pg_backend_pid()"
)
"""Rows that are written together are sent without a wait in between. A client that is stopped in the
middle of them is `active`, so _SETTINGS does not end it: the server waits for the rest."""
_WAIT = text("SELECT set_config('lock_timeout', :limit, true)")
"""Of this transaction: whoever waits for a stopped leader looks anew whether its lease is over."""


class PostgresBackend:
    """`term`: seconds a lease lasts; the URL's own `lease=10s` wins. Its clock is the server's."""

    dialect = "postgresql"
    needs_session = True

    def __init__(self, url: str, term: float = TERM) -> None:
        try:
            parsed = make_url(url).set(drivername="postgresql+psycopg")
            self.term = _term(parsed, term)
            parsed = parsed.difference_update_query(["lease"])
        except (ArgumentError, ValueError) as error:
            raise StoreError(
                "state: not a URL like postgresql://user@host:5432/database"
            ) from error
        self.place = parsed.set(drivername="postgresql", query={}).render_as_string()
        self._engine = _engine(parsed)
        event.listen(self._engine, "connect", self._configure)

    def prepare(self) -> None:
        """The server is asked when it is needed."""

    def _configure(self, connection: Any, _record: object) -> None:
        connection.execute(_SETTINGS.format(int(1000 * self._idle)))
        connection.commit()

    def connect(self) -> Connection:
        connection: Connection = self._engine.connect()
        return connection

    def guard(self, connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        encoding = connection.execute(text("SHOW server_encoding")).scalar()
        if encoding != "UTF8":
            raise StoreError(
                f"{self.place}: encoding {encoding} cannot hold every text; "
                "create the database with ENCODING 'UTF8'"
            )

    def still_there(self) -> None:
        """A dropped table is an error of the next statement."""

    def take(self, connection: Connection | None, lease: Lease) -> bool:
        """Nothing to hold: the lease in the row is all."""
        return True

    def drop(self, connection: Connection | None) -> None:
        """Nothing is held."""

    def expires(self, connection: Connection) -> tuple[int, bool]:
        until, over = connection.execute(_EXPIRES, {"term": int(self.term * SECOND)}).one()
        return int(until), bool(over)

    def make_way(self, connection: Connection) -> None:
        connection.execute(_HOLDERS, {"idle": self._idle})
        connection.execute(_WAIT, {"limit": f"{1000 * self._idle:.0f}"})

    @property
    def _idle(self) -> float:
        return min(_IDLE, self.term)

    def holder(self, connection: Connection | None, stored: Lease) -> Lease:
        assert connection is not None
        return Lease() if self.expires(connection)[1] else stored

    def set_aside(self, stamp: str) -> str:
        """Nothing to move: it is damaged for us when tables were dropped."""
        return ""

    def close(self) -> None:
        self._engine.dispose()


def _term(url: Any, usual: float) -> float:
    """What the URL says of the lease; at least 2 s, or nobody could renew it in time."""
    said = url.query.get("lease")
    try:
        return max(2.0, Duration.parse(str(said))) if said else usual
    except Invalid as error:
        raise StoreError(f"state: lease: {error}") from error


def _engine(url: Any) -> Any:
    try:
        return create_engine(url, poolclass=NullPool, connect_args=_LIVE)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"state: PostgreSQL needs the package {error.name}; install slurm-sentinel[postgres]"
        ) from error
