"""With whose rights a file is opened. Standard library only: runs in children.

A file that a job names is opened with the rights of the job's user: wherever a link points, only
what that user may read comes back, and no later look at the path has to be right. NFS with
root_squash works for the same reason.

As root the child changes its effective user, group and supplementary groups, which also drops all
effective capabilities (capabilities(7)), and takes root's back afterwards. It keeps root as real and
saved user, so the user can neither stop nor trace it (kill(2), ptrace(2)).

Without root nobody can become another user. A file then has to belong to that user, judged by the
open file itself.
"""

import os
import pwd
import resource
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import NamedTuple

NOBODY_UID = 65534
"""A user who may read only what everybody may: the kernel's overflow uid and gid
(user_namespaces(7))."""

EVERYBODY = -1
"""Used in place of a uid if more than one user could change something."""

MAX_LINKS = 40
"""Links on one path: path_resolution(7)."""

_MAX_UID = 2**32 - 2
"""The next number means "leave it as it is" for setreuid(2)."""


class OpenDenied(Exception):
    """The file is not opened; the message says why."""


class UserIdentity(NamedTuple):
    """A user and the groups that the user database of this host gives to that user."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


class RightsRequest(NamedTuple):
    """Whose rights a file is opened with.

    user: name or uid of the user whose job names the file; empty where there is none.
    literal: the operator wrote the path out in the configuration.
    owned: the file has to belong to the user as well.
    """

    user: str
    literal: bool
    owned: bool


class FileRights(NamedTuple):
    """The answer to a Request. `identity` None: those that this process has. `owner`: the uid that
    the file has to belong to; None: anybody's."""

    identity: "UserIdentity | None"
    owner: "int | None"

    @property
    def become_name(self) -> str:
        """The user that the process has to become. Empty if it keeps its own rights."""
        return self.identity.name if self.identity else ""


@cache
def find_user(user: str) -> UserIdentity:
    """The user of that name, or of that uid if it is a number. Raises OpenDenied for an unknown
    name.

    A uid without a name has no groups: Slurm prints the number if a host does not know the user."""
    try:
        return _make_identity(pwd.getpwnam(user))
    except (KeyError, ValueError):
        if not (user.isascii() and user.isdigit() and int(user) <= _MAX_UID):
            raise OpenDenied(f"this host knows no user {user!r}") from None
        return find_uid(int(user))


@cache
def find_uid(uid: int) -> UserIdentity:
    """The user of that number, whoever has a name of the same digits."""
    try:
        return _make_identity(pwd.getpwuid(uid))
    except KeyError:
        return UserIdentity(str(uid), uid, NOBODY_UID, ())


def _make_identity(row: pwd.struct_passwd) -> UserIdentity:
    groups = os.getgrouplist(row.pw_name, row.pw_gid)
    return UserIdentity(row.pw_name, row.pw_uid, row.pw_gid, tuple(groups))


def decide_rights(request: RightsRequest, path: str) -> FileRights:
    """Decide with whose rights that path is opened. Raises OpenDenied or OSError.

    A literal path was chosen by the operator. That says that the file may be read, but not what a
    link in the path may lead to later. So the rights of this process are used only if nobody but
    root and this process could change where the path leads: a log in root's own folder is read as
    root, whoever owns the file. Any other path is opened with the rights of the job's user, who
    will see the alert. Without a job, the rights of the user who could change the path are used; if
    several could, those of nobody. So an operator who watches a file in a shared folder has to name
    the job."""
    if request.literal:
        return _literal_path_rights(request, path)
    user = find_user(request.user)
    owner = user.uid if request.owned else None
    if os.geteuid() == 0:
        return FileRights(user if user.uid else None, owner)
    return FileRights(None, owner if user.uid == os.geteuid() else user.uid)


def _literal_path_rights(request: RightsRequest, path: str) -> FileRights:
    me = os.geteuid()
    if me and not request.user:
        return FileRights(
            None, None
        )  # the user who started sentinel chose the file and may read it
    changer = changer_of(path, {0, me})
    if changer is None:
        return FileRights(None, None)
    user = find_user(request.user) if request.user else None
    if me:
        return FileRights(None, user.uid if user and user.uid != me else None)
    if user is None or user.uid == 0:
        user = find_uid(NOBODY_UID if changer == EVERYBODY else changer)
    return FileRights(user, None)


