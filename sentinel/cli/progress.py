"""Shows on a terminal the progress of work that takes longer than a second, and what a command
waits for.

Work that counts (`sentinel.core.work`) has one line that is redrawn, and removed when the work
ends. For everything else a line says after two seconds what the command waits for. In a pipe
nothing is shown."""

import os
import signal
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sentinel.core import work
from sentinel.core.text import visible
from sentinel.core.values import duration_text, size_text

FIRST, AGAIN = 2.0, 10.0
"""Seconds until the first line, and between further ones."""

SHOWN_AFTER_S, REDRAW_S = 1.0, 0.25
"""Seconds after which work is shown, and seconds between two drawings."""

SILENT_COMMANDS = ("run", "top")
"""Commands that use the terminal themselves, and never end by themselves."""

CLEAR_LINE = b"\r\x1b[2K"


class WorkLine:
    """The line about the work under way, which a thread of its own draws."""

    def __init__(self) -> None:
        self._drawing, self._stopped = allocate_lock(), allocate_lock()
        self._drawn = self._ended = False
        self._stopped.acquire()

    def start_drawing(self) -> None:
        """Draw the line until `stop_drawing`."""
        work.watch_work(self.clear)
        start_new_thread(self._draw_until_stopped, ())

    def stop_drawing(self) -> None:
        """Stop drawing. If a person has ended the work, its last numbers stay on the screen."""
        with self._drawing:
            one = work.find_work()
            if self._drawn and one is not None and not self._ended:
                self._write_text(f"{describe_work(one, time.monotonic())}\n")
            elif self._drawn:
                _write(CLEAR_LINE)
            self._drawn, self._ended = False, True

    def clear(self) -> None:
        """Remove the line, because something else is printed now."""
        with self._drawing:
            if self._drawn:
                _write(CLEAR_LINE)
            self._drawn = False

    def _draw_until_stopped(self) -> None:
        while not self._stopped.acquire(timeout=REDRAW_S) and not self._ended:
            one = work.find_work()
            if one is None or time.monotonic() - one.began < SHOWN_AFTER_S:
                continue
            # importing rich takes half of the start-up time
            from sentinel.cli.work_line import render_work

            with self._drawing:
                if one is work.find_work() and not self._ended:
                    self._write_text(render_work(one, time.monotonic()))
                    self._drawn = True

    def _write_text(self, text: str) -> None:
        _write(CLEAR_LINE + text.encode(sys.stderr.encoding or "ascii", "replace"))


_line: list[WorkLine] = []


def start_progress(words: Sequence[str]) -> None:
    """Show progress until `stop_progress`. Without a terminal nothing is shown."""
    if words[:1] in [[name] for name in SILENT_COMMANDS] or not sys.stderr.isatty():
        return
    began = time.monotonic()
    signal.signal(signal.SIGALRM, lambda *_: _write_progress(time.monotonic() - began))
    signal.setitimer(signal.ITIMER_REAL, FIRST, AGAIN)
    if os.environ.get("TERM", "dumb") != "dumb":
        _line.append(WorkLine())
        _line[-1].start_drawing()


def stop_progress() -> None:
    """Stop showing progress."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    while _line:
        _line.pop().stop_drawing()


@contextmanager
def pause_progress() -> Iterator[None]:
    """Show no progress inside, since sentinel waits for the person."""
    left, again = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.setitimer(signal.ITIMER_REAL, left, again)


def _write_progress(seconds: float) -> None:
    """Write a line past Python's buffers: the signal may come in the middle of another line."""
    if _line and work.find_work() is not None:
        return
    text = f"… {duration_text(seconds)}: {_describe_wait()} (Ctrl-C ends it)\n"
    os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding or "ascii", "replace"))


def _describe_wait() -> str:
    if one := work.find_work():
        return f"{one.label} {visible(one.place)}".rstrip()
    running = sys.modules.get("sentinel.proc.running")
    programs = running.running_programs() if running else ()
    found = Counter(
        "a helper of sentinel" if name == sys.executable else os.path.basename(name)
        for name in programs
    )
    names = [f"{count} {name}" if count > 1 else name for name, count in found.most_common(3)]
    return f"waiting for {', '.join(names)}" if names else "still at work"


def describe_work(one: work.Work, now: float) -> str:
    """How far it is, in words: what, how many, how much, how long."""
    from sentinel.cli.work_line import count_work

    count, size = count_work(one), size_text(one.bytes) if one.bytes else ""
    spent = f"ended after {duration_text(int(now - one.began))}"
    return f"{one.label}: {', '.join(filter(None, (count, size, spent, visible(one.place))))}"


def _write(data: bytes) -> None:
    os.write(sys.stderr.fileno(), data)
