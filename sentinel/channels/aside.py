"""Runs work that may hang in a thread that can be left behind."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from sentinel.proc import threads

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

_unfinished: dict[Hashable, Future[Any]] = {}


class StillOccupied(Exception):
    """A thread that was left behind still works on the same thing."""


async def run_in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run the function in one of asyncio's threads. Use it only for what ends by itself."""
    import asyncio  # not needed if a configuration is only read

    return await asyncio.to_thread(function, *args)


async def run_aside(what: Hashable, work: Callable[[], T], limit: float) -> T:
    """Run the work in a thread and return its result.

    Raises TimeoutError after `limit` seconds. Raises StillOccupied while an earlier call still
    works on the same thing, so two never run at once.
    """
    import asyncio  # not needed if a configuration is only read

    former = _unfinished.get(what)
    if former and not former.done():
        raise StillOccupied
    _unfinished[what] = done = threads.run_in_thread("sentinel-aside", work)
    try:
        return await asyncio.wait_for(asyncio.wrap_future(done), limit)
    except asyncio.TimeoutError:  # in Python 3.10 this is not a TimeoutError
        raise TimeoutError from None
