"""The scripts of a cron directory: found, opened once, and believed only from those one trusts."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator

from msgspec import Struct

from sentinel.chain.script import CronScript, is_script, read_script
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.text import shortened, visible
from sentinel.trust import get_user_name, is_private_group

MAX_SCRIPT_BYTES = 2**20
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class BadCronDirectory(SentinelError):
    """The directory as a whole is not to be trusted, or not there."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


class FoundScript(Struct, frozen=True, kw_only=True):
    """A file of a cron directory: a script with the text to submit, or why it is refused."""

    key: str
    path: str
    script: CronScript | None = None
    text: bytes = b""
    refused: str = ""


def find_scripts(base: str, trusted: Collection[int]) -> list[FoundScript]:
    """Every script below `BASE/cron.*`, in order; `trusted` are the uids whose files may run.

    What is looked at is what is submitted: each file is opened once. Raises BadCronDirectory.
    """
    try:
        wrong = _distrust_place(os.stat(base), trusted)
        names = sorted(os.listdir(base))
    except OSError as error:
        raise BadCronDirectory(
            f"{visible(base)}: {error.strerror}; make it, with directories like cron.hourly in it"
        ) from error
    if wrong:
        raise BadCronDirectory(f"{visible(base)}: {wrong}; nothing of it is run")
    found: list[FoundScript] = []
    for name in names:
        path = os.path.join(base, name)
        if name.startswith("cron.") and os.path.isdir(path):
            found += _scan_directory(path, name, trusted)
    return found


def _scan_directory(path: str, name: str, trusted: Collection[int]) -> Iterator[FoundScript]:
    try:
        wrong = _distrust_place(os.stat(path), trusted) or _distrust_link(os.lstat(path), trusted)
        entries = sorted(os.listdir(path))
    except OSError as error:
        wrong = str(error.strerror)
    if wrong:
        yield FoundScript(key=name, path=path, refused=f"the directory: {wrong}")
        return
    for entry in entries:
        if is_script(entry):
            try:
                found = _look_at_file(os.path.join(path, entry), f"{name}/{entry}", name, trusted)
            except OSError as error:
                found = FoundScript(key=f"{name}/{entry}", path=path, refused=str(error.strerror))
            if found:
                yield found


def _look_at_file(
    path: str, key: str, directory: str, trusted: Collection[int]
) -> FoundScript | None:
    """None for what is no script at all (a README, a directory)."""
    link = os.lstat(path)
    fd = os.open(path, _OPEN_FLAGS)
    try:
        seen = os.fstat(fd)
        executable = bool(seen.st_mode & 0o111)
        if stat.S_ISDIR(seen.st_mode) or not (executable or path.endswith(".slurm")):
            return None
        wrong = "" if stat.S_ISREG(seen.st_mode) else "is no regular file"
        wrong = wrong or _distrust_file(seen, trusted) or _distrust_link(link, trusted)
        if wrong:
            return FoundScript(key=key, path=path, refused=wrong)
        with open(fd, "rb", closefd=False) as file:  # one read(2) may give a part of it
            return _parse_script(file.read(MAX_SCRIPT_BYTES), path, key, directory)
    finally:
        os.close(fd)


def _parse_script(text: bytes, path: str, key: str, directory: str) -> FoundScript:
    if not text.startswith(b"#!"):
        if path.endswith(".slurm"):
            return FoundScript(key=key, path=path, refused="has no first line like #!/bin/bash")
        text = _program_wrapper(path)
    if len(text) == MAX_SCRIPT_BYTES:
        return FoundScript(key=key, path=path, refused="is larger than 1 MiB")
    try:
        script = read_script(key, directory, text.decode("utf-8", "replace"))
    except Invalid as error:
        return FoundScript(key=key, path=path, refused=shortened(str(error), 300))
    return FoundScript(key=key, path=path, script=script, text=text)


def _program_wrapper(path: str) -> bytes:
    """For a program that is no script: Slurm takes only those."""
    import shlex

    return f"#!/bin/sh\nexec {shlex.quote(path)}\n".encode("utf-8", "surrogateescape")


def _distrust_place(seen: os.stat_result, trusted: Collection[int]) -> str:
    if seen.st_mode & 0o002:
        return "may be written by everybody (chmod o-w)"
    if seen.st_uid not in trusted:
        return f"belongs to {get_user_name(seen.st_uid)}, whom `trust` does not name"
    return ""


def _distrust_file(seen: os.stat_result, trusted: Collection[int]) -> str:
    """A directory may be shared with a group, a file not: its owner says nothing of its text."""
    if why := _distrust_place(seen, trusted):
        return why
    if seen.st_mode & 0o020 and not is_private_group(seen):
        return "may be written by its group (chmod g-w)"
    return ""


def _distrust_link(link: os.stat_result, trusted: Collection[int]) -> str:
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in trusted:
        return f"is a link of {get_user_name(link.st_uid)}, whom `trust` does not name"
    return ""
