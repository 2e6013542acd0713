"""The order for a walk, its speed limit, and its sums."""

from __future__ import annotations

import json
import mmap
import os
import time
from _thread import allocate_lock
from typing import Any

MOST_ERRORS = 20


class WalkOrder:
    """The request, from JSON: path, seconds, threads, processes, calls per second (0: no cap).

    `all`: every directory is reported, not only the largest ones. `slow`: the file system is known
    to be slow, so its speed is not measured. `tells`: the progress is written to standard error,
    from `tally`.
    """

    def __init__(self, text: str) -> None:
        asked = json.loads(text)
        self.path: bytes = os.fsencode(asked["path"])
        self.deadline: float = time.monotonic() + asked["within"]
        self.threads: int = asked["threads"]
        self.processes: int = asked["processes"]
        self.rate: float = asked["calls"]
        self.top: int = asked["top"]
        self.all: bool = asked.get("all", False)
        self.slow: bool = asked.get("slow", False)
        self.tally = WalkTally(self.processes) if asked.get("tells") else None

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline

    def count_progress(self, entries: int, blocks: int) -> None:
        """Add to the progress, if somebody wants to see it."""
        if self.tally is not None:
            self.tally.add_counts(entries, blocks)


class WalkSums:
    """The sums of a walk.

    `dirs`: bytes, blocks and entries, by directory.
    `owners`: blocks and entries, by uid.
    `links`: files with several hard links. They are not counted before `settle_links`.
    `unread`: how many paths could not be read. `errors` has the first of them.
    `deep`: how many directories were too deep to be entered. `errors` has the first of them too.
    `left`: how many pieces of work were not done.
    `stuck`: the pid of a process that hangs and was left behind. 0 if there is none.
    """

    def __init__(self) -> None:
        self.dirs: dict[bytes, list[int]] = {}
        self.owners: dict[int, list[int]] = {}
        self.links: dict[tuple[int, int], tuple[bytes, int, int, int]] = {}
        self.errors: dict[bytes, str] = {}
        self.unread = self.deep = self.left = self.stuck = 0

    def add_entries(self, folder: bytes, size: int, blocks: int, entries: int) -> None:
        row = self.dirs.setdefault(folder, [0, 0, 0])
        row[0] += size
        row[1] += blocks
        row[2] += entries

    def add_owner(self, uid: int, blocks: int, entries: int) -> None:
        row = self.owners.setdefault(uid, [0, 0])
        row[0] += blocks
        row[1] += entries

    def add_link(self, key: tuple[int, int], where: tuple[bytes, int, int, int]) -> None:
        """Note a file with several hard links. It counts in the directory that comes first by name,
        whatever the order in which its names are found."""
        old = self.links.get(key)
        if old is None or where[0] < old[0]:
            self.links[key] = where

    def note_error(self, path: bytes, error: OSError) -> None:
        self.unread += 1
        if len(self.errors) < MOST_ERRORS:
            self.errors[path] = error.strerror or str(error)

    def note_deep(self, path: bytes) -> None:
        self.deep += 1
        if len(self.errors) < MOST_ERRORS:
            self.errors[path] = "it is too deep"

    def merge_sums(self, other: dict[str, Any]) -> None:
        """Add the counts of another walk's sums, given as the dict of its attributes (`vars`)."""
        for folder, row in other["dirs"].items():
            self.add_entries(folder, *row)
        for uid, row in other["owners"].items():
            self.add_owner(uid, *row)
        for key, where in other["links"].items():
            self.add_link(key, where)
        for path in [*other["errors"]][: MOST_ERRORS - len(self.errors)]:
            self.errors[path] = other["errors"][path]
        self.unread += other["unread"]
        self.deep += other["deep"]
        self.left += other["left"]
        self.stuck = self.stuck or other["stuck"]

    def settle_links(self) -> None:
        """Count every file with several hard links once, in its directory."""
        for folder, size, blocks, uid in self.links.values():
            self.add_entries(folder, size, blocks, 1)
            self.add_owner(uid, blocks, 1)
        self.links = {}


class WalkTally:
    """The progress of all processes of a walk: entries and blocks. Each number has one writer;
    threads of one process may lose a count."""

    def __init__(self, processes: int) -> None:
        self._cells = memoryview(mmap.mmap(-1, max(4096, 16 * processes))).cast("q")
        self.place = 0  # index of this process

    def add_counts(self, entries: int, blocks: int) -> None:
        """Add what this process has found."""
        self._cells[2 * self.place] += entries
        self._cells[2 * self.place + 1] += blocks

    def total_entries(self) -> int:
        """Entries that all processes have found."""
        return sum(self._cells[::2].tolist())

    def total_bytes(self) -> int:
        """Bytes on disk that all processes have found."""
        return 512 * sum(self._cells[1::2].tolist())


class CallPace:
    """Limits the calls per second of all threads of this process together."""

    def __init__(self, rate: float, deadline: float) -> None:
        self.calls, self._rate, self._deadline = 0, rate, deadline
        self._began, self._lock = time.monotonic(), allocate_lock()

    def take_calls(self, calls: int) -> None:
        """Wait until this number of further calls is allowed, or the time is over."""
        with self._lock:
            allowed = self._began + self.calls / self._rate if self._rate else 0.0
            self.calls += calls
        if allowed:
            ends = min(allowed, self._deadline + 0.001)
            time.sleep(max(0.0, ends - time.monotonic()))
