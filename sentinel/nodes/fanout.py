"""One question to many nodes, some at a time, done by a deadline whatever they do."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sentinel.core.values import duration_text
from sentinel.proc import threads

Told = TypeVar("Told")
GRACE = 2.0
"""Seconds after the limit in which what is still asked is being ended."""
SHORTEST = 0.5
"""Seconds left below which no node is asked any more."""


def ask_all(
    nodes: Iterable[str],
    ask: Callable[[str, float], Told],
    *,
    fanout: int,
    limit: float,
    patience: float,
    late: Callable[[str], Told],
) -> Mapping[str, Told]:
    """`ask(node, seconds)` for every node, at most `fanout` at once, `patience` seconds each.

    Returns after `limit` seconds and GRACE at the latest. A node whose turn never came, or
    whose question does not end, gets `late(why)`.
    """
    names = list(dict.fromkeys(nodes))
    waiting, answers, broken = deque(names), dict[str, Told](), list[BaseException]()
    deadline = time.monotonic() + limit

    def work() -> None:
        while waiting and not broken:
            try:
                node = waiting.popleft()
                left = deadline - time.monotonic()
                if left < min(SHORTEST, patience):
                    return
                answers[node] = ask(node, min(patience, left))
            except IndexError:
                return
            except BaseException as error:
                broken.append(error)

    threads.run_together("remote", work, min(fanout, len(names)), limit + GRACE)
    if broken:
        raise broken[0]
    why = f"the limit of {duration_text(limit)} for all nodes passed before its answer"
    told = dict(answers)
    return {node: told[node] if node in told else late(why) for node in names}
