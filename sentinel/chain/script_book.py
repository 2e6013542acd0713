"""The book of a cron directory: `BASE/.sentinel/cron.json`, written by whoever runs it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock

import msgspec
from msgspec import Struct

from sentinel.chain.folder import replace_file
from sentinel.chain.script_history import ScriptRecord
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible


class BadCronBook(SentinelError):
    """The directory cannot be run by this user, or its book not be read."""

    exit_code = 73
    """EX_CANTCREAT of sysexits(3)."""


class CronBook(Struct, frozen=True, kw_only=True):
    """What is known of a cron directory: `at` (epoch seconds) was its last pass.

    `refused` says by script why it is not run.
    """

    at: float = 0.0
    records: Mapping[str, ScriptRecord] = {}
    refused: Mapping[str, str] = {}


def read_book(base: str) -> CronBook:
    """Empty where there was no pass yet; raises BadCronBook."""
    path = _book_path(base)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=CronBook)
    except FileNotFoundError:
        return CronBook()
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadCronBook(
            f"{visible(path)}: {error}; move it away, and every script begins anew with its next slot"
        ) from error
    except OSError as error:
        raise BadCronBook(f"{visible(path)}: {error.strerror}") from error


@contextmanager
def lock_book(base: str) -> Iterator[bool]:
    """Whether this process alone runs the directory now; raises BadCronBook where another user does."""
    folder = os.path.join(base, ".sentinel")
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadCronBook(
            f"{visible(folder)}: {error.strerror}; whoever runs the scripts keeps a book there"
        ) from error
    try:
        _require_own(folder, os.fstat(fd).st_uid)
        yield _try_lock(fd)
    finally:
        os.close(fd)


def write_book(base: str, book: CronBook) -> None:
    """Replace the book as a whole; raises BadCronBook."""
    try:
        replace_file(_book_path(base), msgspec.json.encode(book), 0o644)
    except OSError as error:
        raise BadCronBook(f"{visible(_book_path(base))}: {error.strerror}") from error


def _require_own(folder: str, owner: int) -> None:
    if owner != os.geteuid():
        raise BadCronBook(
            f"{visible(folder)} belongs to uid {owner}, who runs these scripts already; "
            "two would run everything twice"
        )


def _try_lock(fd: int) -> bool:
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise BadCronBook(
            f"no locks on this file system ({error.strerror}); use another"
        ) from error
    return True


def _book_path(base: str) -> str:
    return os.path.join(base, ".sentinel", "cron.json")
