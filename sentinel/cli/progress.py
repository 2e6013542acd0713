"""On a terminal, what a command waits for once it takes longer than two seconds."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

FIRST, AGAIN = 2.0, 10.0
"""Seconds until the first line, and between further ones."""

ALONE = ("run", "top")
"""What has the terminal to itself, and never ends by itself."""


def begin(words: Sequence[str]) -> None:
    """From now on, until `end`. Off a terminal nothing is said."""
    if words[:1] in [[name] for name in ALONE] or not sys.stderr.isatty():
        return
    began = time.monotonic()
    signal.signal(signal.SIGALRM, lambda *_: _tell(time.monotonic() - began))
    signal.setitimer(signal.ITIMER_REAL, FIRST, AGAIN)


def end() -> None:
    """Say no more."""
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def asking() -> Iterator[None]:
    """Inside, sentinel waits for the person, who knows that."""
    left, again = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.setitimer(signal.ITIMER_REAL, left, again)


def _tell(seconds: float) -> None:
    """Written past Python's buffers: the signal may come in the middle of another line's write."""
    from sentinel.core.values import duration_text

    text = f"… {duration_text(seconds)}: {_what()} (Ctrl-C ends it)\n"
    os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding or "ascii", "replace"))


def _what() -> str:
    running = sys.modules.get("sentinel.proc.running")
    found = Counter(os.path.basename(name) for name in running.programs()) if running else Counter()
    names = [f"{count} {name}" if count > 1 else name for name, count in found.most_common(3)]
    return f"waiting for {', '.join(names)}" if names else "still at work"
