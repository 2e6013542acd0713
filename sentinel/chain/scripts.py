"""Finds the scripts of a cron directory. Each is opened once. Only scripts of trusted owners are
used."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Collection, Iterator

from msgspec import Struct

from sentinel.chain.script import CronScript, is_script, read_script
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.text import shortened, visible
from sentinel.trust import find_path_fault, get_user_name, is_private_group

MAX_SCRIPT_BYTES = 2**20
_SHARED_PROGRAM = (
    "is a program in a directory that a group may write: another could take its place before it runs "
    "(chmod g-w, or call it from a script elsewhere)"
)
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class BadCronDirectory(SentinelError):
    """The directory does not exist, or is not trusted."""

    exit_code = 66
    """EX_NOINPUT of sysexits(3)."""


class FoundScript(Struct, frozen=True, kw_only=True):
    """A script that was found in a cron directory, with the text to submit. If it is refused,
    `refused` says why."""

    key: str
    path: str
    script: CronScript | None = None
    text: bytes = b""
    refused: str = ""
    # A program is read again when its job starts, so the content checked here may differ.
    is_program: bool = False


def find_scripts(base: str, trusted: Collection[int]) -> list[FoundScript]:
    """Every script below `BASE/cron.*`, in order. `trusted` are the uids whose files may run.

    Each file is opened once, so the text that was checked is the text that is submitted. Raises
    BadCronDirectory.
    """
    try:
        wrong = _distrust_place(os.stat(base), trusted) or _distrust_way_of_root(base, trusted)
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
        seen = os.stat(path)
        wrong = _distrust_place(seen, trusted) or _distrust_link(os.lstat(path), trusted)
        shared = _is_group_writable(seen) or _is_group_writable(os.stat(os.path.dirname(path)))
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
                if shared and found and found.is_program:
                    found = FoundScript(key=found.key, path=found.path, refused=_SHARED_PROGRAM)
            except OSError as error:
                found = FoundScript(key=f"{name}/{entry}", path=path, refused=str(error.strerror))
            if found:
                yield found


def _look_at_file(
    path: str, key: str, directory: str, trusted: Collection[int]
) -> FoundScript | None:
    """The script in this file. None if the file is no script (a README, a directory)."""
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
        with open(fd, "rb", closefd=False) as file:  # one read(2) may return only a part
            return _parse_script(file.read(MAX_SCRIPT_BYTES), path, key, directory)
    finally:
        os.close(fd)


def _parse_script(text: bytes, path: str, key: str, directory: str) -> FoundScript:
    is_program = not text.startswith(b"#!")
    if is_program:
        if path.endswith(".slurm"):
            return FoundScript(key=key, path=path, refused="has no first line like #!/bin/bash")
        text = _program_wrapper(path)
    if len(text) == MAX_SCRIPT_BYTES:
        return FoundScript(key=key, path=path, refused="is larger than 1 MiB")
    try:
        script = read_script(key, directory, text.decode("utf-8", "replace"))
    except Invalid as error:
        return FoundScript(key=key, path=path, refused=shortened(str(error), 300))
    return FoundScript(key=key, path=path, script=script, text=text, is_program=is_program)


def _program_wrapper(path: str) -> bytes:
    """A script that calls a program. Slurm accepts only scripts."""
    return f"#!/bin/sh\nexec {shlex.quote(path)}\n".encode("utf-8", "surrogateescape")


def _distrust_place(seen: os.stat_result, trusted: Collection[int]) -> str:
    if seen.st_mode & 0o002:
        return "everybody may write to it (chmod o-w)"
    if seen.st_uid not in trusted:
        return f"belongs to {get_user_name(seen.st_uid)}, whom `trust` does not name"
    return ""


def _distrust_file(seen: os.stat_result, trusted: Collection[int]) -> str:
    """Why the file is not trusted. A group may write to the directory, but not to the file: then
    its owner would not be its author."""
    if why := _distrust_place(seen, trusted):
        return why
    if _is_group_writable(seen):
        return "its group may write to it (chmod g-w)"
    return ""


def _distrust_way_of_root(base: str, trusted: Collection[int]) -> str:
    """Check every parent directory if root runs the scripts. Nobody else may be able to replace one
    of them, because the scripts run as root."""
    fault = find_path_fault(base, trusted) if os.geteuid() == 0 else None
    return f"{visible(fault.path)} {fault.why}" if fault else ""


def _is_group_writable(seen: os.stat_result) -> bool:
    return bool(seen.st_mode & stat.S_IWGRP) and not is_private_group(seen)


def _distrust_link(link: os.stat_result, trusted: Collection[int]) -> str:
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in trusted:
        return f"is a link of {get_user_name(link.st_uid)}, whom `trust` does not name"
    return ""
