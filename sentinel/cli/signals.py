"""Lets SIGINT, SIGTERM and SIGHUP end a command, whatever it waits for."""

import os
import signal
import time
from _thread import get_ident, start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_ENDING_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
# after such a signal, a wait is interrupted this often, with this pause in seconds
_TIMES, _PAUSE = 10, 0.2


class EndedBySignal(SystemExit):
    """A signal ends this process; its code is the exit code."""


def find_signal_end(error: BaseException) -> int | None:
    """The exit code if a signal has caused this error: code that was cut short can raise an error
    of its own. Python before 3.12 wraps what is raised while a class is made in RuntimeError
    (https://docs.python.org/3/whatsnew/3.12.html, "__set_name__"). None if it was no signal."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, EndedBySignal):
            return int(str(seen.code))
        if isinstance(seen, KeyboardInterrupt):
            return 128 + signal.SIGINT
        seen = seen.__cause__ or seen.__context__
    return None


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise EndedBySignal as SIGINT raises KeyboardInterrupt, without delay
    even if one comes right before the main thread waits.

    Python handles a signal between two instructions. A signal that comes after the last instruction
    and before the wait (a lock, poll(2)) does not interrupt the wait, and is handled only when the
    wait is over ("Execution of Python signal handlers" of the signal module): a SIGHUP once took
    the whole limit of a check. So a thread learns of each signal through set_wakeup_fd, and
    interrupts the wait by SIGURG, which has no other effect."""
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
    """Interrupt waits after each signal, until the other end of the pipe is closed."""
    while numbers := os.read(hears, 64):
        for _ in range(_TIMES if _ENDING_SIGNALS.intersection(numbers) else 0):
            time.sleep(_PAUSE)
            signal.pthread_kill(main, signal.SIGURG)
    os.close(hears)


def _exit_on_signal(number: int, _frame: object) -> NoReturn:
    """End the process. Commands that it has started are ended too, at exit, by sentinel.proc."""
    raise EndedBySignal(128 + number)
