"""Finds out who could change a file. A file that sentinel finds and then runs, or that names
commands, must belong to root or the caller, and so must all directories above it.

Whoever may write to a directory can rename and replace its entries. In a sticky directory only the
owner of an entry (and of the directory) can do so: rename(2), inode(7).
"""

import grp
import os
import pwd
import shlex
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress

from msgspec import Struct

from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.proc.mounts import read_mounts

MAX_LINKS = 40
"""Links on one way: path_resolution(7)."""


class UntrustedFile(SentinelError):
    """It is there, and others could change it: it is not used."""

    exit_code = 78
    """EX_CONFIG of sysexits(3)."""


class TrustFault(Struct, frozen=True):
    """What is wrong on the way: `path` itself, why, and the command that mends it, if one does."""

    path: str
    why: str
    remedy: str = ""


def get_trusted_uids() -> frozenset[int]:
    """The uids that may change what this process runs: root, and the user of the process."""
    return frozenset({0, os.geteuid()})


def describe_trusted_users() -> str:
    """The same for people."""
    return " and ".join(get_user_name(uid) for uid in sorted(get_trusted_uids()))


def find_path_fault(path: str, trusted: Collection[int]) -> TrustFault | None:
    """Why users other than the `trusted` uids could change the content of `path`, including links
    and all directories above. None if nobody could. Raises OSError if something cannot be examined.

    If it is None, the caller may open the path: nobody can replace the file in between.
    """
    place, device, links = "/", os.stat("/").st_dev, 0
    steps = _split_path_steps(os.path.join(os.getcwd(), path))
    while steps:
        step = steps.pop(0)
        if step == "..":
            place = os.path.dirname(place)
            continue
        entry = os.path.join(place, step)
        if wrong := _find_write_fault(place, os.stat(place), entry, trusted):
            return wrong
        seen = os.lstat(entry)
        if wrong := _find_owner_fault(entry, seen, trusted) or _find_mount_fault(
            entry, seen, device, trusted
        ):
            return wrong
        if not stat.S_ISLNK(seen.st_mode):
            place, device = entry, seen.st_dev
            continue
        links += 1
        if links > MAX_LINKS:
            return TrustFault(entry, "is a link without an end")
        target = os.readlink(entry)
        place = "/" if target.startswith("/") else place
        steps = _split_path_steps(target) + steps
    return _find_write_fault(place, os.stat(place), "", trusted)


def find_tree_fault(folder: str, trusted: Collection[int]) -> TrustFault | None:
    """The same for a file, or a directory and all that lies in it: code may come from any of it."""
    found = find_path_fault(folder, trusted)
    for place, folders, files in (
        os.walk(folder, onerror=_raise_walk_error) if os.path.isdir(folder) else ()
    ):
        for name in (*folders, *files):
            if found:
                return found
            path = os.path.join(place, name)
            seen = os.lstat(path)
            if stat.S_ISLNK(seen.st_mode):
                found = find_path_fault(path, trusted)
            else:
                found = _find_owner_fault(path, seen, trusted) or _find_write_fault(
                    path, seen, "", trusted
                )
    return found


def is_private_group(seen: os.stat_result) -> bool:
    """Whether the file's group is its owner's alone, which makes group-writable harmless.

    Where every user has such a group the usual umask is 002: useradd(8), USERGROUPS_ENAB of
    login.defs(5), pam_umask(8). Never so for root: no umask gives its files away, and on some
    systems others are in its group. An access control list may name more: then it is not alone.
    """
    return _is_group_private(seen.st_uid, seen.st_gid)


def lets_others_write(mode: int, uid: int, gid: int) -> bool:
    """Whether the bits let anybody but that owner write it."""
    group = bool(mode & stat.S_IWGRP) and not _is_group_private(uid, gid)
    return group or bool(mode & stat.S_IWOTH)


def _is_group_private(uid: int, gid: int) -> bool:
    if uid == 0:
        return False
    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    own = user.pw_gid == gid and group.gr_name == user.pw_name
    if not own or not set(group.gr_mem) <= {user.pw_name}:
        return False
    return all(u.pw_gid != gid or u.pw_uid == uid for u in pwd.getpwall())


def format_sudo_command(uid: int, *options: str) -> str:
    """This very command, as that user would have to type it."""
    state = os.environ.get("XDG_STATE_HOME")
    words = ["sudo"] if uid == 0 else ["sudo", "-H", "-u", get_user_name(uid)]
    words += ["env", f"XDG_STATE_HOME={state}"] if state and not options else []
    return visible(shlex.join([*words, "sentinel", *sys.argv[1:], *options]))


def get_user_name(uid: int) -> str:
    """What the uid is called, for people."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _split_path_steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _find_owner_fault(
    path: str, seen: os.stat_result, trusted: Collection[int]
) -> TrustFault | None:
    if seen.st_uid in trusted:
        return None
    return TrustFault(path, f"belongs to {visible(get_user_name(seen.st_uid))}")


def _find_write_fault(
    path: str, seen: os.stat_result, entry: str, trusted: Collection[int]
) -> TrustFault | None:
    """Why others could change an entry of this directory. `entry` is its name. In a sticky
    directory it must exist already."""
    if found := _find_owner_fault(path, seen, trusted):
        return found
    bits = "".join(_list_other_writers(path, seen))
    if not bits:
        return None
    if entry and seen.st_mode & stat.S_ISVTX:
        return (
            None if os.path.lexists(entry) else TrustFault(path, "lets everybody put files there")
        )
    who = {"g": "its group", "o": "everybody", "go": "everybody"}[bits]
    return TrustFault(path, f"may be written by {who}", f"chmod {bits}-w")


def _list_other_writers(path: str, seen: os.stat_result) -> Iterator[str]:
    """`g` if the group may write, `o` if everybody may.

    If the file has a POSIX access control list, the group's bit is the mask of that list. Without
    the bit, no group and no named user can write. With it, the bit counts even if the group is
    private (acl(5)).
    """
    if seen.st_mode & stat.S_IWGRP and (not is_private_group(seen) or _has_acl(path)):
        yield "g"
    if seen.st_mode & stat.S_IWOTH:
        yield "o"


def _has_acl(path: str) -> bool:
    with suppress(OSError):
        return bool(os.getxattr(path, "system.posix_acl_access"))
    return False


def _find_mount_fault(
    path: str, seen: os.stat_result, device: int, trusted: Collection[int]
) -> TrustFault | None:
    """A FUSE mount shows the owners that its server makes up; who runs it is in its options."""
    if seen.st_dev == device:
        return None
    for uid in _list_mount_users(seen.st_dev):
        if uid not in trusted:
            return TrustFault(path, f"is mounted by {visible(get_user_name(uid))}")
    return None


def _list_mount_users(device: int) -> Iterator[int]:
    for mount in read_mounts().list_device_mounts(device):
        for option in mount.super_options:
            name, _, value = option.partition("=")
            if name == "user_id" and value.isdigit():
                yield int(value)


def _raise_walk_error(error: OSError) -> None:
    raise error
