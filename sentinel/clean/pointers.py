"""What links and trackers lead to: a run begins there again, however old it is."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

from sentinel.clean.mentions import is_about_checkpoints, is_pointing
from sentinel.clean.rules import RetentionRules
from sentinel.clean.trackers import (
    OURS,
    NamedThings,
    UnclearPointer,
    UnreadablePointer,
    follow_pointer,
    identity_lineage,
    is_tracker,
    leads_nowhere,
    pointer_status,
    read_possible_pointer,
)

_SELF_NAMED_PATTERN = re.compile(
    r"(?<![a-z0-9])(latest|last|best|lowest|highest|newest|final)(?![a-z0-9])", re.IGNORECASE
)


def find_named(fd: int, path: str, rules: RetentionRules) -> NamedThings:
    """What the links and trackers directly in an open directory lead to; raises UnclearPointer where one
    cannot be followed."""
    found = NamedThings()
    for name, link in _possible_pointers(fd, rules):
        if rules.is_ignored(name):
            continue
        try:
            if link or is_tracker(name):
                found.add_named(follow_pointer(fd, path, name, link=link))
            else:
                found.add_named(read_possible_pointer(fd, path, name))
        except UnclearPointer as error:
            error.remedy = f"; if it points to no checkpoint, write `ignore: [{name}]`"
            raise
    return found


def _possible_pointers(fd: int, rules: RetentionRules) -> list[tuple[str, bool]]:
    """Links, and files that may be pointers by their names."""
    pointing = rules.pointing
    with os.scandir(fd) as rows:
        # Most of 100,000 rows are known from the first look to be none.
        found = [e for e in rows if pointing.get(e.name) is not False or e.is_symlink()]
    ours = [(e.name, e.is_symlink()) for e in found if not e.name.startswith(OURS)]
    return [(name, link) for name, link in ours if link or _may_point(name, rules)]


def _may_point(name: str, rules: RetentionRules) -> bool:
    """Whether a file of that name is looked into for what it names; decided once for each name."""
    known = rules.pointing.get(name)
    if known is None:
        known = is_tracker(name) or is_pointing(name)
        known = known or (is_about_checkpoints(name) and not rules.fits_name(name))
        rules.pointing[name] = known
    return known


def named_inside(fd: int, path: str) -> set[tuple[int, int]]:
    """What the trackers in a directory of a checkpoint lead to, by identity alone. One that leads
    nowhere names nothing: what was the best once may be gone by right. Raises UnreadablePointer."""
    found = set[tuple[int, int]]()
    for name, link in _list_entries(fd):
        if is_tracker(name):
            try:
                found |= follow_pointer(fd, path, name, link=link).identities
            except UnreadablePointer:
                raise
            except UnclearPointer:
                continue
    return found


def named_beside(path: str) -> set[tuple[int, int]]:
    """What links and trackers in the directory above lead to, as far as that can be seen: most of
    what lies there is no business of the root's."""
    above, found = os.path.dirname(path), set[tuple[int, int]]()
    with suppress(OSError):
        fd = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, link in _list_entries(fd):
                if link or is_tracker(name):
                    with suppress(UnclearPointer):
                        found |= follow_pointer(fd, above, name, link=link).identities
        finally:
            os.close(fd)
    return found


def named_by(pointer: str, path: str) -> NamedThings:
    """What one pointer elsewhere leads to: a link, or a tracker whose text counts from the root at
    `path` or from its own directory. Raises UnclearPointer."""
    above, name = os.path.split(pointer.rstrip("/"))
    try:
        fd = os.open(above, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadablePointer(f"{pointer}: {error.strerror}") from None
    try:
        link = stat.S_ISLNK(pointer_status(fd, pointer.rstrip("/")).st_mode)
        try:
            return follow_pointer(fd, above, name, link=link, root=path)
        except UnreadablePointer:
            raise
        except UnclearPointer:
            return follow_pointer(fd, above, name, link=link)
    finally:
        os.close(fd)


def link_identities(fd: int, link: str, where: str) -> set[tuple[int, int]]:
    """What a link somewhere in a checkpoint leads to; nothing where that is not there. Raises
    UnreadablePointer."""
    try:
        return identity_lineage(f"/proc/self/fd/{fd}/{link}")
    except OSError as error:
        if leads_nowhere(error):
            return set()
        raise UnreadablePointer(f"{where}: cannot be followed: {error.strerror}") from None


def names_itself(name: str) -> bool:
    """Whether a trainer begins there again by that very name: last.ckpt (Lightning), *-last
    (NeMo), checkpoint_best.pt (fairseq)."""
    return _SELF_NAMED_PATTERN.search(name) is not None


def _list_entries(fd: int) -> list[tuple[str, bool]]:
    with os.scandir(fd) as found:
        return [(e.name, e.is_symlink()) for e in found if not e.name.startswith(OURS)]
