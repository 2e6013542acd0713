"""What may hang is done in a thread of its own, and given up after a limit."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout  # the builtin one from 3.11 on
from errno import ETIMEDOUT
from typing import Any, TypeVar

from sentinel.proc import threads
from sentinel.store.errors import Unavailable

PATIENCE = 20.0
"""Seconds for one answer of the state. A disk that is only busy is asked again soon."""

Answer = TypeVar("Answer")


class Limited:
    """Does what may hang in a thread of its own; one that hangs is left behind, and nothing more
    is asked until it has ended: two must not write at once."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._worker: threads.Worker | None = None
        self._stuck: Future[Any] | None = None

    def do(self, work: Callable[[], Answer], patience: float = 0.0) -> Answer:
        """Raises Unavailable where it takes longer."""
        if self._stuck is not None and not self._stuck.done():
            raise Unavailable(f"the state hangs: no answer for {self._patience:.0f} s and more")
        self._worker = self._worker or threads.Worker("state's own")
        future, limit = self._worker.submit(work), patience or self._patience
        try:
            self._stuck = None
            return future.result(limit)
        except FutureTimeout:
            if future.done():
                return future.result()  # in the very last moment, or its own error
            self._stuck = future
            raise Unavailable(f"the state hangs: no answer within {limit:.0f} s") from None

    def ask(self, work: Callable[[], Answer]) -> Answer:
        """As `do`, for what is no answer of the state: raises OSError."""
        try:
            return self.do(work)
        except Unavailable as error:
            raise OSError(ETIMEDOUT, str(error)) from error

    def stop(self) -> None:
        """The thread ends, unless it hangs."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None
