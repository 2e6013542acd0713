"""Walks a slow file system: many threads share one list of work."""

from __future__ import annotations

import time
from _thread import allocate_lock, start_new_thread
from contextlib import suppress
from typing import Any

from sentinel.checks.du.walk.sums import WalkSums
from sentinel.checks.du.walk.walk import NamesPiece, TreeWalker, Unit

AFTER = 0.3
"""Seconds that threads have to end after the time is over; those that hang are left behind."""


class WalkThreads:
    """Continues the walk of a walker that found its file system slow, with threads."""

    def __init__(self, walker: TreeWalker, work: list[Unit | NamesPiece]) -> None:
        self._first, self._work = walker, work
        self._open, self._lock = len(work), allocate_lock()
        self._sums: list[WalkSums] = []

    def run_threads(self) -> None:
        """Work until all is done or the time is over. Then the sums of the first walker include
        those of all."""
        order = self._first.order
        for _ in range(order.threads):
            first = self._first
            walker = TreeWalker(order, first.device, first.pace, self._push_work, first.others)
            self._sums.append(walker.sums)
            start_new_thread(self._work_until_empty, (walker,))
        while self._open and time.monotonic() < order.deadline + AFTER:
            time.sleep(0.002)
        self._first.sums.left += self._open
        for sums in self._sums:
            with suppress(RuntimeError):  # a late thread may change the dict during the copy
                self._first.sums.merge_sums(vars(sums))

    def _push_work(self, work: Unit | NamesPiece) -> None:
        with self._lock:
            self._work.append(work)
            self._open += 1

    def _work_until_empty(self, walker: TreeWalker) -> None:
        idle = 0.0005
        while self._open and not walker.order.is_late:
            try:
                work: Any = self._work.pop()
            except IndexError:
                time.sleep(idle)
                idle = min(0.005, idle * 2)
                continue
            idle = 0.0005
            pieces = [work] if isinstance(work, NamesPiece) else walker.list_names(work)
            for piece in pieces[1:]:
                self._push_work(piece)
            if pieces:
                walker.add_piece(pieces[0])
            with self._lock:
                self._open -= 1
