"""Asks many nodes the same question, some at a time, and returns by a deadline whatever they do."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sentinel.core.values import duration_text
from sentinel.core.work import track_work
from sentinel.proc import threads

Told = TypeVar("Told")
GRACE = 2.0
"""Seconds after the limit in which questions that still run are ended."""
SHORTEST = 0.5
"""With fewer seconds left than this, no further node is asked."""


def ask_all(
    nodes: Iterable[str],
    ask: Callable[[str, float], Told],
    *,
    fanout: int,
    limit: float,
    patience: float,
    late: Callable[[str], Told],
    label: str = "asking",
    unit: str = "nodes",
) -> Mapping[str, Told]:
    """Call `ask(node, seconds)` for every node, at most `fanout` at once, with `patience` seconds
    each.

    Returns the answers by node, after `limit` seconds and GRACE at the latest. A node that was not
    asked in time, or whose question does not end, gets `late(why)`. A terminal shows `label` and
    how many `unit` are done."""
    names = list(dict.fromkeys(nodes))
    waiting, answers, broken = deque(names), dict[str, Told](), list[BaseException]()
    deadline = time.monotonic() + limit

    def ask_next() -> None:
        while waiting and not broken:
            try:
                node = waiting.popleft()
                left = deadline - time.monotonic()
                if left < min(SHORTEST, patience):
                    return
                answers[node] = ask(node, min(patience, left))
                tracked.advance(node)
            except IndexError:
                return
            except BaseException as error:
                broken.append(error)

    with track_work(label, unit, len(names)) as tracked:
        threads.run_together("remote", ask_next, min(fanout, len(names)), limit + GRACE)
    if broken:
        raise broken[0]
    why = f"the limit of {duration_text(limit)} for all nodes passed before its answer"
    told = dict(answers)
    return {node: told[node] if node in told else late(why) for node in names}
