"""Why a command gave no answer."""

from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.proc.stuck import StuckProcess


class CommandNotFound(CannotAsk):
    """The command could not be started: missing, not executable, a directory, no such cwd."""


class TimedOut(CannotTell):
    """The limit passed and the group was killed; `stuck` when that did not end the child; `err` is
    what it had said on stderr until then."""

    def __init__(self, message: str, stuck: StuckProcess | None = None, err: bytes = b"") -> None:
        super().__init__(message)
        self.stuck, self.err = stuck, err


class TooMuchOutput(CannotTell):
    """The command printed more than was asked for and was killed."""
