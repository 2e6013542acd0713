"""Daemon threads for what may block: none of them can keep the process from ending."""

import errno
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeout  # the builtin one from 3.11 on
from typing import Any, TypeVar
from weakref import finalize

Result = TypeVar("Result")
_Work = tuple["Future[Any]", Callable[[], Any]]


def start(name: str, function: Callable[[], Result]) -> "Future[Result]":
    """Run in a thread of its own; the future may be abandoned."""
    future: Future[Result] = Future()
    threading.Thread(target=_fulfil, args=(future, function), name=name, daemon=True).start()
    return future


def within(seconds: float, name: str, function: Callable[[], Result]) -> Result:
    """Its result. TimeoutError where it takes longer: then its thread is left behind."""
    return _awaited(start(name, function), seconds)


class Patience:
    """Does what may hang in a thread of its own, for so many seconds; 0: here, for as long as it
    takes. What hangs is left behind, and nothing more is begun until it has ended: two must not
    write at once. Raises TimeoutError for both."""

    def __init__(self, seconds: float, name: str) -> None:
        self._seconds, self._name = seconds, name
        self._worker: Worker | None = None
        self._stuck: Future[Any] | None = None

    def do(self, work: Callable[[], Result], seconds: float = 0.0) -> Result:
        """Its result; `seconds`: another limit for this one."""
        if not self._seconds:
            return work()
        if self._stuck is not None and not self._stuck.done():
            raise TimeoutError(errno.ETIMEDOUT, f"no answer for {self._seconds:.0f} s and more")
        if self._worker is None:
            self._worker = Worker(self._name)
            finalize(self, self._worker.stop)
        future = self._worker.submit(work)
        try:
            return _awaited(future, seconds or self._seconds)
        except TimeoutError:
            self._stuck = future
            raise


def _awaited(future: "Future[Result]", seconds: float) -> Result:
    try:
        return future.result(seconds)
    except FutureTimeout:
        if future.done():
            return future.result()  # in the very last moment, or its own error
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:.0f} s") from None


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
            del work  # an idle thread would keep alive all that it worked for, and so itself


def _fulfil(future: "Future[Any]", function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)
