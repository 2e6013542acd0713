"""Keeps sentinel from starting another child beside one that not even SIGKILL ended."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sentinel.core.errors import CannotTell
from sentinel.proc.errors import TimedOut
from sentinel.proc.stuck import StuckProcess, still_stuck


class StillHanging(CannotTell):
    """No child was started.

    `stuck`, an earlier child for the same purpose, hangs in the kernel. It is None if too many
    others hang. The message completes a sentence about the question.
    """

    def __init__(self, message: str, stuck: StuckProcess | None = None) -> None:
        super().__init__(message)
        self.stuck = stuck


class HangingChildren:
    """Children that hang, by the purpose of each. `before`: those that an earlier run remembered.
    Every place that repeatedly asks something that may hang keeps one of these objects."""

    def __init__(
        self, before: Mapping[str, StuckProcess] | None = None, most: float = math.inf
    ) -> None:
        self.children = {what: s for what, s in (before or {}).items() if still_stuck(s)}
        self._most = most

    def hanging_child(self, what: str) -> StuckProcess | None:
        """The child for this purpose if it still hangs, else None; one that has ended is
        forgotten."""
        stuck = self.children.get(what)
        if stuck is None or still_stuck(stuck):
            return stuck
        self.children.pop(what, None)
        return None

    @contextmanager
    def start_alone(self, what: str) -> Iterator[None]:
        """Wrap the start of a child. Raises StillHanging while an earlier one for the same purpose
        hangs, or `most` others do. Remembers the child that a TimedOut leaves behind."""
        if stuck := self.hanging_child(what):
            raise StillHanging(f"hangs: process {stuck.pid} still waits for it", stuck)
        if (
            len([other for other in tuple(self.children) if self.hanging_child(other)])
            >= self._most
        ):
            raise StillHanging(f"was not looked at: {len(self.children)} others hang")
        try:
            yield
        except TimedOut as late:
            self.keep_hanging(what, late.stuck)
            raise

    def keep_hanging(self, what: str, stuck: StuckProcess | None) -> None:
        """Store a process that something else than sentinel's commands left behind. None: do
        nothing."""
        if stuck:
            self.children[what] = stuck
