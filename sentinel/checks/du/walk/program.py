"""The program: reads an order, and prints one JSON object."""

from __future__ import annotations

import json
import os
import sys
import time
from _thread import start_new_thread
from typing import Any, NoReturn

from sentinel.checks.du.walk.shared import SharedWalk, has_child_ended, read_all
from sentinel.checks.du.walk.sums import CallPace, WalkOrder, WalkSums, WalkTally
from sentinel.checks.du.walk.threads import WalkThreads
from sentinel.checks.du.walk.walk import NamesPiece, TreeWalker, Unit, mounted_names
from sentinel.core.work import PROGRESS_PREFIX

SLOW = 100e-6
"""If a call takes more seconds than this on average, most of the time is waiting."""

WINDOW = 0.02
"""Seconds over which the average is taken. On a busy machine, another process may get the processor
for less than that."""

ALONE = 0.03
"""Seconds for which one process walks before it is worth starting others."""


TELL_EVERY_S = 0.5

PATIENCE = 1.5
HANGS = 3
"""PATIENCE: seconds for the answer after the time is over. HANGS: the exit code if there is no
answer. Then the pid of the process that hangs is printed."""


class CallSpeed:
    """Judges by the latest calls whether the file system is slow."""

    def __init__(self) -> None:
        self._calls, self._seconds = 0, 0.0

    def is_slow(self, calls: int, seconds: float) -> bool:
        """Add calls and the seconds that they took. Returns whether the calls are slow, so that
        waiting takes the time."""
        self._calls += calls
        self._seconds += seconds
        if self._seconds < WINDOW:
            return False
        mean = self._seconds / max(1, self._calls)
        self._calls, self._seconds = 0, 0.0
        return mean > SLOW


def walk_order(order: WalkOrder) -> tuple[WalkSums, int]:
    """Walk the whole tree, as fast as the order allows. Returns the sums and the number of
    calls."""
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
            stack.pop(), speed.is_slow if order.threads > 1 else lambda _calls, _seconds: False
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
    """The sums of each directory with everything below it. The deepest ones come first and each is
    added once, to the one above: anybody can make a directory of 10,000 levels in a second."""
    waiting: dict[int, dict[bytes, list[int]]] = {}
    for folder, row in sums.dirs.items():
        waiting.setdefault(_depth(folder), {})[folder] = [*row]
    whole: dict[bytes, list[int]] = {}
    for depth in range(max(waiting, default=0), _depth(root) - 1, -1):
        level = waiting.pop(depth, {})
        whole |= level
        if depth == _depth(root):
            break
        for folder, row in level.items():
            above = folder.rpartition(b"/")[0] or b"/"
            sum_ = waiting.setdefault(depth - 1, {}).setdefault(above, [0, 0, 0])
            for column in range(3):
                sum_[column] += row[column]
    return whole


def _depth(folder: bytes) -> int:
    return folder.count(b"/") if folder != b"/" else 0


def largest_subtrees(whole: dict[bytes, list[int]], root: bytes, count: int) -> list[bytes]:
    """The largest subtrees. A subtree is left out if one subtree below it has nine tenths of its
    bytes on disk."""
    inner: dict[bytes, int] = {}
    for folder, row in whole.items():
        if folder != root:
            above = folder.rpartition(b"/")[0] or b"/"
            inner[above] = max(inner.get(above, 0), row[1])
    telling = [f for f, r in whole.items() if f != root and inner.get(f, 0) < 0.9 * r[1]]
    return sorted(telling, key=lambda f: (-whole[f][1], f))[:count]


def answer_data(order: WalkOrder, sums: WalkSums, calls: int) -> dict[str, Any]:
    """The object that is printed."""
    sums.settle_links()
    whole = sum_below(sums, order.path)
    shown = list(whole) if order.all else largest_subtrees(whole, order.path, order.top)
    owners = sorted(sums.owners.items(), key=lambda row: -row[1][0])[: order.top]
    return {
        **_row_fields(whole[order.path]),
        "complete": not sums.left,
        "unread": sums.unread,
        "deep": sums.deep,
        "stuck": sums.stuck,
        "errors": {_show_path(path): text for path, text in sums.errors.items()},
        "calls": calls,
        "dirs": {_show_path(path): _row_fields(whole[path]) for path in shown},
        "owners": {str(uid): {"allocated": 512 * b, "entries": n} for uid, (b, n) in owners},
    }


def _show_path(path: bytes) -> str:
    """The path as text that JSON can hold. Bytes that are not UTF-8 are shown escaped."""
    return path.decode("utf-8", "backslashreplace")


def _row_fields(row: list[int]) -> dict[str, int]:
    return {"apparent": row[0], "allocated": 512 * row[1], "entries": row[2]}


def main() -> None:
    """Walk in a child, and print its answer. A child that hangs is left behind, and its pid is
    printed."""
    order = WalkOrder(sys.argv[1])
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(out)
        _walk_for(order, into)
    os.close(into)
    if order.tally is not None:
        start_new_thread(_tell_progress, (order.tally,))
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


def _tell_progress(tally: WalkTally) -> None:
    """Print a line at intervals until this process ends: entries, their total (0: not known),
    bytes."""
    while True:
        time.sleep(TELL_EVERY_S)
        line = f"{PROGRESS_PREFIX}{tally.total_entries()} 0 {tally.total_bytes()}\n"
        os.write(2, line.encode())


def _walk_for(order: WalkOrder, into: int) -> NoReturn:
    """Walk in the child. It closes the standard streams first, because it may never end."""
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
