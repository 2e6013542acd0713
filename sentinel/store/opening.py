"""From the configured `state:` to a store that is ready."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.core.clock import Instant
from sentinel.core.errors import StoreError
from sentinel.core.lemon_policy import LemonPolicy
from sentinel.store.backend import Backend
from sentinel.store.books import SqlBooks
from sentinel.store.buffered import Buffered
from sentinel.store.errors import Damaged, Refused, Unavailable
from sentinel.store.locks import require_locks
from sentinel.store.memory import MemoryStore
from sentinel.store.mounts import is_local
from sentinel.store.retention import USUAL, Keep
from sentinel.store.sql import SqlStore
from sentinel.trust import believed

if TYPE_CHECKING:
    from sentinel.store.gpu_ledger import SqlGpus

_REMEDY = "make it writable (chown, chmod, mount) or set state: to another directory"


class Opened(Struct, frozen=True):
    """A store, and what a person must hear about how it was found."""

    store: Buffered
    notices: tuple[str, ...] = ()


def open_store(state: str, now: Instant, keep: Keep = USUAL, *, mending: bool = True) -> Opened:
    """A directory (made where missing, 0700) or a postgresql:// URL, ready to be led.

    A damaged file is set aside and told in `notices`: whoever is `mending` must tell people, and
    trust nothing that was done before. A full disk or a server that is away is met again at the
    first use. Raises StoreError with the remedy for all else.
    """
    store = SqlStore(_backend(state), keep)
    notices: tuple[str, ...] = ()
    try:
        store.prepare()
    except Damaged:
        if not mending:
            store.close()
            raise
        notices = (store.reopen(now),)
    except Unavailable:
        pass  # `lead` tells whether it is still so, and Buffered carries on
    return Opened(Buffered(store, MemoryStore(keep)), notices)


def open_books(state: str, keep: Keep = USUAL) -> SqlBooks:
    """The audit log and node ledger of the same state. Never buffered: what cannot be written
    down is not done. Raises StoreError with the remedy."""
    return SqlBooks(_backend(state), keep)


def open_gpus(state: str, policy: LemonPolicy, keep: Keep = USUAL) -> SqlGpus:
    """The ledger of GPUs of the same state; never buffered. Raises StoreError with the remedy."""
    from sentinel.store.gpu_ledger import SqlGpus

    return SqlGpus(_backend(state), policy, keep)


def _backend(state: str) -> Backend:
    if "://" in state:
        return _postgres(state)
    from sentinel.store.sqlite import SqliteBackend

    directory = os.path.abspath(state)
    _make(directory)
    _require_writable(directory)
    if not is_local(directory):
        require_locks(directory)
    return SqliteBackend(directory)


def _postgres(url: str) -> Backend:
    from sentinel.store.postgres import PostgresBackend

    scheme = url.partition("://")[0]
    if scheme not in ("postgresql", "postgres"):
        raise StoreError(f"state: {scheme}:// is not supported; use a directory or postgresql://")
    return PostgresBackend(url)


def _make(directory: str) -> None:
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise StoreError(f"{directory}: is not a directory; set state: to one") from error
    except OSError as error:
        raise StoreError(f"{directory}: cannot be made: {error.strerror}; {_REMEDY}") from error


def _require_writable(directory: str) -> None:
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise Refused(f"{directory}: not writable by uid {os.geteuid()}; {_REMEDY}")
    for name in ("sentinel.db", "lock"):
        path = os.path.join(directory, name)
        if os.path.islink(path) and os.lstat(path).st_uid not in believed():
            raise Refused(f"{path}: is a link of another user, and may lead anywhere; remove it")
        if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
            raise Refused(f"{path}: not writable by uid {os.geteuid()}; {_REMEDY}")
