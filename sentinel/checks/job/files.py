"""Looking at files that may lie on a mount that hangs: always in a child with a limit."""

import math
import os
import time
from collections.abc import Mapping, Sequence

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decoded
from sentinel.core.text import shortened, visible
from sentinel.proc.owned import tail_of

MOST_STUCK = 8
_ABSENT = ("No such file or directory", "Not a directory")


class Files:
    """The file system as seen through children that get `limit` seconds each, `total` together.

    A child that could not even be killed is kept in `stuck` by path; while it is there, no
    further one is sent after it, and while there are some, none at all.
    """

    def __init__(
        self, limit: float, stuck: Mapping[str, proc.Stuck], total: float = math.inf
    ) -> None:
        self.limit = limit
        self._deadline = time.monotonic() + total
        self.stuck = {p: s for p, s in stuck.items() if proc.still_stuck(s)}

    def there(self, path: str) -> bool:
        """Whether anything is there, links followed. Raises CannotTell."""
        done = self._run(["stat", "-L", "-c", "%F", "--", path], path)
        error = done.err.decode("utf-8", "backslashreplace")
        if not done.code or any(text in error for text in _ABSENT):
            return not done.code
        raise CannotTell(f"cannot look at {visible(path)}: {_one_line(error)}")

    def tail(self, path: str, size: int) -> str:
        """The last `size` bytes as text, or "" where there is no file. Raises CannotTell."""
        if not self.there(path):
            return ""
        done = self._run(["tail", "-c", str(size), "--", path], path)
        if done.code:
            error = done.err.decode("utf-8", "backslashreplace")
            raise CannotTell(f"cannot read {visible(path)}: {_one_line(error)}")
        return decoded(done.out)

    def own_tail(self, path: str, size: int, user: str) -> str:
        """As `tail`, of a regular file of that user; CannotTell for any other."""
        return tail_of(path, size, user, lambda argv: self._run(argv, path)) or ""

    def _run(self, argv: Sequence[str], path: str) -> proc.Done:
        if path in self.stuck:
            raise CannotTell(
                f"{visible(path)} hangs: process {self.stuck[path].pid} still waits for it"
            )
        left = self._deadline - time.monotonic()
        if left <= 0 or len(self.stuck) >= MOST_STUCK:
            why = "others took all the time" if left <= 0 else f"{len(self.stuck)} others hang"
            raise CannotTell(f"{visible(path)} was not looked at: {why}")
        try:
            return proc.run(
                argv,
                limit=min(self.limit, left),
                env={**os.environ, "LC_ALL": "C"},
                max_output=2**21,
            )
        except proc.TimedOut as error:
            if error.stuck:
                self.stuck[path] = error.stuck
            raise CannotTell(f"{visible(path)} does not answer: {error}") from error


def _one_line(text: str) -> str:
    return shortened(visible(text.strip()), 200)
