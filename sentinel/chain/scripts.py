"""The scripts of a cron directory: found, opened once, and believed only from those one trusts."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator

from msgspec import Struct

from sentinel.chain.script import Script, is_script, read_script
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.text import shortened, visible
from sentinel.trust import private_group, user_name

LARGEST = 2**20
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class BadBase(SentinelError):
    """The directory as a whole is not to be trusted, or not there."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


class Found(Struct, frozen=True, kw_only=True):
    """A file of a cron directory: a script with the text to submit, or why it is refused."""

    key: str
    path: str
    script: Script | None = None
    text: bytes = b""
    refused: str = ""


def find(base: str, trusted: Collection[int]) -> list[Found]:
    """Every script below `BASE/cron.*`, in order; `trusted` are the uids whose files may run.

    What is looked at is what is submitted: each file is opened once. Raises BadBase.
    """
    try:
        wrong = _distrust(os.stat(base), trusted)
        names = sorted(os.listdir(base))
    except OSError as error:
        raise BadBase(
            f"{visible(base)}: {error.strerror}; make it, with directories like cron.hourly in it"
        ) from error
    if wrong:
        raise BadBase(f"{visible(base)}: {wrong}; nothing of it is run")
    found: list[Found] = []
    for name in names:
        path = os.path.join(base, name)
        if name.startswith("cron.") and os.path.isdir(path):
            found += _directory(path, name, trusted)
    return found


def _directory(path: str, name: str, trusted: Collection[int]) -> Iterator[Found]:
    try:
        wrong = _distrust(os.stat(path), trusted) or _distrust_link(os.lstat(path), trusted)
        entries = sorted(os.listdir(path))
    except OSError as error:
        wrong = str(error.strerror)
    if wrong:
        yield Found(key=name, path=path, refused=f"the directory: {wrong}")
        return
    for entry in entries:
        if is_script(entry):
            try:
                found = _file(os.path.join(path, entry), f"{name}/{entry}", name, trusted)
            except OSError as error:
                found = Found(key=f"{name}/{entry}", path=path, refused=str(error.strerror))
            if found:
                yield found


def _file(path: str, key: str, directory: str, trusted: Collection[int]) -> Found | None:
    """None for what is no script at all (a README, a directory)."""
    link = os.lstat(path)
    fd = os.open(path, _OPEN)
    try:
        seen = os.fstat(fd)
        executable = bool(seen.st_mode & 0o111)
        if stat.S_ISDIR(seen.st_mode) or not (executable or path.endswith(".slurm")):
            return None
        wrong = "" if stat.S_ISREG(seen.st_mode) else "is no regular file"
        wrong = wrong or _distrust_file(seen, trusted) or _distrust_link(link, trusted)
        if wrong:
            return Found(key=key, path=path, refused=wrong)
        with open(fd, "rb", closefd=False) as file:  # one read(2) may give a part of it
            return _read(file.read(LARGEST), path, key, directory)
    finally:
        os.close(fd)


def _read(text: bytes, path: str, key: str, directory: str) -> Found:
    if not text.startswith(b"#!"):
        if path.endswith(".slurm"):
            return Found(key=key, path=path, refused="has no first line like #!/bin/bash")
        text = _wrapper(path)
    if len(text) == LARGEST:
        return Found(key=key, path=path, refused="is larger than 1 MiB")
    try:
        script = read_script(key, directory, text.decode("utf-8", "replace"))
    except Invalid as error:
        return Found(key=key, path=path, refused=shortened(str(error), 300))
    return Found(key=key, path=path, script=script, text=text)


def _wrapper(path: str) -> bytes:
    """For a program that is no script: Slurm takes only those."""
    import shlex

    return f"#!/bin/sh\nexec {shlex.quote(path)}\n".encode("utf-8", "surrogateescape")


def _distrust(seen: os.stat_result, trusted: Collection[int]) -> str:
    if seen.st_mode & 0o002:
        return "may be written by everybody (chmod o-w)"
    if seen.st_uid not in trusted:
        return f"belongs to {user_name(seen.st_uid)}, whom `trust` does not name"
    return ""


def _distrust_file(seen: os.stat_result, trusted: Collection[int]) -> str:
    """A directory may be shared with a group, a file not: its owner says nothing of its text."""
    if why := _distrust(seen, trusted):
        return why
    if seen.st_mode & 0o020 and not private_group(seen):
        return "may be written by its group (chmod g-w)"
    return ""


def _distrust_link(link: os.stat_result, trusted: Collection[int]) -> str:
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in trusted:
        return f"is a link of {user_name(link.st_uid)}, whom `trust` does not name"
    return ""
