"""No second child is sent beside one that not even SIGKILL ended."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sentinel.core.errors import CannotTell
from sentinel.proc.errors import TimedOut
from sentinel.proc.stuck import StuckProcess, still_stuck


class StillHanging(CannotTell):
    """Nothing was started: `stuck`, an earlier child for the same, hangs in the kernel; None where
    too many others do. The message continues a sentence about what was to be asked."""

    def __init__(self, message: str, stuck: StuckProcess | None = None) -> None:
        super().__init__(message)
        self.stuck = stuck


class HangingChildren:
    """The children that hang, by what each was sent for; `before` is what was remembered of them.

    Every place that may ask something that hangs, and asks it again, keeps one of these.
    """

    def __init__(
        self, before: Mapping[str, StuckProcess] | None = None, most: float = math.inf
    ) -> None:
        self.children = {what: s for what, s in (before or {}).items() if still_stuck(s)}
        self._most = most

    def hanging_child(self, what: str) -> StuckProcess | None:
        """The child for that, if it hangs to this moment; one that has ended is forgotten."""
        stuck = self.children.get(what)
        if stuck is None or still_stuck(stuck):
            return stuck
        self.children.pop(what, None)
        return None

    @contextmanager
    def start_alone(self, what: str) -> Iterator[None]:
        """Around whatever starts a child. Raises StillHanging while an earlier one for the same hangs, or
        `most` others do; keeps the child that a TimedOut leaves behind."""
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
        """Remember what was left behind by something other than a command of ours; None: nothing."""
        if stuck:
            self.children[what] = stuck
