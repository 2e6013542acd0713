"""What a lab has made on this machine, on disk, so that anyone can undo it.

One line is written before each thing is made. There is one way down: a lab that ends,
the reaper of a lab that was killed, and `python -m tests.lab clean` all call `undo`.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.lab import accounts

Entry = tuple[str, ...]
Pid = tuple[int, int]
"""A process and its start time in clock ticks: a reused number is not the same process."""


class Ledger:
    """Append-only list of (kind, words...); kinds: pid, mount, link, netns, user, group."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger"

    def add(self, kind: str, *words: str) -> None:
        with self._path.open("a") as file:
            file.write(" ".join((kind, *words)) + "\n")

    def add_process(self, pid: int, what: str) -> None:
        self.add("pid", str(pid), str(started(pid)), what)

    def entries(self) -> list[Entry]:
        """All lines, newest first; empty where nothing was ever written."""
        try:
            lines = self._path.read_text().splitlines()
        except FileNotFoundError:
            return []
        return [tuple(line.split(" ")) for line in reversed(lines)]


def undo(folder: Path) -> None:
    """Remove everything that the ledger in `folder` names, then the folder; safe to repeat."""
    entries = Ledger(folder).entries()
    end({(int(words[0]), int(words[1])) for kind, *words in entries if kind == "pid"})
    for wanted, remove in REMOVERS.items():
        for kind, *words in entries:
            if kind == wanted:
                remove(words[0])
    shutil.rmtree(folder, ignore_errors=True)


def end(pids: Iterable[Pid], limit: float = 10.0) -> None:
    """SIGKILL the processes that are still the ones started, and wait for them to be gone."""
    mine = [pid for pid in pids if alive(pid)]
    for pid in mine:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid[0], signal.SIGKILL)
    deadline = time.monotonic() + limit
    while any(alive(pid) for pid in mine) and time.monotonic() < deadline:
        time.sleep(0.01)


def alive(pid: Pid) -> bool:
    """Whether the process runs; a zombie waiting for its parent does not."""
    fields = _stat(pid[0])
    return fields is not None and int(fields[19]) == pid[1] and fields[0] not in "ZX"


def started(pid: int) -> int:
    """Start time in ticks since boot, 0 where there is no such process: proc(5)."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on; the command before may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _quietly(*argv: str) -> Callable[[str], None]:
    def remove(name: str) -> None:
        subprocess.run([*argv, name], capture_output=True, check=False)

    return remove


REMOVERS: dict[str, Callable[[str], None]] = {
    "mount": _quietly("umount", "--lazy"),
    "link": _quietly("ip", "link", "del"),
    "netns": _quietly("ip", "netns", "del"),
    "user": accounts.remove_user,
    "group": accounts.remove_group,
}
"""In this order: users and links are free only once nothing uses them."""
