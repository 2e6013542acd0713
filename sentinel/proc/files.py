"""Looking at files that may lie on a mount that hangs: always in a child with a limit."""

import math
import os
import time
from collections.abc import Mapping, Sequence

from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.proc import Done, Hanging, Hangs, Stuck, TimedOut, run
from sentinel.proc.owned import tail_of

_ABSENT = ("No such file or directory", "Not a directory")


class Files:
    """Children that get `limit` seconds each, and `total` for all of them together.

    One that could not even be killed is kept in `stuck` by path; while it is there, no further
    one is sent after it, and while there are `MOST_STUCK`, none at all.
    """

    LATE = "hangs"
    MOST_STUCK = math.inf
    MOST_OUTPUT = 64 * 2**20

    def __init__(self, limit: float, total: float, stuck: Mapping[str, Stuck]) -> None:
        self.limit = limit
        self._deadline = time.monotonic() + total
        self._hanging = Hanging(stuck, self.MOST_STUCK)

    @property
    def stuck(self) -> dict[str, Stuck]:
        """The children that hang, by path: what the check has to remember."""
        return self._hanging.children

    @property
    def left(self) -> float:
        """Seconds that are left for all."""
        return self._deadline - time.monotonic()

    def own_tail(self, path: str, size: int, owner: str | None, since: float | None = None) -> str:
        """The last bytes of a regular file of that user, "" where there is none; see tail_of."""
        return tail_of(path, size, owner, lambda argv: self.ask(argv, path), since) or ""

    def ask(self, argv: Sequence[str], path: str) -> Done:
        """What a command says about that path; CannotTell where it does not answer in time."""
        try:
            with self._hanging.alone(path):
                if (left := self.left) <= 0:
                    raise Hangs("was not looked at: others took all the time")
                limit = min(self.limit, left)
                return run(argv, limit=limit, max_output=self.MOST_OUTPUT)
        except Hangs as hangs:
            raise CannotTell(f"{visible(path)} {hangs}") from None
        except TimedOut as late:
            raise CannotTell(f"{visible(path)} {self.LATE}: {late}") from late


def complaint(err: bytes) -> str:
    """The first line on stderr that is not about a file that is not there, without its head."""
    for line in os.fsdecode(err).splitlines():
        if not any(words in line for words in _ABSENT):
            return shortened(visible(line.rpartition(": ")[2]), 200)
    return ""


def refused(err: bytes, path: str) -> CannotTell:
    """What the last line on stderr says about that path."""
    why = os.fsdecode(err).strip().rpartition(": ")[2]
    return CannotTell(f"{visible(path)} cannot be read: {shortened(visible(why), 200)}")


def absent(err: bytes) -> bool:
    """Whether every complaint is about something that is not there."""
    lines = os.fsdecode(err).splitlines()
    return bool(lines) and all(any(words in line for words in _ABSENT) for line in lines)
