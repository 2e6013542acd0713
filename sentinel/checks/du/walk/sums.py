"""What is asked of a walk, how fast it may go, and what it adds up."""

from __future__ import annotations

import json
import os
import time
from _thread import allocate_lock
from typing import Any

MOST_ERRORS = 20


class WalkOrder:
    """What is asked, from JSON: path, seconds, threads, processes, calls a second (0: no cap).

    `all`: every directory is told, not only the largest; `slow`: known to be, no need to measure.
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

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline


class WalkSums:
    """A row per directory (bytes, blocks, entries), one per owner, each file of many names.

    `unread`: what could not be looked at, `errors` the first of them; `left`: work not begun;
    `stuck`: a process that hangs and was left behind, 0 for none.
    """

    def __init__(self) -> None:
        self.dirs: dict[bytes, list[int]] = {}
        self.owners: dict[int, list[int]] = {}
        self.links: dict[tuple[int, int], tuple[bytes, int, int, int]] = {}
        self.errors: dict[bytes, str] = {}
        self.unread = self.left = self.stuck = 0

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
        """Of several names the one in the first directory by name counts, in whatever order
        they were met."""
        old = self.links.get(key)
        if old is None or where[0] < old[0]:
            self.links[key] = where

    def note_error(self, path: bytes, error: OSError) -> None:
        self.unread += 1
        if len(self.errors) < MOST_ERRORS:
            self.errors[path] = error.strerror or str(error)

    def merge_sums(self, other: dict[str, Any]) -> None:
        """Add what `vars` of another says."""
        for folder, row in other["dirs"].items():
            self.add_entries(folder, *row)
        for uid, row in other["owners"].items():
            self.add_owner(uid, *row)
        for key, where in other["links"].items():
            self.add_link(key, where)
        for path in [*other["errors"]][: MOST_ERRORS - len(self.errors)]:
            self.errors[path] = other["errors"][path]
        self.unread += other["unread"]
        self.left += other["left"]
        self.stuck = self.stuck or other["stuck"]

    def settle_links(self) -> None:
        """Count every file of many names once, where it belongs."""
        for folder, size, blocks, uid in self.links.values():
            self.add_entries(folder, size, blocks, 1)
            self.add_owner(uid, blocks, 1)
        self.links = {}


class CallPace:
    """At most so many calls a second, all threads of this process together."""

    def __init__(self, rate: float, deadline: float) -> None:
        self.calls, self._rate, self._deadline = 0, rate, deadline
        self._began, self._lock = time.monotonic(), allocate_lock()

    def take_calls(self, calls: int) -> None:
        """Wait until so many more are allowed, or it is late."""
        with self._lock:
            allowed = self._began + self.calls / self._rate if self._rate else 0.0
            self.calls += calls
        if allowed:
            ends = min(allowed, self._deadline + 0.001)
            time.sleep(max(0.0, ends - time.monotonic()))
