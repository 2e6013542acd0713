"""Adds up the directories of one file system."""

from __future__ import annotations

import errno
import os
import re
import time
from _thread import allocate_lock
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from sentinel.checks.du.walk.sums import CallPace, WalkOrder, WalkSums

CHUNK = 64
SLICE = 512
MAX_NAMES = 2_000_000
"""Names of one directory that are kept at once, which takes about 200 MB. A user's own file system
can list names without end."""

MAX_LEVELS, MAX_PATH_BYTES = 400, 8000
"""What is deeper below the tree, or has a longer path, is not entered, and told. Paths take memory, and
each is opened by all of its steps: anybody can make a directory of 10,000 levels in a second."""

OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_DIR, _TYPE = 0o040000, 0o170000
_SIZED = (0o100000, 0o120000)
"""Regular files and symbolic links: only their sizes count."""
Unit = tuple[bytes, int, int]
"""A directory: path, device, inode."""


class HeldFolder:
    """An open directory that several pieces of work need. The last one to release it closes it."""

    def __init__(self, fd: int, pieces: int) -> None:
        self.fd, self._pieces, self._lock = fd, pieces, allocate_lock()

    def release_folder(self) -> None:
        with self._lock:
            self._pieces -= 1
            last = not self._pieces
        if last:
            os.close(self.fd)


class NamesPiece:
    """Some of the names in an open directory."""

    def __init__(self, folder: bytes, held: HeldFolder, names: Sequence[str]) -> None:
        self.folder, self.held, self.names = folder, held, names


class TreeWalker:
    """Adds up directories of one device. The directories below them are given to `push`.

    `others`: names at which other file systems are mounted, by directory. They are not even
    examined, because one of them may hang.
    """

    def __init__(
        self,
        order: WalkOrder,
        device: int,
        pace: CallPace,
        push: Callable[[Unit], object],
        others: Mapping[bytes, Collection[str]],
    ) -> None:
        self.order, self.device, self.pace, self.push = order, device, pace, push
        self.others, self.sums = others, WalkSums()

    def walk_folder(self, unit: Unit, slow: Callable[[int, float], bool]) -> list[NamesPiece]:
        """Add up one directory, in the way for a fast file system. As soon as `slow` (given calls
        and seconds) is true, the names that are left are returned as pieces."""
        self.pace.take_calls(3)
        began = time.monotonic()
        fd = self.open_unit_folder(unit)
        if fd < 0:
            return []
        held, calls = HeldFolder(fd, 1), 3
        try:
            skipped = self.others.get(unit[0], ())
            with os.scandir(fd) as listing:
                found = (e for e in listing if e.name not in skipped) if skipped else listing
                more = True
                while more:
                    more = not self.order.is_late
                    some = list(islice(found, SLICE))
                    more = more and len(some) == SLICE
                    spent = time.monotonic() - began
                    self.pace.take_calls(len(some))
                    began = time.monotonic()
                    calls += self.count_entries(unit[0], some, _stat_entry)
                    spent += time.monotonic() - began
                    if slow(calls, spent):
                        rest = self.take_names(e.name for e in found)
                        held = HeldFolder(-1, 0)
                        return cut_pieces(unit[0], fd, rest)
                    calls, began = 0, time.monotonic()
        except OSError as error:
            self.sums.note_error(unit[0], error)
        finally:
            if held.fd >= 0:
                held.release_folder()
        return []

    def list_names(self, unit: Unit) -> list[NamesPiece]:
        """Open and list one directory, in the way for a slow file system. Nothing is counted yet."""
        self.pace.take_calls(3)
        fd = self.open_unit_folder(unit)
        if fd < 0:
            return []
        try:
            skipped = self.others.get(unit[0], ())
            with os.scandir(fd) as found:
                names = self.take_names(e.name for e in found if e.name not in skipped)
        except OSError as error:
            self.sums.note_error(unit[0], error)
            names = []
        return cut_pieces(unit[0], fd, names)

    def take_names(self, found: Iterator[str]) -> list[str]:
        """The names of one directory, as many as the time and MAX_NAMES allow. What is left counts
        as not done."""
        names: list[str] = []
        while some := list(islice(found, SLICE)):
            names += some
            if self.order.is_late or len(names) >= MAX_NAMES:
                self.sums.left += 1
                break
        return names

    def add_piece(self, piece: NamesPiece) -> None:
        """Add up the entries of some names. While it waits, other threads run."""
        fd = piece.held.fd

        def stat_name(name: str) -> os.stat_result:
            return os.stat(name, dir_fd=fd, follow_symlinks=False)

        self.pace.take_calls(len(piece.names))
        self.count_entries(piece.folder, piece.names, stat_name)
        piece.held.release_folder()

    def open_unit_folder(self, unit: Unit) -> int:
        """Open the directory if it is still the same one. Returns the descriptor, or -1 after
        noting the reason."""
        path, *identity = unit
        try:
            fd = _open_long_path(path)
            found = os.fstat(fd)
        except OSError as error:
            self.note_missed(path, error)
            return -1
        if [found.st_dev, found.st_ino] != identity:
            os.close(fd)
            self.sums.note_error(path, OSError(errno.ESTALE, "was replaced while it was walked"))
            return -1
        return fd

    def note_missed(self, path: bytes, error: OSError) -> None:
        """Record a path that could not be read, unless it was removed meanwhile."""
        if error.errno != errno.ENOENT or path == self.order.path:
            self.sums.note_error(path, error)

    def count_entries(
        self, folder: bytes, entries: Sequence[Any], look: Callable[[Any], os.stat_result]
    ) -> int:
        """Add up entries of one directory. Returns the number of calls."""
        if self.order.is_late:
            self.sums.left += 1
            return 0
        files = list(self._look_at_files(folder, entries, look))
        for uid, theirs in groupby(files, key=itemgetter(2)):
            taken = [blocks for _, blocks, _ in theirs]
            self.sums.add_owner(uid, sum(taken), len(taken))
        blocks = sum(one[1] for one in files)
        self.sums.add_entries(folder, sum(one[0] for one in files), blocks, len(files))
        self.order.count_progress(len(entries), blocks)
        return len(entries)

    def _look_at_files(
        self, folder: bytes, entries: Iterable[Any], look: Callable[[Any], os.stat_result]
    ) -> Iterator[tuple[int, int, int]]:
        """Size, blocks and owner of what has one name only. Directories and what has several names
        are noted. No function is called for a file, since every one of the tree passes here."""
        for entry in entries:
            try:
                found = look(entry)
            except OSError as error:
                self.note_missed(_join_path(folder, entry), error)
                continue
            mode, inode, dev, links, uid, _, size = found[:7]
            kind, blocks = mode & _TYPE, found.st_blocks
            size = size if kind in _SIZED else 0
            if kind == _DIR:
                if dev == self.device:
                    self.add_folder(_join_path(folder, entry), dev, inode, blocks, uid)
            elif links > 1:
                self.sums.add_link((dev, inode), (folder, size, blocks, uid))
            else:
                yield size, blocks, uid

    def add_folder(self, path: bytes, device: int, inode: int, blocks: int, uid: int) -> None:
        """Count a directory and have it walked, if it is not too deep."""
        levels = path.count(b"/") - self.order.path.count(b"/")
        if levels > MAX_LEVELS or len(path) > MAX_PATH_BYTES:
            self.sums.note_deep(path)
            return
        self.push((path, device, inode))
        self.sums.add_entries(path, 0, blocks, 1)
        self.sums.add_owner(uid, blocks, 1)


