"""Makes a store that is ready from the configured `state:`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.lemon_policy import LemonPolicy
from sentinel.proc import threads
from sentinel.store.backend import Backend
from sentinel.store.buffered import BufferedStore
from sentinel.store.errors import StateUnavailable
from sentinel.store.failover import STATE_TIMEOUT_S
from sentinel.store.memory import MemoryStore
from sentinel.store.retention import DEFAULT_RETENTION, Retention
from sentinel.store.session import DatabaseSession
from sentinel.store.spare_journals import make_spare_journals
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import InMemoryBackend, SqliteBackend

if TYPE_CHECKING:
    from sentinel.store.audit_log import SqlAuditLog
    from sentinel.store.gpu_ledger import SqlGpuLedger


class OpenedStore(Struct, frozen=True):
    """A store, and the notices for people from its opening."""

    store: BufferedStore  # The store.
    notices: tuple[str, ...] = ()  # Messages for people, one sentence each.


def open_store(
    state: str,
    now: Instant,
    keep: Retention = DEFAULT_RETENTION,
    *,
    mending: bool = True,
    spare: str = "",
    patience: float = STATE_TIMEOUT_S,
    monotonic: Callable[[], float] = time.monotonic,
) -> OpenedStore:
    """Open a state for a leader: a directory (created if missing, 0700) or a postgresql:// URL.

    A damaged file is set aside and named in `notices`. A caller that is `mending` must notify
    people, and must not rely on earlier records. A full or hanging disk, or an unreachable server,
    raises an error only at the first use. `spare` is another directory for what cannot be written
    then. One access to the state may take `patience` seconds.

    Raises StoreError with the remedy for any other fault.
    """
    backend = make_backend(state)
    beside = not backend.needs_session
    name = os.path.abspath(state) if beside else _name_database(state)
    asking = threads.BoundedWorker(patience, "state's own")
    kept = make_spare_journals(name, spare, beside=asking if beside else None, patience=patience)
    store = BufferedStore(
        SqlStore(backend, keep),
        MemoryStore(keep),
        monotonic=monotonic,
        spare=kept,
        patience=asking,
    )
    return OpenedStore(store, store.open_or_reopen(now, mending=mending))


def open_sql_audit_log(
    state: str, keep: Retention = DEFAULT_RETENTION, *, later: bool = False
) -> SqlAuditLog:
    """The audit log and the ledger of nodes of the same state; `state` empty: in memory. It is
    never buffered: an action whose record cannot be written is not done.

    Raises StoreError with the remedy. `later`: a fault that may pass is raised at the first use
    only, so that checks can begin without it."""
    from sentinel.store.audit_log import SqlAuditLog

    return SqlAuditLog(_prepare_backend(state, later), keep)


def open_sql_gpu_ledger(
    state: str, policy: LemonPolicy, keep: Retention = DEFAULT_RETENTION, *, later: bool = False
) -> SqlGpuLedger:
    """The ledger of GPUs. Arguments and errors are those of `open_sql_audit_log`."""
    from sentinel.store.gpu_ledger import SqlGpuLedger

    return SqlGpuLedger(_prepare_backend(state, later), policy, keep)


def migrate_state(state: str) -> None:
    """Bring the state to this version, even if older sentinels cannot read it then. Raises
    StoreBusy while one of them leads, and StoreError for other faults."""
    from sentinel.store.postgres import PostgresBackend

    backend = make_backend(state)
    if isinstance(backend, PostgresBackend):
        backend.migrating = True
    session = DatabaseSession(backend)
    try:
        with session.read_transaction():
            pass
    finally:
        session.close()


def make_backend(state: str) -> Backend:
    """The backend of a directory or a URL; nothing is opened yet. Raises StoreError."""
    if "://" in state:
        return _make_postgres_backend(state)
    return SqliteBackend(os.path.abspath(state))


def _name_database(url: str) -> str:
    """The address of a server's database without the password, which may change."""
    from sentinel.store.url import DatabaseUrl

    return DatabaseUrl.parse_url(url).render_url()


def _prepare_backend(state: str, later: bool) -> Backend:
    if not state:
        return InMemoryBackend()
    backend = make_backend(state)
    try:
        threads.run_within(STATE_TIMEOUT_S, "state", backend.prepare_place)
    except StateUnavailable:
        if not later:
            raise
    except OSError as error:
        if not later:
            raise StateUnavailable(f"{state}: {error.strerror}") from error
    return backend


def _make_postgres_backend(url: str) -> Backend:
    from sentinel.store.postgres import PostgresBackend

    scheme = url.partition("://")[0]
    if scheme not in ("postgresql", "postgres"):
        raise StoreError(f"state: {scheme}:// is not supported; use a directory or postgresql://")
    return PostgresBackend(url)
