"""From the configured `state:` to a store that is ready."""

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
from sentinel.store.audit_log import SqlAuditLog
from sentinel.store.backend import Backend
from sentinel.store.buffered import BufferedStore
from sentinel.store.errors import StateUnavailable
from sentinel.store.failover import STATE_TIMEOUT_S
from sentinel.store.memory import MemoryStore
from sentinel.store.retention import DEFAULT_RETENTION, Retention
from sentinel.store.spare_journals import make_spare_journals
from sentinel.store.sql import SqlStore

if TYPE_CHECKING:
    from sentinel.store.gpu_ledger import SqlGpuLedger


class OpenedStore(Struct, frozen=True):
    """A store, and what a person must hear about how it was found."""

    store: BufferedStore
    notices: tuple[str, ...] = ()


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
    """A directory (made where missing, 0700) or a postgresql:// URL, ready to be led.

    A damaged file is set aside and told in `notices`: whoever is `mending` must tell people, and
    trust nothing that was done before. A full disk, one that hangs or a server that is away is met
    again at the first use; `spare` is a further directory for what cannot be written then. One
    answer of the state may take `patience` seconds.
    Raises StoreError with the remedy for all else.
    """
    backend = _make_backend(state)
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
    """The audit log and node ledger of the same state; empty: of one in memory. Never buffered: what cannot be written
    down is not done. Raises StoreError with the remedy; `later`: for what may pass at the first
    use, so that watching begins without it."""
    return SqlAuditLog(_prepare_backend(state, later), keep)


def open_sql_gpu_ledger(
    state: str, policy: LemonPolicy, keep: Retention = DEFAULT_RETENTION, *, later: bool = False
) -> SqlGpuLedger:
    """The ledger of GPUs, as `open_sql_audit_log`."""
    from sentinel.store.gpu_ledger import SqlGpuLedger

    return SqlGpuLedger(_prepare_backend(state, later), policy, keep)


def _make_backend(state: str) -> Backend:
    if "://" in state:
        return _make_postgres_backend(state)
    from sentinel.store.sqlite import SqliteBackend

    return SqliteBackend(os.path.abspath(state))


def _name_database(url: str) -> str:
    """A server's database without the password, which may change."""
    from sentinel.store.url import DatabaseUrl

    return DatabaseUrl.parse_url(url).render_url()


def _prepare_backend(state: str, later: bool) -> Backend:
    if not state:
        from sentinel.store.sqlite import InMemoryBackend

        return InMemoryBackend()
    backend = _make_backend(state)
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
