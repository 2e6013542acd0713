"""Waiting for something real to happen, never longer than a limit."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Answer = TypeVar("Answer")

HANG_LIMIT_S = 3.0
"""Limit for what never answers, where the child has to do something before it is over: reach the mount
that hangs, leave a process behind. A busy machine may take a second to start a shell."""


def wait_until(
    ready: Callable[[], Answer], what: str | Callable[[], str], limit: float = 30.0
) -> Answer:
    """The first true answer of `ready`; TimeoutError names `what` after limit.

    Asked every 50 ms. A question that starts a process must not hold up what it waits for, nor other
    tests: it is asked a third of the time at first, and less the longer it takes.
    """
    began = time.monotonic()
    while True:
        asked = time.monotonic()
        if answer := ready():
            return answer
        now = time.monotonic()
        if now - began > limit:
            text = what if isinstance(what, str) else what()
            raise TimeoutError(f"not within {limit:g} s: {text}")
        took = now - asked
        time.sleep(max(0.05, 2 * took, min(20 * took, (now - began) / 10)))


def begun(process: "subprocess.Popen[Any]") -> None:
    """Until others can see its arguments and environment: Popen returns when exec has closed the files of
    the program before, which is a moment earlier (begin_new_exec() of Linux, fs/exec.c)."""
    wait_until(Path(f"/proc/{process.pid}/environ").read_bytes, "its environment")