def mounted_names(device: int) -> dict[bytes, set[str]]:
    """Names at which other devices are mounted, by directory (proc_pid_mountinfo(5)). Empty if
    there is no mount table."""
    found: dict[bytes, set[str]] = {}
    mine = b"%d:%d" % (os.major(device), os.minor(device))
    with suppress(OSError, ValueError), open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            _, _, number, _, point, *_ = line.split(b" ", 5)
            if number != mine:
                above, _, name = re.sub(rb"\\([0-7]{3})", _decode_octal, point).rpartition(b"/")
                found.setdefault(above or b"/", set()).add(os.fsdecode(name))
    return found


def _decode_octal(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 255])


def cut_pieces(folder: bytes, fd: int, names: Sequence[str]) -> list[NamesPiece]:
    """Pieces of a size that threads can share. The last one to be worked on closes the directory."""
    starts = range(0, max(1, len(names)), CHUNK)
    held = HeldFolder(fd, len(starts))
    return [NamesPiece(folder, held, names[at : at + CHUNK]) for at in starts]


def _stat_entry(entry: os.DirEntry[str]) -> os.stat_result:
    """The stat result. This holds the interpreter's lock, which is fine while no other thread waits
    for it."""
    return entry.stat(follow_symlinks=False)


def _join_path(folder: bytes, entry: os.DirEntry[str] | str) -> bytes:
    name = os.fsencode(entry if isinstance(entry, str) else entry.name)
    return folder + name if folder.endswith(b"/") else folder + b"/" + name


def _open_long_path(path: bytes) -> int:
    """Open a directory, even if its path is longer than the kernel accepts at once. Returns the
    descriptor."""
    try:
        return os.open(path, OPEN)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    fd = os.open(b"/", OPEN)
    for step in filter(None, path.split(b"/")):
        try:
            below = os.open(step, OPEN, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd
