"""The root and what lies in it, seen and removed without ever following a link."""

from __future__ import annotations

import os
import stat
import time
import weakref
from contextlib import suppress

from sentinel.clean.pointers import (
    find_named,
    link_identities,
    named_beside,
    named_by,
    named_inside,
    names_itself,
)
from sentinel.clean.rules import DirectoryEntry, RetentionRules
from sentinel.clean.steps import CheckpointStep, group_steps
from sentinel.clean.trackers import OURS, NamedThings, UnclearPointer
from sentinel.clean.weight import EntryWeight, changed_at, identity_of
from sentinel.core.checkpoint_names import (
    find_missing_part,
    get_unfinished_marker_name,
    is_staging,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PASSED = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_DEPTH = 400
"""Levels of directories; each holds a descriptor while what is below it goes."""

LOOKED = f"{OURS}looked-"
GONE_PREFIX = f"{OURS}gone-"
"""What goes is first renamed to LOOKED and, once it is proven to be what was meant, to GONE and a
random end: nobody finds half a checkpoint, and only what was proven is ever gone on with."""


class RemovalRefused(Exception):
    """Why nothing is done; one line."""


class CheckpointRoot:
    """The named directory, open as long as the object lives. Raises RemovalRefused for one that is reached
    through a link."""

    def __init__(self, path: str) -> None:
        steps = [step for step in path.split("/") if step]
        if not path.startswith("/") or len(steps) < 2 or {".", ".."} & set(steps):
            raise RemovalRefused(
                "the root has to be an absolute path of two steps at least, without '..'"
            )
        self.path = "/" + "/".join(steps)
        self.fd = _open_last(steps)
        weakref.finalize(self, os.close, self.fd)
        found = os.fstat(self.fd)
        if self.path in _home_folders(found.st_uid):
            raise RemovalRefused(f"{self.path} is a home directory; name one below it")
        self.device, self.mount = found.st_dev, _mount_id(self.fd)
        self._barred = _barred_reason(self.fd)
        self._meant = NamedThings()
        self._beside: frozenset[str] = frozenset()
        # In a sticky directory only these, and an entry's owner, remove it (unlink(2), EPERM).
        self._mine = not found.st_mode & stat.S_ISVTX or os.geteuid() in {found.st_uid, 0}

    def find_steps(self, rules: RetentionRules) -> list[CheckpointStep]:
        """Files and directories of fitting names, by their numbers; links, mounts and devices are
        not among them.

        Raises UnclearPointer where a pointer cannot be followed: nobody knows then what has to stay.
        """
        self._meant = self.find_pointed(rules)
        with os.scandir(self.fd) as rows:
            names = [r.name for r in rows if not r.is_symlink() and not r.name.startswith(OURS)]
        self._beside = frozenset(names)
        fitting = [name for name in names if rules.fits_name(name)]
        others = [n for n in names if not rules.fits_name(n) and not n.startswith(".nfs")]
        found = [entry for name in fitting if (entry := self.look_at_entry(name, rules))]
        return group_steps(found, rules, others)

    def find_pointed(self, rules: RetentionRules) -> NamedThings:
        """What pointers in the root, right beside it, and where the rules say, lead to just now;
        raises UnclearPointer."""
        found = find_named(self.fd, self.path, rules)
        found.identities |= named_beside(self.path)
        for pointer in rules.pointers:
            found.add_named(named_by(pointer, self.path))
        return found

    def find_leftovers(self, rules: RetentionRules, now: float) -> list[CheckpointStep]:
        """What an earlier run renamed and could not finish. A name alone proves nothing: no file
        in it may be younger than the rules allow."""
        found = [self.look_at_entry(n, rules) for n in os.listdir(self.fd) if _is_gone(n)]
        return [
            CheckpointStep([e], None)
            for e in found
            if e and not e.held and now - e.at >= rules.older_than
        ]

    def look_at_entry(self, name: str, rules: RetentionRules) -> DirectoryEntry | None:
        """It as it is now; None where there is none, or none of ours. What cannot be looked at is
        held, and counts as incomplete."""
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        folder = stat.S_ISDIR(found.st_mode)
        if found.st_dev != self.device or not (folder or stat.S_ISREG(found.st_mode)):
            return None
        entry = DirectoryEntry(
            name, changed_at(found), 0, complete=False, identity=identity_of(found)
        )
        entry.held = self._forbidden_reason(name, found)
        try:
            self._weigh_entry(entry, found, rules)
        except FileNotFoundError:
            return None
        except (RemovalRefused, OSError) as error:
            entry.held = error_line(error)
        return entry

    def remove_step(self, step: CheckpointStep, rules: RetentionRules, deadline: float) -> None:
        """Rename all of it, see that it is the one, and take it apart. Pointers are followed anew
        right before it is renamed and right after: whoever names it until then keeps it.

        Raises RemovalRefused, UnclearPointer or OSError, and then all of it has its own names; TimeoutError when
        the deadline (time.monotonic) passed: what is left of it is no longer in the way.
        """
        self._meant = self.find_pointed(rules)
        for part in step.parts:
            again = self.look_at_entry(part.name, rules)
            if not again or (again.identity, again.at) != (part.identity, part.at):
                raise RemovalRefused("was changed or replaced meanwhile; it was left as it is")
            if again.named:
                raise RemovalRefused("is named by a pointer now; it was left as it is")
        gone = [step.first_name] if _is_gone(step.first_name) else self._move_aside(step, rules)
        for name, part in zip(gone, step.parts, strict=True):
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            if identity_of(found) != part.identity:
                raise RemovalRefused(f"was replaced meanwhile; {name} was left as it is")
            self._remove_entry(name, self.fd, found, deadline, 0)

    def _weigh_entry(
        self, entry: DirectoryEntry, found: os.stat_result, rules: RetentionRules
    ) -> None:
        """Weigh it. A complete one has bytes in it, and the file that tells it where one does."""
        weight = self._stat_weight(found)
        if stat.S_ISDIR(found.st_mode):
            fd = self._open_folder(entry.name, self.fd, identity_of(found))
            try:
                weight = self._weigh_folder(fd, 0)
                entry.marker = _marker_bytes(rules, fd)
            finally:
                os.close(fd)
        elif rules.complete and rules.is_marker(entry.name):
            entry.marker = found.st_size
        entry.size, entry.entries = weight.size, weight.entries
        entry.content, entry.lacks = weight.content, weight.lacks
        entry.at = weight.written if _is_gone(entry.name) else weight.at
        entry.complete = weight.content > 0
        marker = get_unfinished_marker_name(entry.name)
        entry.unfinished = is_staging(entry.name) or marker in self._beside
        entry.named = (
            weight.named
            or self._meant.covers_entry(entry.name, entry.identity)
            or names_itself(entry.name)
        )
        entry.leads = frozenset(weight.leads)
        entry.held = entry.held or weight.held

    def _forbidden_reason(self, name: str, found: os.stat_result) -> str:
        """Why that name cannot be removed, or by none who runs this; empty where nothing is known."""
        if not name.isprintable():
            return "its name cannot be written down"
        if not self._mine and os.geteuid() != found.st_uid:
            return "it belongs to somebody else"
        return self._barred

    def _move_aside(self, step: CheckpointStep, rules: RetentionRules) -> list[str]:
        """Rename all of it, prove that it is what was looked at; the new names. Half a step is
        never left: where anything is in doubt, each part gets its own name back."""
        moved = list[tuple[str, str, os.stat_result]]()
        try:
            for part in step.parts:
                looked = f"{LOOKED}{os.urandom(4).hex()}-{part.name[:50]}"  # NAME_MAX is 255 bytes
                self._rename_entry(part.name, looked)
                found = os.stat(looked, dir_fd=self.fd, follow_symlinks=False)
                moved.append((looked, part.name, found))
                if why := _doubt_reason(found, part, rules):
                    raise RemovalRefused(f"{why}; it was left as it is")
            if why := self._newly_named(step, rules) or self._newly_grown(step, rules):
                raise RemovalRefused(f"{why}; it was left as it is")
        except (RemovalRefused, OSError):
            self._put_all_back(moved)
            raise
        gone = list[str]()
        for looked, _, _ in moved:
            gone.append(GONE_PREFIX + os.urandom(8).hex())
            self._rename_entry(looked, gone[-1])
        return gone

    def _newly_named(self, step: CheckpointStep, rules: RetentionRules) -> str:
        """Why it has to stay after all: a pointer that names it leads nowhere by now."""
        try:
            meant = self.find_pointed(rules)
        except (UnclearPointer, OSError) as error:
            return f"was named meanwhile ({error_line(error)})"
        named_now = any(meant.covers_entry(part.name, part.identity) for part in step.parts)
        return "is named by a pointer now" if named_now else ""

    def _newly_grown(self, step: CheckpointStep, rules: RetentionRules) -> str:
        """Why it has to stay after all: somebody is just saving more of it."""
        if step.number is None:
            return ""
        new = (n for n in os.listdir(self.fd) if n not in self._beside and not n.startswith(OURS))
        more = next(
            (n for n in new if rules.fits_name(n) and rules.step_number(n) == step.number), ""
        )
        return f"got {more} meanwhile" if more else ""

    def _put_all_back(self, moved: list[tuple[str, str, os.stat_result]]) -> None:
        """Raises RemovalRefused where one could not be, after all others were."""
        failed = ""
        for looked, name, found in moved:
            try:
                self._put_one_back(looked, name, found)
            except (RemovalRefused, OSError) as error:
                failed = failed or error_line(error)
        if failed:
            raise RemovalRefused(failed)

    def _put_one_back(self, looked: str, name: str, found: os.stat_result) -> None:
        """Never over what has taken its name meanwhile."""
        try:
            if stat.S_ISDIR(found.st_mode):
                self._rename_entry(looked, name)
                return
            os.link(looked, name, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
        except OSError as error:
            raise RemovalRefused(
                f"was replaced meanwhile, and is now {looked}: {error_line(error)}"
            ) from None
        os.unlink(looked, dir_fd=self.fd)

    def _rename_entry(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def _remove_entry(
        self, name: str, above: int, found: os.stat_result, deadline: float, depth: int
    ) -> None:
        """Remove a file or a link, or a directory with all that is in it."""
        if time.monotonic() > deadline:
            raise TimeoutError
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=above)
            return
        fd = self._open_folder(name, above, identity_of(found), depth)
        try:
            for below in os.listdir(fd):
                inner = os.stat(below, dir_fd=fd, follow_symlinks=False)
                self._remove_entry(below, fd, inner, deadline, depth + 1)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=above)

    def _weigh_folder(self, fd: int, depth: int) -> EntryWeight:
        """An open directory with all that is in it; what vanishes meanwhile weighs nothing."""
        weight = self._stat_weight(os.fstat(fd))
        names = os.listdir(fd)
        weight.lacks = find_missing_part(names)
        weight.held = "" if _is_writable(fd) else "it may not be changed by who runs this"
        weight.leads = named_inside(fd, os.readlink(f"/proc/self/fd/{fd}"))
        for name in names:
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                weight.add_inner(self._weigh_subfolder(name, fd, found, depth + 1))
        return weight

    def _weigh_subfolder(
        self, name: str, above: int, found: os.stat_result, depth: int
    ) -> EntryWeight:
        if not stat.S_ISDIR(found.st_mode):
            weight = self._stat_weight(found)
            if stat.S_ISLNK(found.st_mode):
                weight.leads = link_identities(above, name, os.path.join(self.path, "…", name))
            return weight
        fd = self._open_folder(name, above, identity_of(found), depth)
        try:
            return self._weigh_folder(fd, depth)
        finally:
            os.close(fd)

    def _stat_weight(self, found: os.stat_result) -> EntryWeight:
        """A bind mount of what lies in an entry names the entry: each thing in it is compared."""
        weight = EntryWeight(found)
        weight.named = identity_of(found) in self._meant.identities
        return weight

    def _open_folder(self, name: str, above: int, identity: tuple[int, int], depth: int = 0) -> int:
        """That very directory, open, and within the root's own mount. Raises RemovalRefused.

        The device alone would not tell: a bind mount of the same file system has the same one.
        """
        if depth > MAX_DEPTH:
            raise RemovalRefused(f"{name!r} lies deeper than {MAX_DEPTH} levels")
        fd = os.open(name, _FOLDER, dir_fd=above)
        found = os.fstat(fd)
        here = (found.st_dev, _mount_id(fd)) == (self.device, self.mount)
        if not here or identity_of(found) != identity:
            os.close(fd)
            raise RemovalRefused(f"{name!r} is another file system, or was replaced meanwhile")
        return fd


def error_line(error: Exception) -> str:
    """One line of what went wrong."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _doubt_reason(found: os.stat_result, entry: DirectoryEntry, rules: RetentionRules) -> str:
    """Why what was renamed is not to go. Renaming marked it with the file system's own time, by
    which it has to be old, too: this host's clock may run ahead."""
    if identity_of(found) != entry.identity:
        return "was replaced meanwhile"
    if entry.at < found.st_ctime < entry.at + rules.older_than:
        return "is younger by the clock of its file system"
    return ""


def _open_last(steps: list[str]) -> int:
    """The last of the steps, open to be read; those on the way need not be readable."""
    fd = os.open("/", _PASSED)
    for at, step in enumerate(steps):
        try:
            below = os.open(step, _FOLDER if at + 1 == len(steps) else _PASSED, dir_fd=fd)
        except OSError as error:
            reached = "/" + "/".join(steps[: at + 1])
            with suppress(OSError):
                if stat.S_ISLNK(os.stat(step, dir_fd=fd, follow_symlinks=False).st_mode):
                    raise RemovalRefused(f"{reached} is a link; name what it leads to") from None
            raise RemovalRefused(f"{reached}: {error.strerror}") from None
        finally:
            os.close(fd)
        fd = below
    return fd


def _home_folders(uid: int) -> set[str]:
    """The home directories of who runs this and of that user."""
    import pwd

    homes = {os.environ.get("HOME", "")}
    for one in {uid, os.geteuid()}:
        with suppress(KeyError):
            homes.add(pwd.getpwuid(one).pw_dir)
    return {home.rstrip("/") for home in homes}


def _mount_id(fd: int) -> str:
    """The id of the mount that an open directory lies in (proc_pid_fdinfo(5), mnt_id)."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
        return next(line for line in lines if line.startswith("mnt_id:"))


def _is_writable(fd: int) -> bool:
    """Whether names in an open directory may be removed by who runs this."""
    return os.access(".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True)


def _barred_reason(fd: int) -> str:
    """Why nothing can be removed from an open directory; empty where it can."""
    if os.fstatvfs(fd).f_flag & os.ST_RDONLY:
        return "the file system is read-only"
    return "" if _is_writable(fd) else "the root may not be written by who runs this"


def _marker_bytes(rules: RetentionRules, fd: int) -> int | None:
    """Bytes of the file in an open directory that tells that it is complete; None without one."""
    if not rules.complete:
        return None
    names = [name for name in os.listdir(fd) if rules.is_marker(name)]
    sizes = list[int]()
    for name in names:
        with suppress(OSError):
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            sizes += [found.st_size] if stat.S_ISREG(found.st_mode) else []
    return max(sizes, default=None)


def _is_gone(name: str) -> bool:
    end = name.removeprefix(GONE_PREFIX)
    return name.startswith(GONE_PREFIX) and len(end) == 16 and set(end) <= set("0123456789abcdef")
