"""A fast file system: several processes that give each other directories."""

from __future__ import annotations

import marshal
import mmap
import os
import select
import time
from contextlib import suppress
from typing import Any

from sentinel.checks.du.walk.sums import Sums
from sentinel.checks.du.walk.walk import Unit, Walker

LONGEST = 8000
GIVEN = 16
AFTER = 1.0
"""Seconds that the others have to tell what they found when the time is over."""

_IDLE, _SENT, _TAKEN, _STOP = 0, 1, 2, 3


class Board:
    """What every process writes of itself and all may read: idle, units sent and taken.

    Each number has one writer, so nothing is ever locked. All is done when all are idle and
    nothing that was sent has not been taken, twice in a row with the same numbers.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._cells = memoryview(mmap.mmap(-1, max(4096, 32 * count))).cast("q")

    def put(self, who: int, what: int, value: int) -> None:
        self._cells[4 * who + what] = value

    def more(self, who: int, what: int) -> None:
        self._cells[4 * who + what] += 1

    def someone_idle(self) -> bool:
        return any(self._cells[4 * who + _IDLE] for who in range(self._count))

    def stopped(self) -> bool:
        return bool(self._cells[_STOP])

    def done(self) -> bool:
        return self._calm() and self._calm()

    def _calm(self) -> bool:
        rows = [self._cells[4 * who : 4 * who + 3].tolist() for who in range(self._count)]
        sent, taken = sum(r[_SENT] for r in rows), sum(r[_TAKEN] for r in rows)
        return all(r[_IDLE] for r in rows) and sent == taken


class Shared:
    """One walk by several processes; this one is number 0 and walks too."""

    def __init__(self, walker: Walker, stack: list[Unit], count: int) -> None:
        import socket

        self._walker, self._stack, self._count = walker, stack, count
        self._board = Board(count)
        self._give, self._take = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._give.setblocking(False)
        self._take.setblocking(False)

    def run(self) -> tuple[Sums, int]:
        """All that was found by all, and in how many calls."""
        pipes = [self._fork(who) for who in range(1, self._count)]
        self._labour(0)
        self._board.put(0, _STOP, 1)
        sums, calls = self._walker.sums, self._walker.pace.calls
        for pid, pipe in pipes:
            found = _read(pipe, self._walker.order.deadline + AFTER)
            if found is None:
                sums.left += 1
                sums.stuck = sums.stuck if ended(pid, patience=0.0) else pid
                continue
            sums.merge(found)
            calls += found["calls"]
        return sums, calls

    def _fork(self, who: int) -> tuple[int, int]:
        out, into = os.pipe()
        pid = os.fork()
        if pid:
            os.close(into)
            return pid, out
        try:
            self._walker.sums, self._walker.pace.calls = Sums(), 0
            self._stack.clear()
            self._labour(who)
            found = {**vars(self._walker.sums), "calls": self._walker.pace.calls}
            with os.fdopen(into, "wb") as file:
                file.write(marshal.dumps(found))
        finally:
            os._exit(0)

    def _labour(self, who: int) -> None:
        board, stack, walker = self._board, self._stack, self._walker
        while not walker.order.late:
            if not stack:
                board.put(who, _IDLE, 1)
                if not self._receive(who):
                    break
            if len(stack) > 1 and board.someone_idle():
                self._share(who)
            walker.folder(stack.pop(), _never)
        walker.sums.left += len(stack)

    def _receive(self, who: int) -> bool:
        """Wait for work; False when there will be none."""
        while not self._walker.order.late and not self._board.stopped():
            select.select([self._take], [], [], 0.001 if who == 0 else 0.01)
            with suppress(BlockingIOError):
                message = self._take.recv(LONGEST + 100)
                self._board.put(who, _IDLE, 0)
                self._board.more(who, _TAKEN)
                self._stack += marshal.loads(message)  # noqa: S302 from our own processes
                return True
            if who == 0 and self._board.done():
                return False
        return False

    def _share(self, who: int) -> None:
        """The oldest directories are the highest, and so the largest."""
        given = self._stack[: min(GIVEN, len(self._stack) // 2)]
        message = marshal.dumps(given)
        if len(message) > LONGEST:
            given = given[:1]
            message = marshal.dumps(given)
        if len(message) > LONGEST:
            return
        self._board.more(who, _SENT)
        try:
            self._give.send(message)
        except OSError:
            self._board.more(who, _TAKEN)  # the way is full: it is still ours
            return
        del self._stack[: len(given)]


def ended(pid: int, patience: float = 0.2) -> bool:
    """Whether a child goes, by itself or else by force."""
    for number, seconds in ((0, patience), (9, 0.1), (9, 0.1)):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + seconds
        while time.monotonic() <= until:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
            time.sleep(0.001)
    return False


def _never(calls: int, seconds: float) -> bool:
    return False


def _read(pipe: int, deadline: float) -> dict[str, Any] | None:
    """What a child found; None when it ended without a word or hangs."""
    said = read_all(pipe, deadline)
    found: dict[str, Any] | None = marshal.loads(said) if said else None  # noqa: S302
    return found


def read_all(pipe: int, deadline: float) -> bytes:
    """All that comes until the other end is closed; nothing when that is not in time."""
    said = b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([pipe], [], [], left)[0]:
            return b""
        piece = os.read(pipe, 1 << 20)
        if not piece:
            return said
        said += piece
    return b""
