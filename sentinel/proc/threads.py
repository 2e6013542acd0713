"""Daemon threads for what may block: none of them can keep the process from ending."""

import errno
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeout  # the builtin one from 3.11 on
from typing import Any, TypeVar

Result = TypeVar("Result")
_Work = tuple["Future[Any]", Callable[[], Any]]


def start(name: str, function: Callable[[], Result]) -> "Future[Result]":
    """Run in a thread of its own; the future may be abandoned."""
    future: Future[Result] = Future()
    threading.Thread(target=_fulfil, args=(future, function), name=name, daemon=True).start()
    return future


def within(seconds: float, name: str, function: Callable[[], Result]) -> Result:
    """Its result. OSError where it takes longer: then its thread is left behind."""
    future = start(name, function)
    try:
        return future.result(seconds)
    except FutureTimeout:
        if future.done():
            return future.result()  # in the very last moment, or its own error
        raise OSError(errno.ETIMEDOUT, f"no answer within {seconds:.0f} s") from None


class Patience:
    """Does what may hang, each in a thread of its own for so many seconds; 0: here and for as long
    as it takes. Where one hung, nothing more is begun. Raises OSError for both."""

    def __init__(self, seconds: float, name: str) -> None:
        self._seconds, self._name = seconds, name
        self._hangs = False

    def do(self, work: Callable[[], Result]) -> Result:
        """Its result."""
        if not self._seconds:
            return work()
        if self._hangs:
            raise OSError(errno.ETIMEDOUT, "did not answer before")
        try:
            return within(self._seconds, self._name, work)
        except OSError as error:
            self._hangs = error.errno == errno.ETIMEDOUT
            raise


def together(name: str, work: Callable[[], object], count: int, limit: float | None = None) -> None:
    """Do the same in so many threads, until all have ended or `limit` seconds are over."""
    wait([start(name, work) for _ in range(count)], limit)


class Worker:
    """One thread that runs calls in order: the only one that touches the store."""

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def call(self, function: Callable[..., Result], *args: Any) -> Awaitable[Result]:
        """The call's result, to be awaited in the event loop that asks for it."""
        from asyncio import wrap_future  # one-shot checks start threads without a loop

        return wrap_future(self.submit(lambda: function(*args)))

    def wait(self, limit: float, function: Callable[..., Result], *args: Any) -> Result:
        """The call's result from another thread; raises TimeoutError after `limit` seconds."""
        return self.submit(lambda: function(*args)).result(limit)

    def stop(self) -> None:
        """End after the calls that are queued."""
        self._queue.put(None)

    def submit(self, function: Callable[[], Result]) -> "Future[Result]":
        """Call it in its turn; the future may be abandoned."""
        future: Future[Result] = Future()
        self._queue.put((future, function))
        return future

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            _fulfil(*work)


def _fulfil(future: "Future[Any]", function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)
