"""Work that may hang, in a thread that can be left behind."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

_unfinished: dict[Hashable, Thread] = {}


class Occupied(Exception):
    """A thread that was left behind is still at work on the same thing."""


async def aside(what: Hashable, work: Callable[[], T], limit: float) -> T:
    """What the work returns or raises; TimeoutError after `limit` seconds, Occupied while an
    earlier work on the same thing goes on: there are never two at once."""
    former = _unfinished.get(what)
    if former and former.is_alive():
        raise Occupied
    done: Future[T] = Future()
    thread = Thread(target=_do, args=(work, done), name="sentinel-aside", daemon=True)
    _unfinished[what] = thread
    thread.start()
    return await asyncio.wait_for(asyncio.wrap_future(done), limit)


def _do(work: Callable[[], T], done: "Future[T]") -> None:
    """A future that was given up on takes no result."""
    with suppress(InvalidStateError):
        try:
            result = work()
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(result)
