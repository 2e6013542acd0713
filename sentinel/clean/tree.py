"""Reads the root and its entries and removes them, without following any link."""

from __future__ import annotations

import os
import stat
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sentinel.clean import gone_marks
from sentinel.clean.pointers import (
    find_named,
    link_identities,
    named_beside,
    named_by,
    named_inside,
    names_itself,
    names_needed,
    names_needed_by_file,
)
from sentinel.clean.removal_doubts import (
    explain_barred,
    explain_doubt,
    is_immutable,
    is_renamable_only,
    is_writable,
    list_home_folders,
    list_mounts_below,
    read_mount_id,
)
from sentinel.clean.root_path import FOLDER_FLAGS, RemovalRefused, open_root
from sentinel.clean.rules import DirectoryEntry, RetentionRules
from sentinel.clean.steps import CheckpointStep, group_steps
from sentinel.clean.trackers import OURS, NamedThings, UnclearPointer
from sentinel.clean.weight import EntryWeight, changed_at, identity_of
from sentinel.core.checkpoint_names import (
    get_unfinished_marker_name,
    is_staging,
)
from sentinel.core.work import PROGRESS_PREFIX, PROGRESS_VARIABLE

RENAMABLE = (
    "others may rename it here but not remove what is in it, so its name proves nothing; "
    "`chmod +t` on the root lets only owners rename"
)
NOBODY_KNOWN = -1
"""In place of the uid of an entry whose owner is not known."""

MAX_DEPTH = 400
"""The deepest level of directories. Each level needs an open descriptor during the removal."""


MAX_NEEDS_DEPTH = 4
"""How deep in a step descriptions are read."""


