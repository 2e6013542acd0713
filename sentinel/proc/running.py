"""Keeps a list of the running commands, and ends them if sentinel ends first.

Each command is in a session of its own, so nothing else would end it: neither Ctrl-C in a terminal
nor SIGTERM to a service reaches it, and a squeue that hangs on munge stays for a minute."""

import atexit
import os
import signal
import time
from _thread import get_ident, get_native_id
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from sentinel.core.errors import CannotAsk

_POLITE = 0.3  # seconds between SIGTERM and SIGKILL, for all processes together

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_groups: dict[int, str] = {}
_starting: set[int] = set()
_ended = False


def refuse_at_the_end() -> None:
    """Raise CannotAsk once the interpreter exits: nobody would end a command that a thread starts
    then."""
    if _ended:
        raise CannotAsk("sentinel is ending")


@contextmanager
def start_command() -> Iterator[None]:
    """Wrap the start of a command by this thread, until its process group is known. Raises
    CannotAsk once the interpreter exits. Signals that end sentinel are delivered after it."""
    _starting.add(get_ident())
    try:
        refuse_at_the_end()
        with _defer_signals():
            yield
    finally:
        _starting.discard(get_ident())


@contextmanager
def _defer_signals() -> Iterator[None]:
    """Delay signals: they raise their exceptions in the main thread between any two instructions,
    also between the start of a command and the line that notes its group. Then nobody would end
    it."""
    came: list[int] = []
    before: dict[int, Callable[[int, FrameType | None], object]] = {}
    try:
        for ending in _ENDING if get_native_id() == os.getpid() else ():
            if callable(told := signal.getsignal(ending)):
                before[ending] = told
                signal.signal(ending, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            before[number](number, None)


def add_group(group: int, name: str) -> None:
    """Note the process group of a command that was started, and its program."""
    _groups[group] = name


def discard_group(group: int) -> None:
    """Forget a process group that is gone or was abandoned."""
    _groups.pop(group, None)


def running_programs() -> list[str]:
    """The program of each command that runs just now."""
    return list(_groups.values())


@atexit.register
def end_all() -> None:
    """Send SIGTERM to every group, and after a moment SIGKILL to those that are left."""
    global _ended
    _ended = True
    if not (_groups or _starting):
        return
    for number in _ENDING:
        # otherwise a second Ctrl-C could come between the two signals
        signal.signal(number, signal.SIG_IGN)
    deadline = time.monotonic() + _POLITE
    while _starting and time.monotonic() < deadline:
        time.sleep(0.01)
    _signal_groups(signal.SIGTERM)
    while _groups and time.monotonic() < deadline:
        time.sleep(0.01)
    _signal_groups(signal.SIGKILL)


def _signal_groups(number: int) -> None:
    for group in tuple(_groups):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
