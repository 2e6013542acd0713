"""Finds reasons not to remove an entry, whatever the rules say."""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from contextlib import suppress

from sentinel.clean.rules import DirectoryEntry, RetentionRules
from sentinel.clean.weight import identity_of


def explain_doubt(found: os.stat_result, entry: DirectoryEntry, rules: RetentionRules) -> str:
    """Why an entry that was renamed is not removed. Empty if there is no reason.

    Renaming set its change time by the clock of the file system. The entry must be old by that
    clock too, because the clock of this host may run ahead.
    """
    if identity_of(found) != entry.identity:
        return "was replaced meanwhile"
    if entry.at < found.st_ctime < entry.at + rules.older_than:
        return "is younger by the clock of its file system"
    return ""


def list_home_folders(uid: int) -> set[str]:
    """The home directories of that user, and of the user who runs this."""
    homes = {os.environ.get("HOME", "")}
    for one in {uid, os.geteuid()}:
        with suppress(KeyError):
            homes.add(pwd.getpwuid(one).pw_dir)
    return {home.rstrip("/") for home in homes}


def read_mount_id(fd: int) -> str:
    """The line `mnt_id: …` of an open directory, from /proc/self/fdinfo. It is the same for all
    directories in the same mount (proc_pid_fdinfo(5))."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
        return next(line for line in lines if line.startswith("mnt_id:"))


def list_mounts_below(path: str) -> set[str]:
    """The mount points below a directory, as paths from it. They are not looked at, because the server of
    a user's own mount may never answer. `path` has no link in it."""
    with open("/proc/self/mountinfo", "rb") as table:
        points = [line.split(b" ")[4] for line in table.read().split(b"\n") if line]
    names = (
        os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8) & 255]), point))
        for point in points
    )
    return {name[len(path) + 1 :] for name in names if name.startswith(f"{path}/")}


def is_writable(fd: int) -> bool:
    """Whether the user who runs this may remove names in an open directory."""
    return os.access(".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True)


def is_immutable(name: str, fd: int) -> bool:
    """Whether somebody has made the file immutable (chattr(1)). Only what access(2) calls unwritable is
    opened."""
    if os.access(name, os.W_OK, dir_fd=fd, effective_ids=True, follow_symlinks=False):
        return False
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=fd))
    except OSError as error:
        return error.errno == errno.EPERM
    return False


def is_renamable_only(above: os.stat_result, below: os.stat_result) -> bool:
    """Whether others may rename entries of the directory `above`, but not remove what is in the
    directory `below`. Whoever can do both needs no rules of retention to delete it. The bits of the
    group also tell of access control lists (acl(5))."""
    if above.st_mode & stat.S_ISVTX:
        return False
    by_all = bool(below.st_mode & stat.S_IWOTH)
    by_group = by_all or (bool(below.st_mode & stat.S_IWGRP) and below.st_gid == above.st_gid)
    if below.st_mode & stat.S_ISVTX:
        by_all = by_group = False
    return bool(
        (above.st_mode & stat.S_IWOTH and not by_all)
        or (above.st_mode & stat.S_IWGRP and not by_group)
    )


def explain_barred(fd: int) -> str:
    """Why nothing can be removed from an open directory. Empty if it can."""
    if os.fstatvfs(fd).f_flag & os.ST_RDONLY:
        return "the file system is read-only"
    return "" if is_writable(fd) else "the user who runs this may not write to the root"
