"""A real cron daemon with tables, mounts and a process table of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import needs
from tests.lab.tied import tied
from tests.lab.waiting import wait_until

INSIDE = """\
mount -t tmpfs -o mode=1730,gid=crontab none /var/spool/cron/crontabs &&
mount -t tmpfs none /etc/cron.d && mount --bind /dev/null /etc/crontab &&
touch -d 1990-01-01 /var/spool/cron/crontabs /etc/cron.d &&
mount --bind "$1" /run/crond.pid && exec cron -f
"""
"""This machine's own tables are hidden: nothing of them runs twice.

The folders are made older: cron compares whole seconds, and a table installed in the second in which it
first looked would never be read.
"""

LOCK = Path("/run/crond.pid")
NONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""What a command has to begin with to see no cron daemon; this machine's own may run. Needs root."""


@contextmanager
def cron(folder: Path) -> Iterator[list[str]]:
    """It runs inside `with`; what a command has to begin with to see it, and no other one."""
    if needs.find("cron") is None:
        needs.skip("needs Debian's cron")
    own, log = folder / "crond.pid", folder / "cron.log"
    own.touch()
    LOCK.touch()  # a place to mount the own one on
    space = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            tied([*space, "sh", "-c", INSIDE, "sh", str(own)]),
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
        )  # fmt: skip
    try:
        wait_until(own.read_text, lambda: f"cron: {log.read_text()}", 10)
        child = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().strip()
        yield ["nsenter", "-t", child, "--mount", "--pid", "--"]
    finally:
        process.kill()
        process.wait(10)
        if LOCK.exists() and not LOCK.stat().st_size:
            LOCK.unlink(missing_ok=True)
