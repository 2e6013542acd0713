"""Work that may hang, in a thread that can be left behind."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

_unfinished: dict[Hashable, Future[Any]] = {}


class StillOccupied(Exception):
    """A thread that was left behind is still at work on the same thing."""


async def run_aside(what: Hashable, work: Callable[[], T], limit: float) -> T:
    """What the work returns or raises; TimeoutError after `limit` seconds, Occupied while an
    earlier work on the same thing goes on: there are never two at once."""
    import asyncio

    from sentinel.proc import threads

    former = _unfinished.get(what)
    if former and not former.done():
        raise StillOccupied
    _unfinished[what] = done = threads.run_in_thread("sentinel-aside", work)
    return await asyncio.wait_for(asyncio.wrap_future(done), limit)
