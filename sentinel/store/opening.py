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
from sentinel.store.backend import Backend
from sentinel.store.books import SqlBooks
from sentinel.store.buffered import Buffered
from sentinel.store.errors import Unavailable
from sentinel.store.failover import PATIENCE
from sentinel.store.memory import MemoryStore
from sentinel.store.retention import USUAL, Keep
from sentinel.store.spare import places
from sentinel.store.sql import SqlStore

if TYPE_CHECKING:
    from sentinel.store.gpu_ledger import SqlGpus


class Opened(Struct, frozen=True):
    """A store, and what a person must hear about how it was found."""

    store: Buffered
    notices: tuple[str, ...] = ()


def open_store(
    state: str,
    now: Instant,
    keep: Keep = USUAL,
    *,
    mending: bool = True,
    spare: str = "",
    patience: float = PATIENCE,
    monotonic: Callable[[], float] = time.monotonic,
) -> Opened:
    """A directory (made where missing, 0700) or a postgresql:// URL, ready to be led.

    A damaged file is set aside and told in `notices`: whoever is `mending` must tell people, and
    trust nothing that was done before. A full disk, one that hangs or a server that is away is met
    again at the first use; `spare` is a further directory for what cannot be written then. One
    answer of the state may take `patience` seconds.
    Raises StoreError with the remedy for all else.
    """
    backend = _backend(state)
    beside = not backend.needs_session
    name = os.path.abspath(state) if beside else _named(state)
    asking = threads.Patience(patience, "state's own")
    kept = places(name, spare, beside=asking if beside else None, patience=patience)
    store = Buffered(
        SqlStore(backend, keep),
        MemoryStore(keep),
        monotonic=monotonic,
        spare=kept,
        patience=asking,
    )
    return Opened(store, store.prepare(now, mending=mending))


def open_books(state: str, keep: Keep = USUAL, *, later: bool = False) -> SqlBooks:
    """The audit log and node ledger of the same state; empty: of one in memory. Never buffered: what cannot be written
    down is not done. Raises StoreError with the remedy; `later`: for what may pass at the first
    use, so that watching begins without it."""
    return SqlBooks(_ready(state, later), keep)


def open_gpus(
    state: str, policy: LemonPolicy, keep: Keep = USUAL, *, later: bool = False
) -> SqlGpus:
    """The ledger of GPUs, as `open_books`."""
    from sentinel.store.gpu_ledger import SqlGpus

    return SqlGpus(_ready(state, later), policy, keep)


def _backend(state: str) -> Backend:
    if "://" in state:
        return _postgres(state)
    from sentinel.store.sqlite import SqliteBackend

    return SqliteBackend(os.path.abspath(state))


def _named(url: str) -> str:
    """A server's database without the password, which may change."""
    from sentinel.store.url import DatabaseUrl

    return DatabaseUrl.parse(url).render()


def _ready(state: str, later: bool) -> Backend:
    if not state:
        from sentinel.store.sqlite import InMemory

        return InMemory()
    backend = _backend(state)
    try:
        threads.within(PATIENCE, "state", backend.prepare)
    except Unavailable:
        if not later:
            raise
    except OSError as error:
        if not later:
            raise Unavailable(f"{state}: {error.strerror}") from error
    return backend


def _postgres(url: str) -> Backend:
    from sentinel.store.postgres import PostgresBackend

    scheme = url.partition("://")[0]
    if scheme not in ("postgresql", "postgres"):
        raise StoreError(f"state: {scheme}:// is not supported; use a directory or postgresql://")
    return PostgresBackend(url)
