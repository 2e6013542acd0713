"""Finds out who could change a file. A file that sentinel finds and then runs, or that names
commands, must belong to root or the caller, and so must all directories above it.

Whoever may write to a directory can rename and replace its entries. In a sticky directory only the
owner of an entry (and of the directory) can do so: rename(2), inode(7).
"""

import errno
import grp
import os
import pwd
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from msgspec import Struct

from sentinel.core.errors import SentinelError
from sentinel.core.guidance import quote_command
from sentinel.core.text import visible
from sentinel.homes import get_user_name
from sentinel.proc.mounts import read_mounts

MAX_LINKS = 40
"""Links on one way: path_resolution(7)."""

FIRST_USER_UID = 1000
"""Accounts of the system have smaller ones: UID_MIN of login.defs(5)."""

_LOOK_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class UntrustedFile(SentinelError):
    """It is there, and others could change it: it is not used."""

    exit_code = 78
    """EX_CONFIG of sysexits(3)."""


class TrustFault(Struct, frozen=True):
    """What is wrong on the way: `path` itself, why, and the command that mends it, if one does.

    `gid`: the group that may write, if nobody else may.
    """

    path: str
    why: str
    remedy: str = ""
    gid: int | None = None

    @property
    def text(self) -> str:
        """All of it for people, in one line."""
        return f"{visible(self.path)} {self.why}{f' ({self.mend})' if self.mend else ''}"

    @property
    def mend(self) -> str:
        """The command that mends it, for a shell."""
        return quote_command(*self.remedy.split(), self.path) if self.remedy else ""


class SiteTrust(Struct, frozen=True):
    """Whom `trust` and `trust_groups` of the configuration name, besides root and the caller."""

    uids: frozenset[int] = frozenset()
    gids: frozenset[int] = frozenset()


_site = SiteTrust()


def set_site_trust(site: SiteTrust) -> None:
    """Take these users and groups from the configuration that this process uses."""
    global _site
    _site = site


def get_site_trust() -> SiteTrust:
    """Whom `set_site_trust` took last."""
    return _site


def find_site_trust(users: Iterable[str], groups: Iterable[str]) -> SiteTrust:
    """These users and groups, without names that this host does not know."""
    uids, gids = map(find_user_id, users), map(find_group_id, groups)
    return SiteTrust(
        frozenset(uid for uid in uids if uid is not None),
        frozenset(gid for gid in gids if gid is not None),
    )


def get_trusted_uids() -> frozenset[int]:
    """The uids that may change what this process runs: root, the user of the process, and whom the
    configuration names; the owner of `/` is in root's place in a user namespace
    (user_namespaces(7))."""
    return frozenset({0, os.geteuid(), os.stat("/").st_uid}) | _site.uids


def get_trusted_gids() -> frozenset[int]:
    """The groups that may do so by the configuration."""
    return _site.gids


def find_user_id(name: str) -> int | None:
    """The id of the user with this name; None if this host knows no such user."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def find_group_id(name: str) -> int | None:
    """The id of the group with this name; None if this host knows no such group."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def describe_trusted_users() -> str:
    """The trusted users, for people."""
    return " and ".join(get_user_name(uid) for uid in sorted(get_trusted_uids()))


def find_path_fault(
    path: str, trusted: Collection[int], groups: Collection[int] = ()
) -> TrustFault | None:
    """Why users other than the `trusted` uids and the members of `groups` could change the content
    of `path`, including links and all directories above. None if nobody could. Raises OSError if
    something cannot be examined.

    If it is None, the caller may open the path: nobody can replace the file in between.
    """
    with ExitStack() as held:
        return next(
            (fault for _, _, fault in _walk_way(path, trusted, groups, held) if fault), None
        )


class Opened(Struct, frozen=True):
    """A file or directory that is open. `place`: its path without links. `faults`: all that is
    wrong on the way to it, the outermost first."""

    fd: int
    place: str
    faults: tuple[TrustFault, ...]


