"""The logs of scripts: one file a run, and never so many that inodes run out."""

from __future__ import annotations

import os
import time
from contextlib import suppress


def folder(base: str, key: str) -> str:
    """Where the logs of a script lie: `BASE/log/cron.daily/backup.slurm`."""
    return os.path.join(base, "log", key)


def pattern(base: str, key: str, slot: int) -> str:
    """What sbatch's --output is given; the directory is made. `%` in a path stands for itself."""
    where = folder(base, key)
    os.makedirs(where, exist_ok=True)
    moment = time.strftime("%Y-%m-%dT%H%M", time.localtime(slot))
    return f"{where.replace('%', '%%')}/{moment}-%j.log"


def clean(base: str, now: float, age: float, count: int) -> int:
    """Remove logs older than `age` seconds and all but the newest `count` of each script."""
    removed = 0
    for where, _, names in os.walk(os.path.join(base, "log")):
        logs = sorted((name for name in names if name.endswith(".log")), reverse=True)
        for number, name in enumerate(logs):
            path = os.path.join(where, name)
            with suppress(OSError):
                if number >= count or now - os.lstat(path).st_mtime > age:
                    os.unlink(path)
                    removed += 1
    return removed
