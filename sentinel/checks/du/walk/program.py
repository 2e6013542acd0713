"""The program: an order in, one JSON object out."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, NoReturn

from sentinel.checks.du.walk.share import Shared, ended, read_all
from sentinel.checks.du.walk.sums import Order, Pace, Sums
from sentinel.checks.du.walk.threads import Threads
from sentinel.checks.du.walk.walk import Piece, Unit, Walker, mounts

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


class Speed:
    """Whether calls are slow here, by the latest ones."""

    def __init__(self) -> None:
        self._calls, self._seconds = 0, 0.0

    def slow(self, calls: int, seconds: float) -> bool:
        """These calls took so long; is it the waiting that costs?"""
        self._calls += calls
        self._seconds += seconds
        if self._seconds < WINDOW:
            return False
        mean = self._seconds / max(1, self._calls)
        self._calls, self._seconds = 0, 0.0
        return mean > SLOW


def walk(order: Order) -> tuple[Sums, int]:
    """The whole tree, as fast as the order allows; the sums and the number of calls."""
    root = os.stat(order.path, follow_symlinks=False)
    stack: list[Unit] = [(order.path, root.st_dev, root.st_ino)]
    pace, others = Pace(order.rate, order.deadline), mounts(root.st_dev)
    walker = Walker(order, root.st_dev, pace, stack.append, others)
    walker.sums.add(order.path, 0, root.st_blocks, 1)
    walker.sums.own(root.st_uid, root.st_blocks, 1)
    began, speed = time.monotonic(), Speed()
    if order.slow:
        Threads(walker, list[Unit | Piece](stack)).run()
        return walker.sums, walker.pace.calls
    while stack and not order.late:
        rest = walker.folder(stack.pop(), speed.slow if order.threads > 1 else _never)
        if rest:
            work: list[Unit | Piece] = [*stack, *rest]
            Threads(walker, work).run()
            return walker.sums, walker.pace.calls
        if time.monotonic() - began > ALONE and len(stack) > 1 and order.processes > 1:
            return Shared(walker, stack, order.processes).run()
    walker.sums.left += len(stack)
    return walker.sums, walker.pace.calls


def totals(sums: Sums, root: bytes) -> dict[bytes, list[int]]:
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


def largest(whole: dict[bytes, list[int]], root: bytes, count: int) -> list[bytes]:
    """The subtrees that say most: not those nine tenths of which lie in one below them."""
    inner: dict[bytes, int] = {}
    for folder, row in whole.items():
        if folder != root:
            above = folder.rpartition(b"/")[0] or b"/"
            inner[above] = max(inner.get(above, 0), row[1])
    telling = [f for f, r in whole.items() if f != root and inner.get(f, 0) < 0.9 * r[1]]
    return sorted(telling, key=lambda f: (-whole[f][1], f))[:count]


def answer(order: Order, sums: Sums, calls: int) -> dict[str, Any]:
    """What is printed."""
    sums.settle()
    whole = totals(sums, order.path)
    shown = list(whole) if order.all else largest(whole, order.path, order.top)
    owners = sorted(sums.owners.items(), key=lambda row: -row[1][0])[: order.top]
    return {
        **_row(whole[order.path]),
        "complete": not sums.left,
        "unread": sums.unread,
        "stuck": sums.stuck,
        "errors": {_shown(path): text for path, text in sums.errors.items()},
        "calls": calls,
        "dirs": {_shown(path): _row(whole[path]) for path in shown},
        "owners": {str(uid): {"allocated": 512 * b, "entries": n} for uid, (b, n) in owners},
    }


def _shown(path: bytes) -> str:
    """A name that is in no encoding has to be one in JSON."""
    return path.decode("utf-8", "backslashreplace")


def _row(row: list[int]) -> dict[str, int]:
    return {"apparent": row[0], "allocated": 512 * row[1], "entries": row[2]}


def _never(calls: int, seconds: float) -> bool:
    return False


def main() -> None:
    """Print the answer. The walk is a child's: one that hangs is left behind, and named."""
    order = Order(sys.argv[1])
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(out)
        _walk_for(order, into)
    os.close(into)
    said = read_all(out, order.deadline + PATIENCE)
    stuck = 0 if ended(pid) else pid
    if not said and stuck:
        print(stuck, flush=True)  # noqa: T201
        sys.exit(HANGS)
    found = json.loads(said) if said else {"error": "it ended without an answer"}
    if "error" in found:
        print(found["error"], file=sys.stderr, flush=True)  # noqa: T201
        sys.exit(1)
    print(json.dumps({**found, "stuck": stuck or found["stuck"]}), flush=True)  # noqa: T201


def _walk_for(order: Order, into: int) -> NoReturn:
    """In the child: it lets go of the output before it ends, which it perhaps never does."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        try:
            said: dict[str, Any] = answer(order, *walk(order))
        except OSError as error:
            said = {"error": error.strerror or str(error)}
        with os.fdopen(into, "w") as file:
            file.write(json.dumps(said))
    finally:
        os._exit(0)