@contextmanager
def open_judged(
    path: str, trusted: Collection[int], groups: Collection[int] = (), flags: int = os.O_RDONLY
) -> Iterator[Opened]:
    """Open the file or directory at `path` together with what `find_path_fault` says of this very
    file. Raises OSError.

    Each step is opened from the one before it, so nobody can put another file there in between,
    even where a fault is only warned of.
    """
    with ExitStack() as held:
        way = list(_walk_way(path, trusted, groups, held))
        faults = dict.fromkeys(step.fault for step in way if step.fault)
        fd = os.open(f"/proc/self/fd/{way[-1].fd}", flags | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        yield Opened(fd, way[-1].place, tuple(faults))
    finally:
        os.close(fd)


class _Step(NamedTuple):
    """A descriptor without rights, its path without links, and what is wrong there."""

    fd: int
    place: str
    fault: TrustFault | None


def _walk_way(
    path: str, trusted: Collection[int], groups: Collection[int], held: ExitStack
) -> Iterator[_Step]:
    """Each step of the way from `/`, and a fault. The last one is the end of the way."""
    judge, at = _Judge(trusted, groups), _open_step("/", None, held)
    place, device, links = "/", os.fstat(at).st_dev, 0
    steps = _split_path_steps(os.path.join(os.getcwd(), path))
    while steps:
        step = steps.pop(0)
        if step == "..":
            place, at = os.path.dirname(place), _open_step(step, at, held)
            continue
        entry = os.path.join(place, step)
        try:
            found = _open_step(step, at, held)
        except FileNotFoundError:
            yield _Step(at, place, judge.find_write_fault(place, at, missing=True))
            raise
        seen = os.fstat(found)
        yield _Step(at, place, judge.find_write_fault(place, at, entry=True))
        yield _Step(at, place, judge.find_owner_fault(entry, seen))
        yield _Step(at, place, judge.find_mount_fault(entry, seen, device))
        if not stat.S_ISLNK(seen.st_mode):
            place, device, at = entry, seen.st_dev, found
            continue
        links += 1
        if links > MAX_LINKS:
            yield _Step(at, place, TrustFault(entry, "is a link without an end"))
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink("", dir_fd=found)
        if target.startswith("/"):
            place, at = "/", _open_step("/", None, held)
        steps = _split_path_steps(target) + steps
    yield _Step(at, place, judge.find_write_fault(place, at))


def _open_step(step: str, folder: int | None, held: ExitStack) -> int:
    """Look at one entry, without rights, until `held` is closed. A directory that is mounted on
    demand is mounted: O_PATH alone does not do it (open(2))."""
    try:
        fd = os.open(step, _LOOK_FLAGS | os.O_DIRECTORY, dir_fd=folder)
    except NotADirectoryError:
        fd = os.open(step, _LOOK_FLAGS, dir_fd=folder)
    held.callback(os.close, fd)
    return fd


def find_site_fault(path: str) -> TrustFault | None:
    """`find_path_fault` with whom this process trusts. Of a path that does not exist yet, the
    nearest folder above counts. Raises OSError."""
    path = os.path.join(os.getcwd(), path)
    while True:
        try:
            return find_path_fault(path, get_trusted_uids(), get_trusted_gids())
        except FileNotFoundError:
            if os.path.lexists(path):
                raise
            path = os.path.dirname(path)


def find_program_path(name: str) -> str:
    """The file that a command of this name starts, as execvp(3) finds it; empty if there is none.

    shutil.which does the same, and imports what takes longer than a short command.
    """
    folders = ("",) if "/" in name else os.get_exec_path()
    paths = (os.path.join(folder, name) for folder in folders)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), "")


def list_program_paths(command: Sequence[str]) -> list[str]:
    """The program that the command starts, and what it names by absolute path and could start."""
    named = [word for word in command[1:] if os.path.isabs(word) and os.access(word, os.X_OK)]
    return [*filter(None, [find_program_path(command[0])]), *filter(os.path.isfile, named)]


def require_trusted_program(name: str) -> None:
    """Raise UntrustedFile if root is about to run a program that a user could have written. What a
    group may write is only warned of, until the next release. Raises nothing for a program that
    cannot be examined: it does not start."""
    path = find_program_path(name) if os.geteuid() == 0 else ""
    with suppress(OSError):
        fault = find_site_fault(path) if path else None
        if fault and fault.gid is None:
            raise UntrustedFile(
                f"{visible(name)} is not run by root: {fault.text}; `trust` in the configuration "
                "names further users who may"
            )


def is_service_group(gid: int) -> bool:
    """Whether the group is that of one account of the system, such as a daemon, and of nobody else."""
    try:
        group = grp.getgrgid(gid)
        user = pwd.getpwnam(group.gr_name)
    except KeyError:
        return False
    return 0 < user.pw_uid < FIRST_USER_UID and user.pw_gid == gid and not group.gr_mem


