"""One walker: adds up directories of one file system."""

from __future__ import annotations

import errno
import os
import re
import time
from _thread import allocate_lock
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sentinel.checks.du.walk.sums import CallPace, WalkOrder, WalkSums

CHUNK = 64
SLICE = 512
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_DIR, _TYPE = 0o040000, 0o170000
_SIZED = (0o100000, 0o120000)
"""Regular files and symbolic links: the sizes of others are no bytes of anybody."""
Unit = tuple[bytes, int, int]
"""A directory: path, device, inode."""


class HeldFolder:
    """An open directory that several pieces of work need; closed with the last."""

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
    """Adds up directories of one device; those below them go to `push`.

    `others`: names by directory at which other file systems are mounted. They are not even looked
    at, since one of them may hang.
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
        """One directory, as suits a fast file system. As soon as `slow` says of calls and seconds
        that this is none, the rest of it is returned."""
        self.pace.take_calls(3)
        began = time.monotonic()
        fd = self.open_unit_folder(unit)
        if fd < 0:
            return []
        held, calls = HeldFolder(fd, 1), 3
        try:
            with os.scandir(fd) as found:
                entries = list(found)
            if skipped := self.others.get(unit[0]):
                entries = [e for e in entries if e.name not in skipped]
            spent = time.monotonic() - began
            for at in range(0, max(1, len(entries)), SLICE):
                some = entries[at : at + SLICE]
                self.pace.take_calls(len(some))
                began = time.monotonic()
                calls += self.count_entries(unit[0], some, _stat_entry)
                spent += time.monotonic() - began
                if slow(calls, spent):
                    held, rest = HeldFolder(-1, 0), [e.name for e in entries[at + SLICE :]]
                    return cut_pieces(unit[0], fd, rest)
                calls, spent = 0, 0.0
        except OSError as error:
            self.sums.note_error(unit[0], error)
        finally:
            if held.fd >= 0:
                held.release_folder()
        return []

    def list_names(self, unit: Unit) -> list[NamesPiece]:
        """One directory, as suits a slow file system: opened and listed, nothing counted yet."""
        self.pace.take_calls(3)
        fd = self.open_unit_folder(unit)
        if fd < 0:
            return []
        try:
            skipped = self.others.get(unit[0], ())
            names = [n for n in os.listdir(fd) if n not in skipped]
        except OSError as error:
            self.sums.note_error(unit[0], error)
            names = []
        return cut_pieces(unit[0], fd, names)

    def add_piece(self, piece: NamesPiece) -> None:
        """Add up some names, other threads running while it waits."""
        fd = piece.held.fd

        def stat_name(name: str) -> os.stat_result:
            return os.stat(name, dir_fd=fd, follow_symlinks=False)

        self.pace.take_calls(len(piece.names))
        self.count_entries(piece.folder, piece.names, stat_name)
        piece.held.release_folder()

    def open_unit_folder(self, unit: Unit) -> int:
        """The very directory that was meant; -1, and the reason noted, where it is none."""
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
        """Note what could not be looked at; what somebody removes meanwhile weighs nothing."""
        if error.errno != errno.ENOENT or path == self.order.path:
            self.sums.note_error(path, error)

    def count_entries(
        self, folder: bytes, entries: Iterable[Any], look: Callable[[Any], os.stat_result]
    ) -> int:
        """Add up entries of one directory; how many calls that took. One loop without calls of
        its own: all that the tree holds passes through it."""
        sums, push, device = self.sums, self.push, self.device
        total = blocks = number = calls = mine = files = 0
        owner = -1
        if self.order.is_late:
            sums.left += 1
            return 0
        for entry in entries:
            calls += 1
            try:
                found = look(entry)
            except OSError as error:
                self.note_missed(_join_path(folder, entry), error)
                continue
            mode, inode, dev, links, uid, _, size = found[:7]
            kind, allocated = mode & _TYPE, found.st_blocks
            size = size if kind in _SIZED else 0
            if kind == _DIR:
                if dev == device:
                    path = _join_path(folder, entry)
                    push((path, dev, inode))
                    sums.add_entries(path, 0, allocated, 1)
                    sums.add_owner(uid, allocated, 1)
                continue
            if links > 1:
                sums.add_link((dev, inode), (folder, size, allocated, uid))
                continue
            total += size
            blocks += allocated
            number += 1
            if uid != owner:
                if files:
                    sums.add_owner(owner, mine, files)
                owner, mine, files = uid, 0, 0
            mine += allocated
            files += 1
        if files:
            sums.add_owner(owner, mine, files)
        sums.add_entries(folder, total, blocks, number)
        return calls


def mounted_names(device: int) -> dict[bytes, set[str]]:
    """Where other devices are mounted: names by the directory they lie in (proc_pid_mountinfo(5)).
    Nothing where there is no such table."""
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
    """Pieces of a size that threads can share; they close the directory."""
    starts = range(0, max(1, len(names)), CHUNK)
    held = HeldFolder(fd, len(starts))
    return [NamesPiece(folder, held, names[at : at + CHUNK]) for at in starts]


def _stat_entry(entry: os.DirEntry[str]) -> os.stat_result:
    """Holds the interpreter's lock: right where no thread waits for it."""
    return entry.stat(follow_symlinks=False)


def _join_path(folder: bytes, entry: os.DirEntry[str] | str) -> bytes:
    name = os.fsencode(entry if isinstance(entry, str) else entry.name)
    return folder + name if folder.endswith(b"/") else folder + b"/" + name


def _open_long_path(path: bytes) -> int:
    """Also a path that is longer than the kernel takes in one piece."""
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
