"""Users take turns, by the time already spent on each. So one user's jobs do not prevent the check
of another's."""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Thing = TypeVar("Thing")


def take_turns(things: Iterable[Thing], owner_of: Callable[[Thing], str]) -> Iterator[Thing]:
    """Each thing once. The next one is always of the owner on whose things the caller has spent the
    least time so far; of owners with the same time it is the one whose thing came first.

    What the caller does between two things is the time of the first of them. The things of one owner
    keep their order, so whoever puts those first that were not seen last time sees all in the end.
    """
    waiting: dict[str, deque[Thing]] = {}
    for thing in things:
        waiting.setdefault(owner_of(thing), deque()).append(thing)
    # sorted, so it is already a heap
    spent = [(0.0, place, owner) for place, owner in enumerate(waiting)]
    while spent:
        seconds, place, owner = heapq.heappop(spent)
        began = time.monotonic()
        yield waiting[owner].popleft()
        if waiting[owner]:
            heapq.heappush(spent, (seconds + time.monotonic() - began, place, owner))