def is_of_writing_group(uid: int, folder: os.stat_result) -> bool:
    """Whether this user may write the folder as a member of its group, and nobody outside of it may."""
    with suppress(KeyError):
        user = pwd.getpwuid(uid)
        member = folder.st_gid in os.getgrouplist(user.pw_name, user.pw_gid)
        return member and folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH) == stat.S_IWGRP
    return False


def find_tree_fault(
    folder: str, trusted: Collection[int], groups: Collection[int] = ()
) -> TrustFault | None:
    """The same for a file, or a directory and all that lies in it: code may come from any of it."""
    found, judge = find_path_fault(folder, trusted, groups), _Judge(trusted, groups)
    for place, folders, files in (
        os.walk(folder, onerror=_raise_walk_error) if os.path.isdir(folder) else ()
    ):
        for name in (*folders, *files):
            if found:
                return found
            path = os.path.join(place, name)
            with ExitStack() as held:
                entry = _open_step(path, None, held)
                found = (
                    find_path_fault(path, trusted, groups)
                    if stat.S_ISLNK(os.fstat(entry).st_mode)
                    else judge.find_write_fault(path, entry)
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
    """Whether the bits let anybody but that owner, and whom this process trusts, write it."""
    known = gid in get_trusted_gids() or _is_group_private(uid, gid)
    group = bool(mode & stat.S_IWGRP) and not known
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
    return quote_command(*words, "sentinel", *sys.argv[1:], *options)


def _split_path_steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


class _Judge(Struct, frozen=True):
    """Judges one step of a way. `trusted`: uids. `groups`: those whose members are trusted too."""

    trusted: Collection[int]
    groups: Collection[int] = ()

    def find_owner_fault(self, path: str, seen: os.stat_result) -> TrustFault | None:
        """Whose it is, if not a trusted user's."""
        if seen.st_uid in self.trusted:
            return None
        return TrustFault(path, f"belongs to {visible(get_user_name(seen.st_uid))}")

    def find_write_fault(
        self, path: str, fd: int, *, entry: bool = False, missing: bool = False
    ) -> TrustFault | None:
        """Why others could change the open file, or put something into the directory. With `entry`
        one entry of it is meant, which is there: in a sticky directory that is its owner's alone."""
        seen = os.fstat(fd)
        if found := self.find_owner_fault(path, seen):
            return found
        bits = "".join(self._list_other_writers(fd, seen))
        if not bits or (entry and seen.st_mode & stat.S_ISVTX):
            return None
        if missing and seen.st_mode & stat.S_ISVTX:
            return TrustFault(path, "lets everybody put files there")
        who = {"g": "its group", "o": "everybody", "go": "everybody"}[bits]
        gid = seen.st_gid if bits == "g" else None
        return TrustFault(path, f"may be written by {who}", f"chmod {bits}-w", gid)

    def _list_other_writers(self, fd: int, seen: os.stat_result) -> Iterator[str]:
        """`g` if the group may write, `o` if everybody may.

        If the file has a POSIX access control list, the group's bit is the mask of that list.
        Without the bit, no group and no named user can write. With it, the bit counts even if the
        group is private (acl(5)).
        """
        if seen.st_mode & stat.S_IWGRP:
            known = seen.st_gid in self.groups or is_private_group(seen)
            if not known or _has_acl(f"/proc/self/fd/{fd}"):
                yield "g"
        if seen.st_mode & stat.S_IWOTH:
            yield "o"

    def find_mount_fault(self, path: str, seen: os.stat_result, device: int) -> TrustFault | None:
        """A FUSE mount shows the owners that its server makes up; who runs it is in its options."""
        if seen.st_dev == device:
            return None
        for uid in _list_mount_users(seen.st_dev):
            if uid not in self.trusted:
                return TrustFault(path, f"is mounted by {visible(get_user_name(uid))}")
        return None


def _has_acl(path: str) -> bool:
    with suppress(OSError):
        return bool(os.getxattr(path, "system.posix_acl_access"))
    return False


def _list_mount_users(device: int) -> Iterator[int]:
    for mount in read_mounts().list_device_mounts(device):
        for option in mount.super_options:
            name, _, value = option.partition("=")
            if name == "user_id" and value.isdigit():
                yield int(value)


def _raise_walk_error(error: OSError) -> None:
    raise error
