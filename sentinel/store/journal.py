"""One file of waiting writes. It is only appended to, has checksums, and is readable only by its
owner.

Each record begins at a new block, and no block is written twice. A full Btrfs accepts the first
write to a preallocated block but refuses later ones, which are copies
(https://btrfs.readthedocs.io/en/latest/ch-swapfile.html, `fallocate` in btrfs(5)). A record that is
incomplete because of a power failure or a full disk is skipped.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct as Layout

from sentinel.core.digests import blake2b
from sentinel.core.text import visible
from sentinel.store.errors import StateRefused

BLOCK_BYTES = 4096
MAX_JOURNAL_BYTES = 8 << 20
"""Bytes that a journal may take."""

RESERVED_BYTES = 2 << 20
"""Bytes that are reserved for the journal beside the state, while there is room."""

_MAGIC, _VERSION = b"sentinel-journal", 1
_RECORD_HEAD = Layout("<16sHHII16s16s")
"""Magic, version, padding, number of the record, its length, the journal's id, the digest. A newer
version keeps this head: by it older ones know that the record is whole, and refuse it."""

_OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Journal:
    """The records of one file. Raises OSError if it cannot be read or written, and StateRefused if
    another user could have put it there or a newer sentinel wrote it: such a file is never used."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._id, self._count, self._end = b"", 0, 0

    @property
    def id(self) -> str:
        """The id of the journal; empty before it was begun."""
        return self._id.hex()

    def read_records(self) -> list[bytes]:
        """All whole records, the oldest first; none if the file is not there or was never used."""
        try:
            file = _open_own_file(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return []
        try:
            if not any(os.pread(file, _RECORD_HEAD.size, 0)):
                return []
            data = os.pread(file, MAX_JOURNAL_BYTES, 0)
        finally:
            os.close(file)
        return list(self._parse_records(data))

    def restart_with(self, record: bytes) -> None:
        """Begin the journal again with this record. The former contents stay until the record is
        safe. If there is no room for both, the former contents are removed first, and their room is
        kept."""
        if self._is_used():
            fresh = Journal(f"{self.path}.new")
            fresh.remove_files()
            try:
                fresh.restart_with(record)
                os.replace(fresh.path, self.path)
                self._id, self._count, self._end = fresh._id, fresh._count, fresh._end
                return
            except OSError:
                fresh.remove_files()
                os.unlink(self.path)
                self._allocate_space()
        self._id, self._count, self._end = os.urandom(16), 0, 0
        self.append_record(record)

    def append_record(self, record: bytes) -> None:
        """Append a record; once this returns, the record survives a power cut. Raises OSError."""
        head = (_MAGIC, _VERSION, 0, self._count, len(record), self._id)
        data = _RECORD_HEAD.pack(*head, _digest_record(self._id, self._count, record)) + record
        if self._end + len(data) > MAX_JOURNAL_BYTES:
            raise OSError(f"holds {MAX_JOURNAL_BYTES >> 20} MB already")
        file = _open_own_file(self.path, os.O_RDWR | os.O_CREAT)
        try:
            start, self._end = (
                self._end,
                _align_to_block(self._end + len(data)),
            )  # also if it fails
            if os.pwrite(file, data, start) != len(data):
                raise OSError("only part of a record could be written")
            os.fdatasync(file)
        finally:
            os.close(file)
        self._count += 1

    def reserve_space(self) -> None:
        """Reserve room for the journal; harmless if it is reserved already. On a file system that
        cannot do it, there may be no room later."""
        with suppress(OSError):
            if os.path.lexists(self.path):
                return
            space = os.statvfs(os.path.dirname(self.path))
            if space.f_bavail * space.f_frsize >= 4 * RESERVED_BYTES:
                self._allocate_space()

    def remove_files(self) -> None:
        """Remove the journal; harmless if there is none."""
        for path in (self.path, f"{self.path}.new"):
            with suppress(OSError):
                os.unlink(path)

    def _allocate_space(self) -> None:
        with suppress(OSError):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS, 0o600)
            try:
                os.posix_fallocate(file, 0, RESERVED_BYTES)
            finally:
                os.close(file)

    def _is_used(self) -> bool:
        """Whether the file holds any record. Raises StateRefused for a file that is not this
        user's."""
        try:
            file = _open_own_file(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            return any(os.pread(file, MAX_JOURNAL_BYTES, 0))
        finally:
            os.close(file)

    def _parse_records(self, data: bytes) -> Iterator[bytes]:
        """The records in their order. The next record goes behind everything that was ever
        written."""
        self._id, self._count, at = b"", 0, 0
        self._end = _align_to_block(len(data.rstrip(b"\0")))
        while at < self._end:
            record = self._parse_record(data, at)
            if record is None:
                at += BLOCK_BYTES
                continue
            yield record
            self._count += 1
            at = _align_to_block(at + _RECORD_HEAD.size + len(record))

    def _parse_record(self, data: bytes, at: int) -> bytes | None:
        if len(data) - at < _RECORD_HEAD.size:
            return None
        magic, version, _, number, length, name, digest = _RECORD_HEAD.unpack_from(data, at)
        record = data[at + _RECORD_HEAD.size : at + _RECORD_HEAD.size + length]
        if magic != _MAGIC or digest != _digest_record(name, number, record):
            return None
        if version != _VERSION:  # whole, so it is no torn one whose version is chance
            raise StateRefused(
                f"{visible(self.path)}: a journal of a newer sentinel: version {version}"
            )
        if not number and not self._id:
            self._id = name
        return record if (name, number) == (self._id, self._count) else None


def _open_own_file(path: str, how: int) -> int:
    """Open the regular file at this path if it belongs to this user alone; a link is never
    followed. Returns the descriptor. Raises StateRefused and OSError."""
    try:
        file = os.open(path, how | _OPEN_FLAGS, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StateRefused(f"{visible(path)}: is a link and not followed; remove it") from error
        raise
    seen = os.fstat(file)
    why = ""
    if not stat.S_ISREG(seen.st_mode):
        why = "is no regular file"
    elif seen.st_uid != os.geteuid():
        why = f"belongs to uid {seen.st_uid}"
    elif stat.S_IMODE(seen.st_mode) & 0o077:
        why = "is open to others"
    elif seen.st_nlink > 1:
        why = "has a second name"
    if why:
        os.close(file)
        raise StateRefused(f"{visible(path)}: {why}, so it is not used as a journal; remove it")
    return file


def _digest_record(name: bytes, number: int, record: bytes) -> bytes:
    return blake2b(record, digest_size=16, key=name + number.to_bytes(4, "little")).digest()


def _align_to_block(size: int) -> int:
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES
