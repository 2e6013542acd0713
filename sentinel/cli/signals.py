"""SIGINT, SIGTERM and SIGHUP end a command, whatever it waits for."""

import os
import signal
import time
from _thread import get_ident, start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_ENDING_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_TIMES, _PAUSE = 10, 0.2  # how often a wait is cut short after one of them, and seconds between


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise SystemExit as SIGINT raises KeyboardInterrupt; at once also
    where one comes right before the main thread waits.

    Python tells a signal between two instructions. One that comes after the last of them and before
    the wait (a lock, poll(2)) cuts nothing short, and is told when the wait is over ("Execution of
    Python signal handlers" of the signal module): a SIGHUP took the whole limit of a check. So a
    thread learns of each signal through set_wakeup_fd, and cuts the wait short by SIGURG, which has
    no effect of its own.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup(1)
            signal.signal(number, _exit_on_signal)
    signal.signal(signal.SIGURG, lambda *_: None)
    hears, tells = os.pipe()
    os.set_blocking(tells, False)
    before = signal.set_wakeup_fd(tells, warn_on_full_buffer=False)
    start_new_thread(_interrupt_waits, (hears, get_ident()))
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(tells)


def _interrupt_waits(hears: int, main: int) -> None:
    """Until the other end of the pipe is closed."""
    while numbers := os.read(hears, 64):
        for _ in range(_TIMES if _ENDING_SIGNALS.intersection(numbers) else 0):
            time.sleep(_PAUSE)
            signal.pthread_kill(main, signal.SIGURG)
    os.close(hears)


def _exit_on_signal(number: int, _frame: object) -> NoReturn:
    """What ends us, also a terminal that is closed, ends the commands that were started, too:
    sentinel.proc does it at exit."""
    raise SystemExit(128 + number)
