"""Errors of commands that gave no answer."""

from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.proc.stuck import StuckProcess


class CommandNotFound(CannotAsk):
    """The command could not be started: it is missing, not executable or a directory, or its
    working directory is missing."""


class TimedOut(CannotTell):
    """The limit passed and the group was killed. `stuck`: the child, if that did not end it. `err`,
    `out`: its standard error and output until then."""

    def __init__(
        self, message: str, stuck: StuckProcess | None = None, err: bytes = b"", out: bytes = b""
    ) -> None:
        super().__init__(message)
        self.stuck, self.err, self.out = stuck, err, out


class SlowStart(TimedOut):
    """The child was ended before it could take a first request. So the file that it would have read
    is not to blame."""


class TooMuchOutput(CannotTell):
    """The command printed more than its limit, and was killed."""
