"""The logs of scripts: one file per run. Old ones are removed, so that the inodes do not run out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress

from sentinel.chain.cron_trust import CronTrust, require_own_folder

_LOG_NAME_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d{4}-\d+\.log")


def log_folder(base: str, key: str) -> str:
    """The folder for the logs of a script, e.g. `BASE/log/cron.daily/backup.slurm`."""
    return os.path.join(base, "log", key)


def make_log_folder(base: str, key: str, trust: CronTrust) -> None:
    """Make the folder for the logs of a script. Raises OSError, also if somebody else could have
    put it there: Slurm would write where a link of theirs leads."""
    require_own_folder(base, os.path.join("log", key), trust)


def log_pattern(base: str, key: str, slot: int) -> str:
    """The value for sbatch's --output. A `%` in the path is escaped."""
    where = log_folder(base, key)
    moment = time.strftime("%Y-%m-%dT%H%M", time.localtime(slot))
    return f"{where.replace('%', '%%')}/{moment}-%j.log"


def clean_logs(base: str, now: float, age: float, count: int) -> int:
    """Remove logs older than `age` seconds, and all but the newest `count` of each script.

    Only files with a name from `log_pattern` are removed, because BASE/log may hold other files.
    Links are not followed.
    """
    removed = 0
    for where in _log_folders(base):
        for number, path in enumerate(_script_logs(where)):
            with suppress(OSError):
                if number >= count or now - os.lstat(path).st_mtime > age:
                    os.unlink(path)
                    removed += 1
    return removed


def _script_logs(where: str) -> list[str]:
    """The logs of a script, newest first."""
    try:
        names = [name for name in os.listdir(where) if _LOG_NAME_PATTERN.fullmatch(name)]
    except OSError:
        return []
    return [os.path.join(where, name) for name in sorted(names, reverse=True)]


def _log_folders(base: str) -> Iterator[str]:
    """The folders BASE/log/cron.daily/backup.slurm. Links on the way are not followed."""
    for kind in _subfolders(os.path.join(base, "log")):
        if os.path.basename(kind).startswith("cron."):
            yield from _subfolders(kind)


def _subfolders(folder: str) -> list[str]:
    """The directories in a folder. Empty if the folder is a link or cannot be read."""
    if os.path.islink(folder):
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
