"""Runs what may block in daemon threads, none of which can keep the process from ending."""

from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import finalize

if TYPE_CHECKING:
    from concurrent.futures import Future

Result = TypeVar("Result")


class PendingCall(Generic[Result]):
    """The result of a call in another thread: the few features of a Future that are needed here.
    concurrent.futures imports logging, which takes a tenth of a command's start."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._result: Result | None = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return self._done.is_set()

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result and return it, or raise its error. Raises TimeoutError after
        `timeout` seconds."""
        if not self._done.wait(timeout):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def set_running_or_notify_cancel(self) -> bool:
        """Always True: nobody can cancel the call."""
        return True

    def set_result(self, result: Result) -> None:
        self._result = result
        self._done.set()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._done.set()


def _make_future(function: Callable[[], Result]) -> Future[Result]:
    """A future for what the function will return."""
    from concurrent.futures import Future

    return Future()


def run_in_thread(name: str, function: Callable[[], Result]) -> Future[Result]:
    """Run the function in a thread of its own; the future may be abandoned."""
    future = _make_future(function)
    _begin_thread(name, future, function)
    return future


def run_within(seconds: float, name: str, function: Callable[[], Result]) -> Result:
    """The function's result. Raises TimeoutError if it takes longer; then its thread is left
    behind."""
    pending = PendingCall[Result]()
    _begin_thread(name, pending, function)
    return _await_result(pending, seconds)


def _begin_thread(
    name: str, future: Future[Result] | PendingCall[Result], function: Callable[[], Result]
) -> None:
    threading.Thread(target=_fulfil_call, args=(future, function), name=name, daemon=True).start()


class BoundedWorker:
    """Runs calls that may hang in one thread, each within a limit of seconds. 0: calls run
    directly, without a limit.

    A call that hangs is left behind, and no other is begun until it has ended, because two must not
    write at once. Raises TimeoutError in both cases."""

    def __init__(self, seconds: float, name: str) -> None:
        self._seconds, self._name = seconds, name
        self._worker: StoreThread | None = None
        self._stuck: PendingCall[Any] | None = None

    def do_within(self, work: Callable[[], Result], seconds: float = 0.0) -> Result:
        """The result of the call. `seconds`: another limit for this call."""
        if not self._seconds:
            return work()
        if self._stuck is not None and not self._stuck.done():
            raise TimeoutError(errno.ETIMEDOUT, f"no answer for {self._seconds:.0f} s and more")
        if self._worker is None:
            self._worker = StoreThread(self._name)
            finalize(self, self._worker.stop_thread)
        future = self._worker.add_call(PendingCall[Result](), work)
        try:
            return _await_result(future, seconds or self._seconds)
        except TimeoutError:
            self._stuck = future
            raise


def _await_result(future: PendingCall[Result], seconds: float) -> Result:
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():
            return future.result()  # it ended just now, or raises its own error
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:.0f} s") from None


def run_together(
    name: str, work: Callable[[], object], count: int, limit: float | None = None
) -> None:
    """Run the same function in `count` threads, until all have ended or `limit` seconds are
    over."""
    from concurrent.futures import wait

    wait([run_in_thread(name, work) for _ in range(count)], limit)


class StoreThread:
    """One thread that runs calls in order; no other thread uses the store."""

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[tuple[Any, Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run_queue, name=name, daemon=True).start()

    def call_async(self, function: Callable[..., Result], *args: Any) -> Awaitable[Result]:
        """The result of the call, as an awaitable for the event loop of the caller."""
        from asyncio import wrap_future  # one-shot checks start threads without a loop

        return wrap_future(self.submit_call(lambda: function(*args)))

    def call_and_wait(self, limit: float, function: Callable[..., Result], *args: Any) -> Result:
        """The result of the call, for a caller in another thread. Raises TimeoutError after `limit`
        seconds."""
        return self.add_call(PendingCall[Result](), lambda: function(*args)).result(limit)

    def stop_thread(self) -> None:
        """End the thread after the calls that are queued."""
        self._queue.put(None)

    def submit_call(self, function: Callable[[], Result]) -> Future[Result]:
        """Queue a call; its future may be abandoned."""
        future = _make_future(function)
        self._queue.put((future, function))
        return future

    def add_call(
        self, pending: PendingCall[Result], function: Callable[[], Result]
    ) -> PendingCall[Result]:
        """Queue a call for a caller that waits in a thread."""
        self._queue.put((pending, function))
        return pending

    def _run_queue(self) -> None:
        while (work := self._queue.get()) is not None:
            _fulfil_call(*work)
            del work  # otherwise an idle thread would keep the objects of its last call alive


def _fulfil_call(future: Future[Any] | PendingCall[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)
