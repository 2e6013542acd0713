"""Waiting for something real to happen, never longer than a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def wait_until(
    ready: Callable[[], Answer], what: str | Callable[[], str], limit: float = 10.0
) -> Answer:
    """The first true answer of `ready`, asked every 50 ms; TimeoutError names `what` after limit."""
    deadline = time.monotonic() + limit
    while not (answer := ready()):
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise TimeoutError(f"not within {limit:g} s: {text}")
        time.sleep(0.05)
    return answer
