"""A state in PostgreSQL: a database or schema of its own; an advisory lock says who leads."""

from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from sentinel.core.errors import StoreError
from sentinel.store.lease import Lease

# First half of the advisory lock's key ("Sent"); the second is the oid of the table
# `leader`, so that several schemas of one database do not lock each other out.
LOCK = 0x53656E74
_LIVE: dict[str, Any] = {  # libpq: a peer that vanished is noticed within half a minute
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "sentinel",
}
_SETTINGS = (
    "SET client_encoding = 'UTF8'; SET statement_timeout = '60s'; SET lock_timeout = '20s'; "
    "SET idle_in_transaction_session_timeout = '60s'"
)
_TAKE = text("SELECT pg_try_advisory_lock(:lock, 'leader'::regclass::oid::int)")
_DROP = text("SELECT pg_advisory_unlock(:lock, 'leader'::regclass::oid::int)")
_TAKEN = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND classid = :lock AND objid = 'leader'::regclass::oid"
)


class PostgresBackend:
    """One session does all: losing it loses the lock, so the two can never disagree."""

    dialect = "postgresql"
    needs_session = True

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError) as error:
            raise StoreError(
                "state: not a URL like postgresql://user@host:5432/database"
            ) from error
        self.place = parsed.set(drivername="postgresql", query={}).render_as_string()
        self._engine = _engine(parsed)
        event.listen(self._engine, "connect", _configure)

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
        assert connection is not None
        return bool(connection.execute(_TAKE, {"lock": LOCK}).scalar())

    def drop(self, connection: Connection | None) -> None:
        if connection is not None:
            connection.execute(_DROP, {"lock": LOCK})

    def holder(self, connection: Connection | None, stored: Lease) -> Lease:
        assert connection is not None
        return stored if connection.execute(_TAKEN, {"lock": LOCK}).scalar() else Lease()

    def set_aside(self, stamp: str) -> str:
        """Nothing to move: it is damaged for us when tables were dropped."""
        return ""

    def close(self) -> None:
        self._engine.dispose()


def _engine(url: Any) -> Any:
    try:
        return create_engine(url, poolclass=NullPool, connect_args=_LIVE)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"state: PostgreSQL needs the package {error.name}; install slurm-sentinel[postgres]"
        ) from error


def _configure(connection: Any, _record: object) -> None:
    connection.execute(_SETTINGS)
    connection.commit()
