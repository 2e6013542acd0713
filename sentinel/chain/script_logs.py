"""The logs of scripts: one file a run, and never so many that inodes run out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress

_LOG_NAME_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d{4}-\d+\.log")


def log_folder(base: str, key: str) -> str:
    """Where the logs of a script lie: `BASE/log/cron.daily/backup.slurm`."""
    return os.path.join(base, "log", key)


def log_pattern(base: str, key: str, slot: int) -> str:
    """What sbatch's --output is given; the directory is made. `%` in a path stands for itself.

    Raises OSError.
    """
    where = log_folder(base, key)
    os.makedirs(where, exist_ok=True)
    moment = time.strftime("%Y-%m-%dT%H%M", time.localtime(slot))
    return f"{where.replace('%', '%%')}/{moment}-%j.log"


def clean_logs(base: str, now: float, age: float, count: int) -> int:
    """Remove logs older than `age` seconds and all but the newest `count` of each script.

    Only what `log_pattern` has named: BASE may be somebody's folder of everything, with a `log` of
    other things in it, or with a link in place of one.
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
    """Of a script, the newest first."""
    try:
        names = [name for name in os.listdir(where) if _LOG_NAME_PATTERN.fullmatch(name)]
    except OSError:
        return []
    return [os.path.join(where, name) for name in sorted(names, reverse=True)]


def _log_folders(base: str) -> Iterator[str]:
    """BASE/log/cron.daily/backup.slurm, and no link on the way."""
    for kind in _subfolders(os.path.join(base, "log")):
        if os.path.basename(kind).startswith("cron."):
            yield from _subfolders(kind)


def _subfolders(folder: str) -> list[str]:
    """The directories in it; none where it is a link, or cannot be read."""
    if os.path.islink(folder):
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
