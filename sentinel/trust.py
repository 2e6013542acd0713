"""Who could change a file: what is found and then run, or says what runs, has to be root's or the
caller's own, on the whole way to it.

An entry is whose directory it lies in: who may write that renames and replaces what is in it. In a
sticky directory only an entry's owner may (and the directory's own): rename(2), inode(7).
"""

import os
import shlex
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress

from msgspec import Struct

from sentinel.core.errors import SentinelError
from sentinel.core.text import visible

LINKS = 40
"""Links on one way: path_resolution(7)."""


class Distrusted(SentinelError):
    """It is there, and others could change it: it is not used."""

    exit_code = 78
    """EX_CONFIG of sysexits(3)."""


class Fault(Struct, frozen=True):
    """What is wrong on the way: `path` itself, why, and the command that mends it, if one does."""

    path: str
    why: str
    remedy: str = ""


def believed() -> frozenset[int]:
    """The uids that may change what this process runs: root, and whoever it runs as."""
    return frozenset({0, os.geteuid()})


def believed_names() -> str:
    """The same for people."""
    return " and ".join(user_name(uid) for uid in sorted(believed()))


def fault(path: str, trusted: Collection[int]) -> Fault | None:
    """Why others than the `trusted` uids could change what `path` is, links and all directories
    above included; None where none could. Raises OSError for what cannot be looked at.

    Whoever sees None may open the path: nobody can put another file there in between.
    """
    place, device, links = "/", os.stat("/").st_dev, 0
    steps = _steps(os.path.join(os.getcwd(), path))
    while steps:
        step = steps.pop(0)
        if step == "..":
            place = os.path.dirname(place)
            continue
        entry = os.path.join(place, step)
        if wrong := _changeable(place, os.stat(place), entry, trusted):
            return wrong
        seen = os.lstat(entry)
        if wrong := _foreign(entry, seen, trusted) or _served(entry, seen, device, trusted):
            return wrong
        if not stat.S_ISLNK(seen.st_mode):
            place, device = entry, seen.st_dev
            continue
        links += 1
        if links > LINKS:
            return Fault(entry, "is a link without an end")
        target = os.readlink(entry)
        place = "/" if target.startswith("/") else place
        steps = _steps(target) + steps
    return _changeable(place, os.stat(place), "", trusted)


def tree_fault(folder: str, trusted: Collection[int]) -> Fault | None:
    """The same for a file, or a directory and all that lies in it: code may come from any of it."""
    found = fault(folder, trusted)
    for place, folders, files in os.walk(folder, onerror=_raise) if os.path.isdir(folder) else ():
        for name in (*folders, *files):
            if found:
                return found
            path = os.path.join(place, name)
            seen = os.lstat(path)
            if stat.S_ISLNK(seen.st_mode):
                found = fault(path, trusted)
            else:
                found = _foreign(path, seen, trusted) or _changeable(path, seen, "", trusted)
    return found


def private_group(seen: os.stat_result) -> bool:
    """Whether the file's group is its owner's alone, which makes group-writable harmless.

    Where every user has such a group the usual umask is 002: useradd(8), USERGROUPS_ENAB of
    login.defs(5), pam_umask(8). Never so for root: no umask gives its files away, and on some
    systems others are in its group. An access control list may name more: then it is not alone.
    """
    import grp
    import pwd

    if seen.st_uid == 0:
        return False
    try:
        user, group = pwd.getpwuid(seen.st_uid), grp.getgrgid(seen.st_gid)
    except KeyError:
        return False
    own = user.pw_gid == seen.st_gid and group.gr_name == user.pw_name
    if not own or not set(group.gr_mem) <= {user.pw_name}:
        return False
    return all(u.pw_gid != seen.st_gid or u.pw_uid == seen.st_uid for u in pwd.getpwall())


def asking_as(uid: int, *options: str) -> str:
    """This very command, as that user would have to type it."""
    state = os.environ.get("XDG_STATE_HOME")
    words = ["sudo"] if uid == 0 else ["sudo", "-H", "-u", user_name(uid)]
    words += ["env", f"XDG_STATE_HOME={state}"] if state and not options else []
    return visible(shlex.join([*words, "sentinel", *sys.argv[1:], *options]))


def user_name(uid: int) -> str:
    """What the uid is called, for people."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _foreign(path: str, seen: os.stat_result, trusted: Collection[int]) -> Fault | None:
    if seen.st_uid in trusted:
        return None
    return Fault(path, f"belongs to {visible(user_name(seen.st_uid))}")


def _changeable(
    path: str, seen: os.stat_result, entry: str, trusted: Collection[int]
) -> Fault | None:
    """`entry`: what of the directory is meant; of a sticky one it has to be there already."""
    if found := _foreign(path, seen, trusted):
        return found
    bits = "".join(_open_to(path, seen))
    if not bits:
        return None
    if entry and seen.st_mode & stat.S_ISVTX:
        return None if os.path.lexists(entry) else Fault(path, "lets everybody put files there")
    who = {"g": "its group", "o": "everybody", "go": "everybody"}[bits]
    return Fault(path, f"may be written by {who}", f"chmod {bits}-w")


def _open_to(path: str, seen: os.stat_result) -> Iterator[str]:
    """The group's bit is the mask of a POSIX access control list, where there is one: what that
    allows to anybody shows in it (acl(5))."""
    if seen.st_mode & stat.S_IWGRP and (not private_group(seen) or _has_list(path)):
        yield "g"
    if seen.st_mode & stat.S_IWOTH:
        yield "o"


def _has_list(path: str) -> bool:
    with suppress(OSError):
        return bool(os.getxattr(path, "system.posix_acl_access"))
    return False


def _served(path: str, seen: os.stat_result, device: int, trusted: Collection[int]) -> Fault | None:
    """A FUSE mount shows the owners that its server makes up; who runs it is in its options."""
    if seen.st_dev == device:
        return None
    for uid in _mounted_by(seen.st_dev):
        if uid not in trusted:
            return Fault(path, f"is mounted by {visible(user_name(uid))}")
    return None


def _mounted_by(device: int) -> Iterator[int]:
    from sentinel.proc.mounts import mounts

    for mount in mounts().of_device(device):
        for option in mount.super_options:
            name, _, value = option.partition("=")
            if name == "user_id" and value.isdigit():
                yield int(value)


def _raise(error: OSError) -> None:
    raise error
