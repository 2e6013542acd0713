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

SILENT_COMMANDS = ("run", "top")
"""What has the terminal to itself, and never ends by itself."""


def start_progress(words: Sequence[str]) -> None:
    """From now on, until `stop_progress`. Off a terminal nothing is said."""
    if words[:1] in [[name] for name in SILENT_COMMANDS] or not sys.stderr.isatty():
        return
    began = time.monotonic()
    signal.signal(signal.SIGALRM, lambda *_: _write_progress(time.monotonic() - began))
    signal.setitimer(signal.ITIMER_REAL, FIRST, AGAIN)


def stop_progress() -> None:
    """Say no more."""
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def pause_progress() -> Iterator[None]:
    """Inside, sentinel waits for the person, who knows that."""
    left, again = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.setitimer(signal.ITIMER_REAL, left, again)


def _write_progress(seconds: float) -> None:
    """Written past Python's buffers: the signal may come in the middle of another line's write."""
    from sentinel.core.values import duration_text

    text = f"… {duration_text(seconds)}: {_describe_wait()} (Ctrl-C ends it)\n"
    os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding or "ascii", "replace"))


def _describe_wait() -> str:
    running = sys.modules.get("sentinel.proc.running")
    found = (
        Counter(os.path.basename(name) for name in running.running_programs())
        if running
        else Counter()
    )
    names = [f"{count} {name}" if count > 1 else name for name, count in found.most_common(3)]
    return f"waiting for {', '.join(names)}" if names else "still at work"