@contextmanager
def acting_as(identity: "UserIdentity | None") -> Iterator[None]:
    """Have that user's rights until the end of the block. Raises OpenDenied."""
    if identity is None or os.geteuid() != 0:
        yield
        return
    try:
        _change_ids(identity, os.setegid, os.seteuid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(())


def become_user(identity: "UserIdentity | None") -> None:
    """Have that user's rights from now on, for good. Raises OpenDenied."""
    if identity is not None and os.geteuid() == 0:
        _change_ids(
            identity,
            lambda gid: os.setresgid(gid, gid, gid),
            lambda uid: os.setresuid(uid, uid, uid),
        )


def prepare_process() -> None:
    """Prepare the process before it opens the first file with another user's rights.

    Leave every folder that a link could reach by /proc/self/cwd, past what keeps users out. Load no
    more modules: the user may not be able to read them, or may have put one there. Write no core
    file, which would hold what was read."""
    os.chdir("/")
    sys.path.clear()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _change_ids(
    to: UserIdentity, set_group: Callable[[int], None], set_user: Callable[[int], None]
) -> None:
    try:
        os.setgroups(to.groups)
        set_group(to.gid)
        set_user(to.uid)
    except OSError as error:
        raise OpenDenied(f"root may not become another user here: {error.strerror}") from None
    if os.geteuid() != to.uid or _has_capabilities():
        raise OpenDenied("root keeps its rights here when it becomes another user")


def _has_capabilities() -> bool:
    """Whether this process has capabilities. With SECBIT_NO_SETUID_FIXUP it keeps them even as
    another user."""
    # text mode would load a module with the user's rights
    with open("/proc/self/status", "rb") as file:
        effective = next((line.split()[1] for line in file if line.startswith(b"CapEff:")), b"1")
    return int(effective, 16) != 0


def open_regular(path: str, owner: "int | None") -> tuple[int, os.stat_result]:
    """A descriptor to read a regular file, and its stat result. Raises OpenDenied or OSError.

    The path is followed once. What is found is checked first and then opened: opening a device can
    have effects (/dev/watchdog reboots the host), and opening a pipe waits."""
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        seen = os.fstat(found)
        if not stat.S_ISREG(seen.st_mode):
            raise OpenDenied(f"it is {describe_kind(seen)}, not a regular file")
        refuse_foreign(seen, owner)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(f"/proc/self/fd/{found}", flags), seen
    finally:
        os.close(found)


def open_folder(path: str, owner: "int | None") -> int:
    """A descriptor to list a folder, links followed. Raises OpenDenied or OSError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        refuse_foreign(os.fstat(descriptor), owner)
    except OpenDenied:
        os.close(descriptor)
        raise
    return descriptor


def refuse_foreign(seen: os.stat_result, owner: "int | None") -> None:
    """Raise OpenDenied if the file has to belong to that uid and does not."""
    if owner is not None and seen.st_uid != owner:
        raise OpenDenied(f"it belongs to {user_name(seen.st_uid)}, not to {user_name(owner)}")


def describe_kind(seen: os.stat_result) -> str:
    """The kind of file in words, with its article."""
    names = (
        (stat.S_ISREG, "a regular file"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a fifo"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
    )
    return next((name for test, name in names if test(seen.st_mode)), "no file")


_names: dict[int, str] = {}


def user_name(uid: int) -> str:
    """The name of the uid, or its number if this host has no name for it."""
    if uid not in _names:
        try:
            _names[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            _names[uid] = str(uid)
    return _names[uid]


def changer_of(path: str, trusted: Collection[int]) -> "int | None":
    """The uid of the first user, other than the trusted ones, who could change where the path
    leads; None if nobody could. Raises OSError if something on the path cannot be looked at.

    Only the path counts, not the file at its end: the owner of the file cannot put another file
    there. The rules are those of `sentinel.trust.find_path_fault`."""
    place, links = "/", 0
    steps = _path_steps(path)
    while steps:
        step = steps.pop(0)
        if step == "..":
            place = os.path.dirname(place)
            continue
        folder, entry = os.stat(place), os.path.join(place, step)
        if (changer := _changer_of_entry(place, folder, entry, trusted)) is not None:
            return changer
        seen = os.lstat(entry)
        if not stat.S_ISLNK(seen.st_mode):
            place = entry
            continue
        links += 1
        if links > MAX_LINKS:
            raise OpenDenied("Too many levels of symbolic links")
        target = os.readlink(entry)
        place = "/" if target.startswith("/") else place
        steps = _path_steps(target) + steps
    return _changer_of_place(place, os.stat(place), trusted)


def _changer_of_entry(
    place: str, folder: os.stat_result, entry: str, trusted: Collection[int]
) -> "int | None":
    """The user who could put another file at this entry; None if nobody could. In a sticky folder
    only the entry's owner can."""
    if (changer := _changer_of_place(place, folder, trusted)) is not None:
        return changer
    if not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return None
    if not folder.st_mode & stat.S_ISVTX:
        return EVERYBODY
    owner = os.lstat(entry).st_uid
    return None if owner in trusted else owner


def _changer_of_place(place: str, seen: os.stat_result, trusted: Collection[int]) -> "int | None":
    """The owner of the folder if not trusted, or the user who serves it if it is a user's own
    mount; None for others."""
    if not stat.S_ISDIR(seen.st_mode):
        return None
    if seen.st_uid not in trusted:
        return seen.st_uid
    server = _mounted_by(seen.st_dev)
    return None if server is None or server in trusted else server


def _mounted_by(device: int) -> "int | None":
    """The user who runs the FUSE server of that device, which can invent the owners of files; None
    if it is no FUSE mount."""
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as table:
        # other control characters may be part of the names, which the user chose
        for line in table.read().split(b"\n"):
            fields = line.split(b" ")
            if len(fields) < 3 or fields[2] != number:
                continue
            for option in fields[-1].split(b","):
                name, _, value = option.partition(b"=")
                if name == b"user_id" and value.isdigit():
                    return int(value)
    return None


def _path_steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]
