"""The progress of work that may take long, for a terminal that shows it; a service shows none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PROGRESS_VARIABLE = "SENTINEL_PROGRESS"
"""Environment variable of a child that has to report its progress on its standard error."""

PROGRESS_PREFIX = "progress "
"""The beginning of a progress line: `progress DONE TOTAL BYTES`. A total of 0 means that it is not
known."""


class Work:
    """Work that is under way. Threads may advance it: a count that misses one does no harm."""

    __slots__ = ("began", "bytes", "done", "label", "place", "total", "unit")

    def __init__(self, label: str, unit: str, total: int = 0, place: str = "") -> None:
        self.label, self.unit, self.total = label, unit, total
        self.done = self.bytes = 0
        self.place = place  # the path or node in work, or the last one
        self.began = time.monotonic()

    def advance(self, place: str = "") -> None:
        """Count one more thing as done."""
        self.done += 1
        self.place = place

    def hear_child(self, said: bytes) -> None:
        """Take the numbers from a child's last line; other lines are not about progress."""
        for line in said.decode(errors="replace").splitlines()[-1:]:
            numbers = line.removeprefix(PROGRESS_PREFIX).split()
            if (
                line.startswith(PROGRESS_PREFIX)
                and len(numbers) == 3
                and "".join(numbers).isdigit()
            ):
                self.done, self.total, self.bytes = map(int, numbers)


_under_way: list[Work] = []
_watchers: list[Callable[[], None]] = []


@contextmanager
def track_work(label: str, unit: str, total: int = 0, place: str = "") -> Iterator[Work]:
    """Inside, this work is under way. `total` 0: not known. If a person ends the work, its last
    numbers stay on the screen."""
    one = Work(label, unit, total, place)
    _under_way.append(one)
    try:
        yield one
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        _end_work(one)
        raise
    _end_work(one)


def _end_work(one: Work) -> None:
    _under_way.remove(one)
    hide_work()


def hide_work() -> None:
    """Remove the progress from the screen for now, since something else is printed."""
    for on_print in _watchers:
        on_print()


def find_work() -> Work | None:
    """The innermost work in progress. None if there is none."""
    return _under_way[-1] if _under_way else None


def watch_work(on_print: Callable[[], None]) -> None:
    """Register a watcher; `on_print` is called when work has ended or something is printed."""
    _watchers.append(on_print)


def is_watched() -> bool:
    """Whether anybody watches. If not, a child process need not report its progress."""
    return bool(_watchers)


def list_child_variables() -> dict[str, str]:
    """Environment variables that make a child report its progress; empty if nobody watches."""
    return {PROGRESS_VARIABLE: "1"} if is_watched() else {}


def drop_progress_lines(said: str) -> str:
    """The child's output without progress lines."""
    return "\n".join(line for line in said.splitlines() if not line.startswith(PROGRESS_PREFIX))
