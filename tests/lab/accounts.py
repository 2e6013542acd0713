"""Throw-away ordinary users and groups of this machine."""

import fcntl
import pwd
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.lab.paths import BASE

UIDS = range(20_000, 60_000)
"""Above those that useradd(8) gives by itself, up to its UID_MAX."""


class User(NamedTuple):
    """An ordinary user; `name` is unique on the machine, not what the test asked for."""

    name: str
    uid: int
    gid: int
    home: Path


def add_user(
    name: str, home: Path, group: str | None, groups: Sequence[str], *, made: bool = True
) -> User:
    """Make the user and (`made`) its home; `group` is the primary one, by default one of its own.

    The lab's number is its own while it runs: a user of that name is what a killed one left.
    """
    remove_user(name)
    own = ["--gid", group] if group else ["--user-group"]
    more = ["--groups", ",".join(groups)] if groups else []
    create = "--create-home" if made else "--no-create-home"
    argv = ["useradd", "--uid", str(_new_uid()), create, "--home-dir", str(home)]
    _change([*argv, "--shell", "/bin/bash", *own, *more, name])
    entry = pwd.getpwnam(name)
    return User(name, entry.pw_uid, entry.pw_gid, home)


def add_group(name: str) -> None:
    _change(["groupadd", "--force", name])


def remove_user(name: str) -> None:
    """Remove the user if there is one; its home goes with the lab's folder."""
    _change(["userdel", "--force", name], check=False)


def remove_group(name: str) -> None:
    _change(["groupdel", name], check=False)


def _new_uid() -> int:
    """One that no user before has had: a process of a user who was removed may still be ending, and
    belongs to whoever gets that number next (usermod: "currently used by process")."""
    with _one_at_a_time():
        file = BASE / "last-uid"
        last = int(file.read_text()) if file.exists() else UIDS.start
        known = {entry.pw_uid for entry in pwd.getpwall()}
        every = (*range(last + 1, UIDS.stop), *UIDS)
        uid: int = next(number for number in every if number not in known)
        file.write_text(str(uid))
        return uid


def _change(argv: Sequence[str], *, check: bool = True) -> None:
    """One at a time: useradd does not wait for the lock on /etc/passwd, it fails."""
    with _one_at_a_time():
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    BASE.mkdir(parents=True, exist_ok=True)
    with (BASE / "accounts.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
