"""Reads what may hang (a shared disk) in a thread beside the event loop; nobody has to wait for it.

asyncio.to_thread would not do: the process waits for its threads before it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from sentinel.proc import threads

READ_TIMEOUT_S = 5.0
"""Seconds to wait for one reading."""

Read = TypeVar("Read")


class BackgroundReader:
    """Does one reading at a time; while one hangs, no further thread is started."""

    def __init__(self, limit: float = READ_TIMEOUT_S) -> None:
        self._limit, self._turn = limit, asyncio.Lock()
        self._reading: asyncio.Future[Any] | None = None

    async def read_in_time(self, reading: Callable[[], Read]) -> Read | None:
        """The result of the reading; None if it did not come in time, or an earlier one still
        hangs."""
        async with self._turn:
            if self._reading is not None and not self._reading.done():
                return None
            self._reading = _start_reading(reading)
            done, _ = await asyncio.wait([self._reading], timeout=self._limit)
            read: Read | None = self._reading.result() if done else None
            return read


def _start_reading(reading: Callable[[], Read]) -> asyncio.Future[Read]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Read] = loop.create_future()

    def run_reading() -> None:
        told: Callable[[], object]
        try:
            told = partial(future.set_result, reading())
        except Exception as error:
            told = partial(future.set_exception, error)
        with suppress(RuntimeError):  # the event loop may have ended
            loop.call_soon_threadsafe(told)

    threads.run_in_thread("aside", run_reading)
    return future
