"""Remembers children that not even SIGKILL ends, recognizes them later, and reaps them when they
end."""

import os
from _thread import allocate_lock

from msgspec import Struct

_abandoned: list[int] = []
_lock = allocate_lock()


class StuckProcess(Struct, frozen=True):
    """A child that not even SIGKILL ended: its pid, start time in clock ticks, and boot. `user`:
    the owner of the file that it waits for, if known."""

    pid: int
    started: int
    boot: str
    user: str = ""


def still_stuck(stuck: StuckProcess) -> bool:
    """Whether that same child is still there, in this boot, and is not a zombie."""
    reap_abandoned()
    return stuck.boot == boot_id() and start_ticks(stuck.pid) == stuck.started


def boot_id() -> str:
    """The kernel's random id of this boot (proc(5)); empty if it has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def abandon_child(pid: int) -> StuckProcess:
    """Stop waiting for that child, and remember it."""
    with _lock:
        _abandoned.append(pid)
    return StuckProcess(pid, start_ticks(pid) or 0, boot_id())


def remember_process(pid: int) -> StuckProcess:
    """Remember a process that one of our commands could not end and has named. It is not our
    child."""
    return StuckProcess(pid, start_ticks(pid) or 0, boot_id())


def reap_abandoned() -> None:
    """Reap abandoned children that have ended since."""
    with _lock:
        for pid in tuple(_abandoned):
            try:
                gone = os.waitpid(pid, os.WNOHANG)[0]
            except ChildProcessError:
                gone = pid
            if gone:
                _abandoned.remove(pid)


def start_ticks(pid: int) -> int | None:
    """The process's start time in clock ticks since boot, field 22 of proc_pid_stat(5); None if it
    is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # If the first thread has ended, the process looks like a zombie, although its other threads
    # hang.
    alone = int(fields[17]) <= 1
    return None if fields[0] in (b"Z", b"X") and alone else int(fields[19])
