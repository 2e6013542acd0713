"""Walks a fast file system: several processes share the directories."""

from __future__ import annotations

import marshal
import mmap
import os
import select
import time
from contextlib import suppress
from typing import Any

from sentinel.checks.du.walk.sums import WalkSums
from sentinel.checks.du.walk.walk import TreeWalker, Unit

LONGEST = 8000
GIVEN = 16
AFTER = 1.0
"""After the time limit, the other processes have this many seconds to report their results."""

_IDLE, _SENT, _TAKEN, _STOP = 0, 1, 2, 3


class WalkBoard:
    """The numbers that each process writes about itself and all may read: whether it is idle, and
    how many messages with directories it has sent and taken.

    Each number has one writer, so nothing is locked. The walk is done when all processes are idle
    and every message that was sent has been taken, at two readings in a row.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._cells = memoryview(mmap.mmap(-1, max(4096, 32 * count))).cast("q")

    def put_number(self, who: int, what: int, value: int) -> None:
        self._cells[4 * who + what] = value

    def count_one(self, who: int, what: int) -> None:
        self._cells[4 * who + what] += 1

    def is_someone_idle(self) -> bool:
        return any(self._cells[4 * who + _IDLE] for who in range(self._count))

    def is_stopped(self) -> bool:
        return bool(self._cells[_STOP])

    def is_done(self) -> bool:
        return self._is_calm() and self._is_calm()

    def _is_calm(self) -> bool:
        rows = [self._cells[4 * who : 4 * who + 3].tolist() for who in range(self._count)]
        sent, taken = sum(r[_SENT] for r in rows), sum(r[_TAKEN] for r in rows)
        return all(r[_IDLE] for r in rows) and sent == taken


class SharedWalk:
    """A walk by several processes. This process is number 0 and walks too."""

    def __init__(self, walker: TreeWalker, stack: list[Unit], count: int) -> None:
        import socket

        self._walker, self._stack, self._count = walker, stack, count
        self._board = WalkBoard(count)
        self._give, self._take = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._give.setblocking(False)
        self._take.setblocking(False)

    def run_walk(self) -> tuple[WalkSums, int]:
        """Walk with all processes. Returns the sums of all, and the number of calls."""
        pipes = [self._fork_walker(who) for who in range(1, self._count)]
        self._walk_until_idle(0)
        self._board.put_number(0, _STOP, 1)
        sums, calls = self._walker.sums, self._walker.pace.calls
        for pid, pipe in pipes:
            found = _read_child(pipe, self._walker.order.deadline + AFTER)
            if found is None:
                sums.left += 1
                sums.stuck = sums.stuck if has_child_ended(pid, patience=0.0) else pid
                continue
            sums.merge_sums(found)
            calls += found["calls"]
        return sums, calls

    def _fork_walker(self, who: int) -> tuple[int, int]:
        out, into = os.pipe()
        pid = os.fork()
        if pid:
            os.close(into)
            return pid, out
        try:
            self._walker.sums, self._walker.pace.calls = WalkSums(), 0
            if self._walker.order.tally is not None:
                self._walker.order.tally.place = who
            self._stack.clear()
            self._walk_until_idle(who)
            found = {**vars(self._walker.sums), "calls": self._walker.pace.calls}
            with os.fdopen(into, "wb") as file:
                file.write(marshal.dumps(found))
        finally:
            os._exit(0)

    def _walk_until_idle(self, who: int) -> None:
        board, stack, walker = self._board, self._stack, self._walker
        while not walker.order.is_late:
            if not stack:
                board.put_number(who, _IDLE, 1)
                if not self._receive_work(who):
                    break
            if len(stack) > 1 and board.is_someone_idle():
                self._share_work(who)
            walker.walk_folder(stack.pop(), lambda _calls, _seconds: False)
        walker.sums.left += len(stack)

    def _receive_work(self, who: int) -> bool:
        """Wait for work. False if there will be none, or if the time is over."""
        while not self._walker.order.is_late and not self._board.is_stopped():
            select.select([self._take], [], [], 0.001 if who == 0 else 0.01)
            with suppress(BlockingIOError):
                message = self._take.recv(LONGEST + 100)
                self._board.put_number(who, _IDLE, 0)
                self._board.count_one(who, _TAKEN)
                self._stack += marshal.loads(message)  # noqa: S302 from our own processes
                return True
            if who == 0 and self._board.is_done():
                return False
        return False

    def _share_work(self, who: int) -> None:
        """Send the oldest directories to another process. They are the highest in the tree, and so
        the largest."""
        given = self._stack[: min(GIVEN, len(self._stack) // 2)]
        message = marshal.dumps(given)
        if len(message) > LONGEST:
            given = given[:1]
            message = marshal.dumps(given)
        if len(message) > LONGEST:
            return
        self._board.count_one(who, _SENT)
        try:
            self._give.send(message)
        except OSError:
            # the pipe is full, so this process keeps the directory
            self._board.count_one(who, _TAKEN)
            return
        del self._stack[: len(given)]


def has_child_ended(pid: int, patience: float = 0.2) -> bool:
    """Whether a child has ended, by itself within `patience` seconds, or because it was killed."""
    for number, seconds in ((0, patience), (9, 0.1), (9, 0.1)):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + seconds
        while time.monotonic() <= until:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
            time.sleep(0.001)
    return False


def _read_child(pipe: int, deadline: float) -> dict[str, Any] | None:
    """The result of a child process. None if it ended without a result, or hangs."""
    said = read_all(pipe, deadline)
    found: dict[str, Any] | None = marshal.loads(said) if said else None  # noqa: S302
    return found


def read_all(pipe: int, deadline: float) -> bytes:
    """All that comes until the other end is closed. Empty if it is not closed in time."""
    said = b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([pipe], [], [], left)[0]:
            return b""
        piece = os.read(pipe, 1 << 20)
        if not piece:
            return said
        said += piece
    return b""
