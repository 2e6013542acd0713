"""Finds the scripts of a cron directory. Each is opened once. Only scripts of trusted owners are
used."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain.cron_trust import CronTrust, find_group_faults, find_refusal
from sentinel.chain.script import CronScript, is_script, read_script
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.text import shortened, visible
from sentinel.trust import open_judged

MAX_SCRIPT_BYTES = 2**20
_SHARED_PROGRAM = (
    "is a program in a directory that a group may write to: somebody could replace it before it runs. Take "
    "that right away (chmod g-w), name the group in `trust_groups`, or call it from a script elsewhere"
)
_ANY_LANGUAGE = frozenset({"slurm", "sbatch", "sh", "py"})
"""Extensions of scripts whatever their first line names (`uv run` of a `.py`)."""
_STAMP = re.compile(r"[0-9]{4}")
"""What a program puts into the name of a copy, before its extension: a date or the number of a process
(`x_conflict-20261129-0315.sh` of ownCloud, `x_BACKUP_4711.sh` of git)."""
_BEFORE = "\ufeff \t\r\n".encode()
"""What an editor may leave before the first line: a byte order mark, blanks, empty lines."""
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK


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
    # Slurm accepts only scripts: the text of a program's job is made when it is submitted.
    is_program: bool = False
    # The script whose name this one has, with its own language for an extension: refused in the next release.
    twin: str = ""


def find_scripts(
    base: str, trusted: Collection[int], groups: Collection[int] = ()
) -> list[FoundScript]:
    """Every script below `BASE/cron.*`, in order. `trusted` are the uids whose files may run, and
    `groups` may write the directories.

    Each file is opened once, so the text that was checked is the text that is submitted. Raises
    BadCronDirectory.
    """
    names, trust = read_base(base, trusted, groups)
    found: list[FoundScript] = []
    for name in names:
        path = os.path.join(base, name)
        if name.startswith("cron.") and os.path.isdir(path):
            found += _scan_directory(path, name, trust)
    return found


def read_base(
    base: str, trusted: Collection[int], groups: Collection[int] = ()
) -> tuple[list[str], CronTrust]:
    """The names in the directory, and what is known of those who may write it. Raises
    BadCronDirectory."""
    try:
        with open_judged(base, trusted, groups) as opened:
            known = frozenset() if os.geteuid() == 0 else find_group_faults(opened)
            wrong = find_refusal(opened, base, known)
            names = sorted(os.listdir(opened.fd))
    except OSError as error:
        raise BadCronDirectory(
            f"{visible(base)}: {error.strerror}; make it, with directories like cron.hourly in it"
        ) from error
    if wrong:
        raise BadCronDirectory(f"{visible(base)}: {wrong}; nothing of it is run")
    return names, CronTrust(frozenset(trusted), frozenset(groups), known)


def _scan_directory(path: str, name: str, trust: CronTrust) -> Iterator[FoundScript]:
    try:
        with open_judged(path, trust.uids, trust.gids) as opened:
            known = trust.known | find_group_faults(opened)
            wrong = find_refusal(opened, path, known)
            entries = sorted(os.listdir(opened.fd))
    except OSError as error:
        wrong = str(error.strerror)
    if wrong:
        yield FoundScript(key=name, path=path, refused=f"the directory: {wrong}")
        return
    folder_trust = replace(trust, known=known)
    found = {one.key: one for one in _look_at_files(path, name, entries, folder_trust)}
    yield from (_judge_name(one, found) for one in found.values())


def _judge_name(one: FoundScript, found: Mapping[str, FoundScript]) -> FoundScript:
    """The script, refused if its name may be that of a copy, or of one that is switched off.

    Only extensions of the language that the script names may stand behind a dot; run-parts(8) runs no
    name with one. Beside a script without it (`sync.py` beside `sync`) such a script runs for now."""
    folder, name = os.path.split(one.key)
    stem, *parts = name.split(".")
    if odd := [part for part in parts if not _is_language(one, part)]:
        reason = f"'.{visible(odd[0])}' is no extension of its language, so it may be a copy, or switched off: rename it"
        return replace(one, script=None, refused=reason)
    end = name[len(stem) :]
    copied = (stem[:at] + end for at, c in enumerate(stem) if c in "_-" and _STAMP.search(stem, at))
    if original := next((name for name in copied if f"{folder}/{name}" in found), ""):
        reason = (
            f"may be a copy of {visible(original)} that a program left: rename it, or take it away"
        )
        return replace(one, script=None, refused=reason)
    shorter = (".".join([stem, *parts[:number]]) for number in range(len(parts)))
    twin = next((name for name in shorter if f"{folder}/{name}" in found), "")
    return replace(one, twin=twin if one.script else "")


def _is_language(one: FoundScript, extension: str) -> bool:
    """Whether this is an extension of the language that the script names (`sh` of bash), or Slurm's."""
    word = extension.lower()
    programs = one.text.partition(b"\n")[0].lower().split()
    return word in _ANY_LANGUAGE or any(
        _has_letters_of(word.encode(), os.path.basename(program)) for program in programs
    )


def _has_letters_of(extension: bytes, program: bytes) -> bool:
    """Whether the letters stand in the program's name in this order, as `pl` in perl and `rb` in ruby."""
    letters = iter(program)
    return bool(extension) and all(letter in letters for letter in extension)


def _look_at_files(
    path: str, name: str, entries: Sequence[str], trust: CronTrust
) -> Iterator[FoundScript]:
    for entry in filter(is_script, entries):
        key = f"{name}/{entry}"
        try:
            found = _look_at_file(os.path.join(path, entry), key, name, trust)
        except OSError as error:
            found = FoundScript(key=key, path=path, refused=str(error.strerror))
        if found:
            yield found


def _look_at_file(path: str, key: str, directory: str, trust: CronTrust) -> FoundScript | None:
    """The script in this file. None if the file is no script (a README, a directory)."""
    with open_judged(path, trust.uids, trust.gids, _OPEN_FLAGS) as opened:
        mode = os.fstat(opened.fd).st_mode
        if stat.S_ISDIR(mode) or not (mode & 0o111 or path.endswith(".slurm")):
            return None
        wrong = "" if stat.S_ISREG(mode) else "is no regular file"
        if wrong := wrong or find_refusal(opened, path, trust.known):
            return FoundScript(key=key, path=path, refused=wrong)
        with open(opened.fd, "rb", closefd=False) as file:  # one read(2) may return only a part
            found = _parse_script(file.read(MAX_SCRIPT_BYTES), path, key, directory)
    if found.is_program and trust.known:
        return FoundScript(key=key, path=path, refused=_SHARED_PROGRAM)
    return found


def _parse_script(text: bytes, path: str, key: str, directory: str) -> FoundScript:
    is_program = not text.startswith(b"#!")
    if is_program:
        # Behind a mark of an editor or an empty line nobody sees `#!`, and sh would run what is Python's.
        if path.endswith(".slurm") or text.lstrip(_BEFORE).startswith(b"#!"):
            return FoundScript(
                key=key, path=path, refused="does not begin with a line like #!/bin/bash"
            )
        text = b""
    if len(text) == MAX_SCRIPT_BYTES:
        return FoundScript(key=key, path=path, refused="is larger than 1 MiB")
    try:
        script = read_script(key, directory, text.decode("utf-8", "replace"))
    except Invalid as error:
        return FoundScript(key=key, path=path, refused=shortened(str(error), 300))
    return FoundScript(key=key, path=path, script=script, text=text, is_program=is_program)
