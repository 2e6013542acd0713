"""The program: an order in, one JSON object out."""

from __future__ import annotations

import json
import marshal
import mmap
import os
import select
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

from sentinel.checks.du.walk.sums import CallPace, WalkOrder, WalkSums
from sentinel.checks.du.walk.threads import WalkThreads
from sentinel.checks.du.walk.walk import NamesPiece, TreeWalker, Unit, mounted_names

SLOW = 100e-6
"""Seconds a call takes on average above which it is the waiting that costs."""

WINDOW = 0.02
"""Seconds over which that is judged: a busy machine takes the processor away for less."""

ALONE = 0.03
"""Seconds for which one process walks before others are worth their start."""


PATIENCE = 1.5
HANGS = 3
"""Seconds for the answer after the time is over; the exit code where there is none, since the
process that is then printed hangs."""


class CallSpeed:
    """Whether calls are slow here, by the latest ones."""

    def __init__(self) -> None:
        self._calls, self._seconds = 0, 0.0

    def is_slow(self, calls: int, seconds: float) -> bool:
        """These calls took so long; is it the waiting that costs?"""
        self._calls += calls
        self._seconds += seconds
        if self._seconds < WINDOW:
            return False
        mean = self._seconds / max(1, self._calls)
        self._calls, self._seconds = 0, 0.0
        return mean > SLOW


def walk_order(order: WalkOrder) -> tuple[WalkSums, int]:
    """The whole tree, as fast as the order allows; the sums and the number of calls."""
    root = os.stat(order.path, follow_symlinks=False)
    stack: list[Unit] = [(order.path, root.st_dev, root.st_ino)]
    pace, others = CallPace(order.rate, order.deadline), mounted_names(root.st_dev)
    walker = TreeWalker(order, root.st_dev, pace, stack.append, others)
    walker.sums.add_entries(order.path, 0, root.st_blocks, 1)
    walker.sums.add_owner(root.st_uid, root.st_blocks, 1)
    began, speed = time.monotonic(), CallSpeed()
    if order.slow:
        WalkThreads(walker, list[Unit | NamesPiece](stack)).run_threads()
        return walker.sums, walker.pace.calls
    while stack and not order.is_late:
        rest = walker.walk_folder(
            stack.pop(), speed.is_slow if order.threads > 1 else _is_never_slow
        )
        if rest:
            work: list[Unit | NamesPiece] = [*stack, *rest]
            WalkThreads(walker, work).run_threads()
            return walker.sums, walker.pace.calls
        if time.monotonic() - began > ALONE and len(stack) > 1 and order.processes > 1:
            return SharedWalk(walker, stack, order.processes).run_walk()
    walker.sums.left += len(stack)
    return walker.sums, walker.pace.calls


def sum_below(sums: WalkSums, root: bytes) -> dict[bytes, list[int]]:
    """Each directory with all that is below it."""
    whole: dict[bytes, list[int]] = {}
    for folder, row in sums.dirs.items():
        at = folder
        while True:
            sum_ = whole.setdefault(at, [0, 0, 0])
            for column in range(3):
                sum_[column] += row[column]
            if at == root:
                break
            at = at.rpartition(b"/")[0] or b"/"
    return whole


def largest_subtrees(whole: dict[bytes, list[int]], root: bytes, count: int) -> list[bytes]:
    """The subtrees that say most: not those nine tenths of which lie in one below them."""
    inner: dict[bytes, int] = {}
    for folder, row in whole.items():
        if folder != root:
            above = folder.rpartition(b"/")[0] or b"/"
            inner[above] = max(inner.get(above, 0), row[1])
    telling = [f for f, r in whole.items() if f != root and inner.get(f, 0) < 0.9 * r[1]]
    return sorted(telling, key=lambda f: (-whole[f][1], f))[:count]


def answer_data(order: WalkOrder, sums: WalkSums, calls: int) -> dict[str, Any]:
    """What is printed."""
    sums.settle_links()
    whole = sum_below(sums, order.path)
    shown = list(whole) if order.all else largest_subtrees(whole, order.path, order.top)
    owners = sorted(sums.owners.items(), key=lambda row: -row[1][0])[: order.top]
    return {
        **_row_fields(whole[order.path]),
        "complete": not sums.left,
        "unread": sums.unread,
        "stuck": sums.stuck,
        "errors": {_show_path(path): text for path, text in sums.errors.items()},
        "calls": calls,
        "dirs": {_show_path(path): _row_fields(whole[path]) for path in shown},
        "owners": {str(uid): {"allocated": 512 * b, "entries": n} for uid, (b, n) in owners},
    }


def _show_path(path: bytes) -> str:
    """A name that is in no encoding has to be one in JSON."""
    return path.decode("utf-8", "backslashreplace")


def _row_fields(row: list[int]) -> dict[str, int]:
    return {"apparent": row[0], "allocated": 512 * row[1], "entries": row[2]}


def _is_never_slow(calls: int, seconds: float) -> bool:
    return False


def main() -> None:
    """Print the answer. The walk is a child's: one that hangs is left behind, and named."""
    order = WalkOrder(sys.argv[1])
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(out)
        _walk_for(order, into)
    os.close(into)
    said = read_all(out, order.deadline + PATIENCE)
    stuck = 0 if has_child_ended(pid) else pid
    if not said and stuck:
        print(stuck, flush=True)  # noqa: T201
        sys.exit(HANGS)
    found = json.loads(said) if said else {"error": "it ended without an answer"}
    if "error" in found:
        print(found["error"], file=sys.stderr, flush=True)  # noqa: T201
        sys.exit(1)
    print(json.dumps({**found, "stuck": stuck or found["stuck"]}), flush=True)  # noqa: T201


def _walk_for(order: WalkOrder, into: int) -> NoReturn:
    """In the child: it lets go of the output before it ends, which it perhaps never does."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        try:
            said: dict[str, Any] = answer_data(order, *walk_order(order))
        except OSError as error:
            said = {"error": error.strerror or str(error)}
        with os.fdopen(into, "w") as file:
            file.write(json.dumps(said))
    finally:
        os._exit(0)


# A fast file system: several processes that give each other directories.


LONGEST = 8000
GIVEN = 16
AFTER = 1.0
"""Seconds that the others have to tell what they found when the time is over."""

_IDLE, _SENT, _TAKEN, _STOP = 0, 1, 2, 3


class WalkBoard:
    """What every process writes of itself and all may read: idle, units sent and taken.

    Each number has one writer, so nothing is ever locked. All is done when all are idle and
    nothing that was sent has not been taken, twice in a row with the same numbers.
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
    """One walk by several processes; this one is number 0 and walks too."""

    def __init__(self, walker: TreeWalker, stack: list[Unit], count: int) -> None:
        import socket

        self._walker, self._stack, self._count = walker, stack, count
        self._board = WalkBoard(count)
        self._give, self._take = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._give.setblocking(False)
        self._take.setblocking(False)

    def run_walk(self) -> tuple[WalkSums, int]:
        """All that was found by all, and in how many calls."""
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
            walker.walk_folder(stack.pop(), _has_no_files)
        walker.sums.left += len(stack)

    def _receive_work(self, who: int) -> bool:
        """Wait for work; False when there will be none."""
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
        """The oldest directories are the highest, and so the largest."""
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
            self._board.count_one(who, _TAKEN)  # the way is full: it is still ours
            return
        del self._stack[: len(given)]


def has_child_ended(pid: int, patience: float = 0.2) -> bool:
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


def _has_no_files(calls: int, seconds: float) -> bool:
    return False


def _read_child(pipe: int, deadline: float) -> dict[str, Any] | None:
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
