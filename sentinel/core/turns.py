"""Lets owners take turns if one of them may have very many things. Pure."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Thing = TypeVar("Thing")


def interleave(things: Iterable[Thing], owner_of: Callable[[Thing], Hashable]) -> list[Thing]:
    """The first thing of each owner, then the second of each, and so on. Otherwise the order
    stays."""
    counts = Counter[Hashable]()
    ranked: list[tuple[int, Thing]] = []
    for thing in things:
        owner = owner_of(thing)
        ranked.append((counts[owner], thing))
        counts[owner] += 1
    return [thing for _, thing in sorted(ranked, key=lambda one: one[0])]