class CheckpointRoot:
    """The root, open as long as the object lives. Raises RemovalRefused if its path has a link in
    it."""

    def __init__(self, path: str) -> None:
        steps = [step for step in path.split("/") if step]
        if not path.startswith("/") or len(steps) < 2 or {".", ".."} & set(steps):
            raise RemovalRefused(
                "the root has to be an absolute path of two steps at least, without '..'"
            )
        self.path = "/" + "/".join(steps)
        self.fd = open_root(steps)
        weakref.finalize(self, os.close, self.fd)
        found = os.fstat(self.fd)
        if self.path in list_home_folders(found.st_uid):
            raise RemovalRefused(f"{self.path} is a home directory; name one below it")
        self.device, self.mount, self._found = found.st_dev, read_mount_id(self.fd), found
        self._barred = explain_barred(self.fd)
        self._meant, self._is_removing = NamedThings(), False
        self._beside: frozenset[str] = frozenset()
        self._mounts: set[str] = set()
        # In a sticky directory only root, the owner of the directory and the owner of an entry may
        # remove it (unlink(2), EPERM).
        self._mine = not found.st_mode & stat.S_ISVTX or os.geteuid() in {found.st_uid, 0}

    def find_steps(self, rules: RetentionRules) -> list[CheckpointStep]:
        """The steps of the files and directories whose names fit. Links, mounts and devices are
        left out.

        Raises UnclearPointer if a pointer cannot be followed, because then nobody knows what must
        be kept.
        """
        self._meant = self.find_pointed(rules)
        with os.scandir(self.fd) as rows:
            names = [r.name for r in rows if not r.is_symlink() and not r.name.startswith(OURS)]
        self._mounts = list_mounts_below(self.path)
        names = [name for name in names if name not in self._mounts]
        self._beside = frozenset(names)
        fitting = [name for name in names if rules.fits_name(name)]
        others = [n for n in names if not rules.fits_name(n) and not n.startswith(".nfs")]
        found = []
        for number, name in enumerate(fitting):
            _tell_progress(number, len(fitting))
            if entry := self.look_at_entry(name, rules):
                found.append(entry)
        return group_steps(found, rules, others)

    def find_pointed(self, rules: RetentionRules) -> NamedThings:
        """The present targets of pointers in the root, beside it, and where the rules say. Raises
        UnclearPointer."""
        found = find_named(self.fd, self.path, rules)
        found.add_named(named_beside(self.path, rules))
        for pointer in rules.pointers:
            found.add_named(named_by(pointer, self.path))
        return found

    def find_leftovers(self, rules: RetentionRules, now: float) -> list[CheckpointStep]:
        """Entries that an earlier removal has renamed and not finished, or somebody else: those are
        held. The name alone proves nothing: a directory has to be marked, and no file in it may be
        younger than the rules allow."""
        left = [name for name in os.listdir(self.fd) if gone_marks.is_gone_name(name)]
        found = [self.look_at_entry(name, rules) for name in left if name not in self._mounts]
        return [
            CheckpointStep([e], None)
            for e in found
            if e and e.held in ("", gone_marks.UNPROVEN) and now - e.at >= rules.older_than
        ]

    def look_at_entry(self, name: str, rules: RetentionRules) -> DirectoryEntry | None:
        """The entry as it is now. None if it is missing, is on another device, or is neither a file
        nor a directory. An entry that cannot be read is kept, and counts as incomplete. So does
        what not even its owner is known of, such as somebody's own mount that ended."""
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            return DirectoryEntry(
                name, time.time(), complete=False, held=error_line(error), owner=NOBODY_KNOWN
            )
        folder = stat.S_ISDIR(found.st_mode)
        if found.st_dev != self.device or not (folder or stat.S_ISREG(found.st_mode)):
            return None
        entry = DirectoryEntry(
            name,
            changed_at(found),
            complete=False,
            identity=identity_of(found),
            owner=found.st_uid,
        )
        if any(point.startswith(f"{name}/") for point in self._mounts):
            entry.held = "another file system is mounted in it"
            return entry
        try:
            self._weigh_entry(entry, found, rules)
        except FileNotFoundError:
            return None
        except (RemovalRefused, OSError) as error:
            entry.held = error_line(error)
        return entry

    def remove_step(self, step: CheckpointStep, rules: RetentionRules, deadline: float) -> None:
        """Rename all parts of a step, verify them, and remove them.

        Pointers are followed again directly before and after the renaming. If a pointer names the
        step by then, it is kept. Raises RemovalRefused, UnclearPointer or OSError. Then all parts
        have their own names again. Raises TimeoutError after the deadline (time.monotonic). Then
        the rest is already renamed.
        """
        self._meant, self._is_removing = self.find_pointed(rules), True
        self._mounts = list_mounts_below(self.path)
        for part in step.parts:
            again = self.look_at_entry(part.name, rules)
            if not again or (again.identity, again.at) != (part.identity, part.at):
                raise RemovalRefused("was changed or replaced meanwhile; it was left as it is")
            if why := "is named by a pointer now" if again.named else again.held:
                raise RemovalRefused(f"{why}; it was left as it is")
        gone = [step.first_name]
        if not gone_marks.is_gone_name(step.first_name):
            gone = self._move_aside(step, rules)
        for name, part in zip(gone, step.parts, strict=True):
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            if identity_of(found) != part.identity:
                raise RemovalRefused(f"was replaced meanwhile; {name} was left as it is")
            self._remove_entry(name, self.fd, found, deadline, 0)

    def _weigh_entry(
        self, entry: DirectoryEntry, found: os.stat_result, rules: RetentionRules
    ) -> None:
        """Measure the entry. A complete entry has content, and if the rules name a file for it,
        also that file."""
        weight, doubt = self._stat_weight(found), ""
        if stat.S_ISDIR(found.st_mode):
            with self._open_folder(entry.name, self.fd, identity_of(found)) as fd:
                weight = self._weigh_folder(fd, 0, rules)
                entry.marker = _marker_bytes(rules, fd)
                if not gone_marks.is_gone_name(entry.name):
                    doubt = RENAMABLE if weight.renamable else ""
                elif not gone_marks.has_gone_mark(fd):
                    doubt = gone_marks.UNPROVEN
        else:
            weight.needs = names_needed_by_file(self.fd, self.path, entry.name, self._beside)
            if rules.is_marker(entry.name):
                entry.marker = found.st_size
        if self._is_removing and is_immutable(entry.name, self.fd):
            weight.held = weight.held or "it is immutable (`lsattr` shows it)"
        entry.size, entry.entries = weight.size, weight.entries
        entry.content, entry.files = weight.content, weight.files
        entry.at = weight.written if gone_marks.is_gone_name(entry.name) else weight.at
        entry.complete = bool(weight.content)
        marker = get_unfinished_marker_name(entry.name)
        telling = rules.telling_name(entry.name)
        entry.unfinished = is_staging(telling) or self._has_marker(marker, entry.owner)
        entry.named = (
            weight.named
            or self._meant.covers_entry(entry.name, entry.identity)
            or names_itself(telling)
        )
        entry.leads, entry.needs, entry.locked = (
            frozenset(weight.leads),
            weight.needs,
            weight.locked,
        )
        entry.held = self._forbidden_reason(entry.name, found) or doubt or weight.held

    def _has_marker(self, name: str, owner: int) -> bool:
        """Whether a file of that name in the root belongs to this owner or to root. Other users'
        files in a shared folder say nothing about the step."""
        if name not in self._beside:
            return False
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return found.st_uid in (owner, 0)

    def _forbidden_reason(self, name: str, found: os.stat_result) -> str:
        """Why the name cannot be removed, by this user or by anybody. Empty if no reason is known."""
        if not name.isprintable():
            return "its name cannot be written down"
        if not self._mine and os.geteuid() != found.st_uid:
            return "it belongs to somebody else"
        return self._barred

    def _move_aside(self, step: CheckpointStep, rules: RetentionRules) -> list[str]:
        """Rename all parts, and verify that they are the checked ones. Returns the new names.

        If there is any doubt, each part gets its own name back, so that no half step remains.
        """
        moved = list[tuple[str, str, os.stat_result]]()
        try:
            for part in step.parts:
                looked = f"{gone_marks.LOOKED}{os.urandom(4).hex()}-{part.name[:50]}"  # NAME_MAX is 255 bytes
                self._rename_entry(part.name, looked)
                found = os.stat(looked, dir_fd=self.fd, follow_symlinks=False)
                moved.append((looked, part.name, found))
                if why := explain_doubt(found, part, rules):
                    raise RemovalRefused(f"{why}; it was left as it is")
            if why := self._newly_named(step, rules) or self._newly_grown(step, rules):
                raise RemovalRefused(f"{why}; it was left as it is")
            for looked, _, found in moved:
                gone_marks.mark_gone(looked, self.fd, found)
        except (RemovalRefused, OSError):
            self._put_all_back(moved)
            raise
        gone = list[str]()
        for looked, _, _ in moved:
            gone.append(gone_marks.GONE_PREFIX + os.urandom(8).hex())
            self._rename_entry(looked, gone[-1])
        return gone

    def _newly_named(self, step: CheckpointStep, rules: RetentionRules) -> str:
        """Why the step must be kept: a pointer names it now, or cannot be followed."""
        try:
            meant = self.find_pointed(rules)
        except (UnclearPointer, OSError) as error:
            return f"was named meanwhile ({error_line(error)})"
        named_now = any(meant.covers_entry(part.name, part.identity) for part in step.parts)
        return "is named by a pointer now" if named_now else ""

    def _newly_grown(self, step: CheckpointStep, rules: RetentionRules) -> str:
        """Why the step must be kept: somebody is saving more of it. Empty if not."""
        if step.number is None:
            return ""
        new = (n for n in os.listdir(self.fd) if n not in self._beside and not n.startswith(OURS))
        more = next(
            (n for n in new if rules.fits_name(n) and rules.step_number(n) == step.number), ""
        )
        return f"got {more} meanwhile" if more else ""

    def _put_all_back(self, moved: list[tuple[str, str, os.stat_result]]) -> None:
        """Put all parts back. If one fails, the others are still put back, and then it raises
        RemovalRefused."""
        failed = ""
        for looked, name, found in moved:
            try:
                self._put_one_back(looked, name, found)
            except (RemovalRefused, OSError) as error:
                failed = failed or error_line(error)
        if failed:
            raise RemovalRefused(failed)

    def _put_one_back(self, looked: str, name: str, found: os.stat_result) -> None:
        """Put one part back, unless another entry has its name now."""
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
        with self._open_folder(name, above, identity_of(found), depth) as fd:
            # The mark goes last: until then, the next removal can go on.
            for below in sorted(os.listdir(fd), key=lambda inner: inner == gone_marks.GONE_MARK):
                inner = os.stat(below, dir_fd=fd, follow_symlinks=False)
                self._remove_entry(below, fd, inner, deadline, depth + 1)
        os.rmdir(name, dir_fd=above)

    def _weigh_folder(self, fd: int, depth: int, rules: RetentionRules) -> EntryWeight:
        """Measure an open directory with its content. What vanishes meanwhile counts nothing."""
        weight = self._stat_weight(os.fstat(fd))
        names = [name for name in os.listdir(fd) if name != gone_marks.GONE_MARK]
        weight.held = "" if is_writable(fd) else "the user who runs this may not change it"
        weight.renamable = is_renamable_only(self._found, os.fstat(fd))
        path = os.readlink(f"/proc/self/fd/{fd}")
        weight.leads = named_inside(fd, path)
        # PEFT lays each named adapter into a folder of its own, verl into `actor/lora_adapter`
        if depth < MAX_NEEDS_DEPTH:
            weight.needs = names_needed(fd, path, self._beside, deep=depth > 0)
        for name in names:
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                weight.add_inner(name, self._weigh_subfolder(name, fd, found, depth + 1, rules))
        return weight

    def _weigh_subfolder(
        self, name: str, above: int, found: os.stat_result, depth: int, rules: RetentionRules
    ) -> EntryWeight:
        if not stat.S_ISDIR(found.st_mode):
            weight = self._stat_weight(found)
            if stat.S_ISLNK(found.st_mode):
                weight.leads = link_identities(above, name, os.path.join(self.path, "…", name))
            if self._is_removing and is_immutable(name, above):
                weight.held = f"{name} in it is immutable (`lsattr` shows it)"
            return weight
        with self._open_folder(name, above, identity_of(found), depth) as fd:
            return self._weigh_folder(fd, depth, rules)

    def _stat_weight(self, found: os.stat_result) -> EntryWeight:
        """The weight of one file or directory, with whether a pointer leads to it. So an entry also
        counts as named if a bind mount inside it is."""
        weight = EntryWeight(found)
        weight.named = identity_of(found) in self._meant.identities
        return weight

    @contextmanager
    def _open_folder(
        self, name: str, above: int, identity: tuple[int, int], depth: int = 0
    ) -> Iterator[int]:
        """Exactly that directory, within the root's own mount, open meanwhile. Raises
        RemovalRefused.

        The device alone is not enough, because a bind mount of the same file system has the same
        one.
        """
        if depth > MAX_DEPTH:
            raise RemovalRefused(f"{name!r} lies deeper than {MAX_DEPTH} levels")
        fd = os.open(name, FOLDER_FLAGS, dir_fd=above)
        try:
            found = os.fstat(fd)
            here = (found.st_dev, read_mount_id(fd)) == (self.device, self.mount)
            if not here or identity_of(found) != identity:
                raise RemovalRefused(f"{name!r} is another file system, or was replaced meanwhile")
            yield fd
        finally:
            os.close(fd)


def _tell_progress(done: int, total: int) -> None:
    """Write a line with the progress, if somebody waits for it."""
    if PROGRESS_VARIABLE in os.environ:
        os.write(2, f"{PROGRESS_PREFIX}{done} {total} 0\n".encode())


def error_line(error: Exception) -> str:
    """One line about the error."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _marker_bytes(rules: RetentionRules, fd: int) -> int | None:
    """The size of the file in an open directory that shows that the checkpoint is complete; the
    largest if there are several. None if there is none."""
    if not rules.complete:
        return None
    names = [name for name in os.listdir(fd) if rules.is_marker(name)]
    sizes = list[int]()
    for name in names:
        with suppress(OSError):
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            sizes += [found.st_size] if stat.S_ISREG(found.st_mode) else []
    return max(sizes, default=None)
