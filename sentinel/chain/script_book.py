"""The records of a cron directory in `BASE/.sentinel/cron.json`. The user who runs the directory
writes it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock

import msgspec
from msgspec import Struct

from sentinel.chain.cron_trust import CronTrust, require_own_folder
from sentinel.chain.script_history import ScriptRecord
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.proc.whole_files import replace_whole_file


class BadCronBook(SentinelError):
    """This user cannot run the directory, or its records cannot be read."""

    exit_code = 73
    """EX_CANTCREAT of sysexits(3)."""


class CronBook(Struct, frozen=True, kw_only=True):
    """The records of a cron directory. `at` (epoch seconds) is the time of its last pass.

    `refused` says for each refused script why it is not run.
    """

    at: float = 0.0
    records: Mapping[str, ScriptRecord] = {}
    refused: Mapping[str, str] = {}


MAX_BOOK_BYTES = 64 * 2**20
"""A book of ten thousand scripts has a quarter of it."""


def read_book(base: str) -> CronBook:
    """Read the records. Empty if there was no pass yet. Raises BadCronBook."""
    return read_kept_book(base)[0]


def read_kept_book(base: str) -> tuple[CronBook, int]:
    """The records, and the uid of whoever keeps them: this user's if there was no pass yet. Raises
    BadCronBook."""
    path = _book_path(base)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            seen = os.fstat(file.fileno())
            if not stat.S_ISREG(seen.st_mode) or seen.st_size > MAX_BOOK_BYTES:
                raise BadCronBook(f"{visible(path)}: is no book of `sentinel cron run`")
            return msgspec.json.decode(file.read(MAX_BOOK_BYTES), type=CronBook), seen.st_uid
    except FileNotFoundError:
        return CronBook(), os.geteuid()
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadCronBook(
            f"{visible(path)}: {error}; move it away, and every script begins anew with its next slot"
        ) from error
    except OSError as error:
        raise BadCronBook(f"{visible(path)}: {error.strerror}") from error


@contextmanager
def lock_book(base: str, trust: CronTrust) -> Iterator[bool]:
    """Yield whether only this process runs the directory now. Raises BadCronBook if another user
    runs it, or could have made the folder of the book."""
    folder = os.path.join(base, ".sentinel")
    try:
        os.makedirs(folder, mode=0o711, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BadCronBook(
            f"{visible(folder)}: {error.strerror}; whoever runs the scripts keeps a book there"
        ) from error
    try:
        seen = os.fstat(fd)
        _require_own(folder, seen.st_uid)
        _require_folder(base, trust)
        if seen.st_mode & 0o044:
            # Whoever may open it may hold its lock for ever, and nothing would run.
            with suppress(OSError):  # a file system without modes, or one that is read-only
                os.fchmod(fd, stat.S_IMODE(seen.st_mode) & ~0o044)
        yield _try_lock(fd)
    finally:
        os.close(fd)


def write_book(base: str, book: CronBook) -> None:
    """Replace all records at once. Raises BadCronBook."""
    try:
        replace_whole_file(_book_path(base), msgspec.json.encode(book), 0o644)
    except OSError as error:
        raise BadCronBook(f"{visible(_book_path(base))}: {error.strerror}") from error


def _require_folder(base: str, trust: CronTrust) -> None:
    try:
        require_own_folder(base, ".sentinel", trust)
    except OSError as error:
        raise BadCronBook(f"{visible(error.filename or base)}: {error.strerror}") from error


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
