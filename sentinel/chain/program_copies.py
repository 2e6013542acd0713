"""Copies of programs of cron directories, so that what was checked is what runs.

A script's text goes to sbatch whole. A program is read only when its job starts, maybe hours after
it was checked. So a copy that only this user can write is kept below `BASE/.sentinel/programs`,
named by its digest. The job compares the digest again, and runs the copy.
"""

from __future__ import annotations

import os
import shlex
import stat
import time
from contextlib import suppress
from hashlib import sha256
from tempfile import mkstemp
from typing import BinaryIO

from sentinel.chain.cron_trust import CronTrust, find_group_faults, find_refusal, require_own_folder
from sentinel.chain.queue import SubmissionRefused
from sentinel.chain.scripts import FoundScript
from sentinel.core.text import visible
from sentinel.trust import open_judged

KEPT_S = 30 * 86400.0
"""Seconds after its last submission for which a copy is kept: its job may wait."""

_PIECE_BYTES = 2**20
_SCRIPT = """\
#!/bin/sh
# Runs the copy of a program that `sentinel cron run` has checked.
program={program}
digest=$(sha256sum <"$program") || exit 126
if [ "${{digest%% *}}" != {digest} ]; then
    echo "$program was changed after it was checked: it is not run" >&2
    exit 126
fi
exec "$program"
"""


def keep_program(base: str, found: FoundScript, trust: CronTrust) -> bytes:
    """Check the program again, copy what was checked, and return the script that runs the copy.
    Raises SubmissionRefused."""
    try:
        with open_judged(os.path.dirname(found.path), trust.uids, trust.gids) as folder:
            known = find_group_faults(folder)
        with open_judged(found.path, trust.uids, trust.gids) as opened:
            mode = os.fstat(opened.fd).st_mode
            wrong = "" if stat.S_ISREG(mode) else "is no regular file"
            if wrong := wrong or find_refusal(opened, found.path, known):
                raise SubmissionRefused(f"{visible(found.path)}: {wrong}")
            with open(opened.fd, "rb", closefd=False) as file:
                place, digest = _copy_program(base, file, found.path, mode, trust)
    except OSError as error:
        raise SubmissionRefused(f"no copy of {visible(found.path)}: {error.strerror}") from error
    text = _SCRIPT.format(program=shlex.quote(place), digest=digest)
    return text.encode("utf-8", "surrogateescape")


def _copy_program(
    base: str, file: BinaryIO, path: str, mode: int, trust: CronTrust
) -> tuple[str, str]:
    """The path of the copy, and its SHA-256."""
    programs = require_own_folder(base, os.path.join(".sentinel", "programs"), trust)
    handle, beside = mkstemp(prefix="new-", dir=programs)
    try:
        digest = sha256()
        with open(handle, "wb") as copy:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
                copy.write(piece)
            copy.flush()
            os.fchmod(handle, 0o500 | (mode & 0o555))
        name = digest.hexdigest()
        folder = require_own_folder(base, os.path.join(".sentinel", "programs", name), trust)
        os.replace(beside, place := os.path.join(folder, os.path.basename(path)))
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    os.utime(folder)
    _remove_old_copies(programs)
    return os.path.abspath(place), name


def _remove_old_copies(programs: str) -> None:
    """Remove copies that nothing was submitted of for long."""
    with suppress(OSError), os.scandir(programs) as entries:
        for entry in entries:
            with suppress(OSError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > KEPT_S:
                    _remove_copy(entry.path)


def _remove_copy(path: str) -> None:
    if not os.path.isdir(path):
        os.unlink(path)  # of a pass that was ended
        return
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))
    os.rmdir(path)
