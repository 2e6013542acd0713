"""The root and what lies in it, seen and removed without ever following a link."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from sentinel.clean.rules import Entry, Rules

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 400
"""Levels of directories; each holds a descriptor while what is below it goes."""

GONE = ".sentinel-gone-"
"""What goes is first renamed to this and a random end: nobody finds half a checkpoint."""


class Refused(Exception):
    """Why nothing is done; one line."""


class Root:
    """The named directory, held open. Raises Refused for one that is reached through a link."""

    def __init__(self, path: str) -> None:
        steps = [step for step in path.split("/") if step]
        if not path.startswith("/") or len(steps) < 2 or {".", ".."} & set(steps):
            raise Refused("the root has to be an absolute path of two steps at least, without '..'")
        self.path = "/" + "/".join(steps)
        self.fd = _descend(steps)
        self.device, self.mount = os.fstat(self.fd).st_dev, _mount(self.fd)

    def entries(self, rules: Rules) -> list[Entry]:
        """Files and directories of fitting names; links, mounts and devices are not among them."""
        names = [n for n in os.listdir(self.fd) if rules.fits(n) and not n.startswith(GONE)]
        return [entry for name in names if (entry := self._entry(name, rules))]

    def _entry(self, name: str, rules: Rules) -> Entry | None:
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if found.st_dev != self.device:
            return None
        identity = (found.st_dev, found.st_ino)
        if stat.S_ISREG(found.st_mode):
            return Entry(name, found.st_mtime, _freed(found), identity=identity)
        if not stat.S_ISDIR(found.st_mode):
            return None
        fd = self._folder(name, self.fd, identity)
        try:
            size, at, count = self._weigh(fd, 0)
            whole = not rules.complete or _is_file(rules.complete, fd)
        finally:
            os.close(fd)
        at = max(at, found.st_mtime)
        return Entry(name, at, size, entries=count, complete=whole, identity=identity)

    def remove(self, entry: Entry, deadline: float) -> None:
        """Rename it, see that it is the one, and take it apart. Raises Refused or OSError; TimeoutError
        when the deadline (time.monotonic) passed: what is left of it is no longer in the way."""
        aside = GONE + os.urandom(8).hex()
        os.rename(entry.name, aside, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        found = os.stat(aside, dir_fd=self.fd, follow_symlinks=False)
        if (found.st_dev, found.st_ino) != entry.identity:
            os.rename(aside, entry.name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
            raise Refused(f"{entry.name!r} was replaced meanwhile; it was left as it is")
        self._remove(aside, entry.identity, deadline)

    def leftovers(self, deadline: float) -> None:
        """Go on with what an earlier run renamed and could not finish."""
        for name in os.listdir(self.fd):
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            if _is_ours(name) and found.st_dev == self.device and not stat.S_ISLNK(found.st_mode):
                self._remove(name, (found.st_dev, found.st_ino), deadline)

    def _remove(self, name: str, identity: tuple[int, int], deadline: float) -> None:
        found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=self.fd)
            return
        fd = self._folder(name, self.fd, identity)
        try:
            self._empty(fd, deadline, 0)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=self.fd)

    def _empty(self, fd: int, deadline: float, depth: int) -> None:
        """Remove all that is in an open directory; a link is removed as a link."""
        for name in os.listdir(fd):
            if time.monotonic() > deadline:
                raise TimeoutError("the time was over")
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=fd)
                continue
            below = self._folder(name, fd, (found.st_dev, found.st_ino), depth)
            try:
                self._empty(below, deadline, depth + 1)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=fd)

    def _weigh(self, fd: int, depth: int) -> tuple[int, float, int]:
        """Bytes that its end frees, the latest change, and how many entries."""
        size, at, count = os.fstat(fd).st_blocks * 512, 0.0, 1
        for name in os.listdir(fd):
            try:
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                continue
            at, count = max(at, found.st_mtime), count + 1
            if not stat.S_ISDIR(found.st_mode):
                size += _freed(found)
                continue
            below = self._folder(name, fd, (found.st_dev, found.st_ino), depth)
            try:
                inner = self._weigh(below, depth + 1)
            finally:
                os.close(below)
            size, at, count = size + inner[0], max(at, inner[1]), count + inner[2] - 1
        return size, at, count

    def _folder(self, name: str, above: int, identity: tuple[int, int], depth: int = 0) -> int:
        """That very directory, open, and within the root's own mount. Raises Refused.

        The device alone would not tell: a bind mount of the same file system has the same one.
        """
        if depth > DEEPEST:
            raise Refused(f"{name!r} lies deeper than {DEEPEST} levels")
        fd = os.open(name, _FOLDER, dir_fd=above)
        found = os.fstat(fd)
        here = (found.st_dev, _mount(fd)) == (self.device, self.mount)
        if not here or (found.st_dev, found.st_ino) != identity:
            os.close(fd)
            raise Refused(f"{name!r} is another file system, or was replaced meanwhile")
        return fd


def _descend(steps: list[str]) -> int:
    fd = os.open("/", _FOLDER)
    for at, step in enumerate(steps):
        try:
            below = os.open(step, _FOLDER, dir_fd=fd)
        except OSError as error:
            reached = "/" + "/".join(steps[: at + 1])
            with suppress(OSError):
                if stat.S_ISLNK(os.stat(step, dir_fd=fd, follow_symlinks=False).st_mode):
                    raise Refused(f"{reached} is a link; name what it leads to") from None
            raise Refused(f"{reached}: {error.strerror}") from None
        finally:
            os.close(fd)
        fd = below
    return fd


def _mount(fd: int) -> str:
    """The id of the mount that an open directory lies in (proc_pid_fdinfo(5), mnt_id)."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
        return next(line for line in lines if line.startswith("mnt_id:"))


def _freed(found: os.stat_result) -> int:
    """A file with other names stays on disk."""
    return found.st_blocks * 512 if found.st_nlink <= 1 else 0


def _is_file(name: str, fd: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_ours(name: str) -> bool:
    end = name.removeprefix(GONE)
    return name.startswith(GONE) and len(end) == 16 and set(end) <= set("0123456789abcdef")
