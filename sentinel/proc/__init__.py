"""The one place that starts processes: with limits for time and output, and killed with their
group.

Every program is started through env(1). posix_spawn(3) and subprocess both hold the interpreter's
lock until the child has replaced itself. So a program, a directory of PATH or a working directory
on a mount that hangs would stop every thread of sentinel for good. env is on the system's disk;
whatever hangs after it hangs in the child."""

import os
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from sentinel.core.text import visible
from sentinel.proc import running
from sentinel.proc.child import KILL_GRACE_S, ChildProcess
from sentinel.proc.errors import CommandNotFound, TimedOut, TooMuchOutput
from sentinel.proc.hanging import HangingChildren, StillHanging
from sentinel.proc.stuck import StuckProcess, boot_id, reap_abandoned, remember_process, still_stuck

__all__ = [
    "KILL_GRACE_S",
    "MAX_PAGE_BYTES",
    "CommandNotFound",
    "Done",
    "HangingChildren",
    "StillHanging",
    "StuckProcess",
    "TimedOut",
    "TooMuchOutput",
    "bare_environment",
    "boot_id",
    "english_environment",
    "remember_process",
    "run",
    "still_stuck",
]

MAX_PAGE_BYTES = 8 * 2**20
"""Bytes of a tool's output, unless the caller sets another limit: `nvidia-smi -q -x` prints 20 KiB
for each GPU, and parsing 8 MiB takes a second."""

_NOT_STARTED = (125, 126, 127)  # env(1): its own failure, command cannot run, command not found


class Done(Struct, frozen=True, kw_only=True):
    """A command that ended by itself. `code`: its exit code, negative for a signal."""

    code: int
    out: bytes
    err: bytes
    seconds: float


def english_environment() -> dict[str, str]:
    """This process's environment, with the language of messages set to English (locale(7))."""
    return {**os.environ, "LC_ALL": "C"}


def bare_environment(*names: str) -> dict[str, str]:
    """An environment for a child that acts as a user: of this process's own it has only these
    names, since a user could make the child open /proc/self/environ."""
    kept = ("LD_LIBRARY_PATH", *names)
    return {**{name: os.environ[name] for name in kept if name in os.environ}, "LC_ALL": "C"}


def run(
    argv: Sequence[str],
    *,
    limit: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    cwd: str | None = None,
    max_output: int = MAX_PAGE_BYTES,
    hear: Callable[[bytes], None] | None = None,
) -> Done:
    """Run a command to its end, for at most `limit` seconds (and GRACE for killing it).

    The command has ended when it and all processes that hold its output are gone. Raises
    CommandNotFound, TimedOut or TooMuchOutput. `env` None: this process's own environment with
    English messages, since callers parse them. `hear` gets each piece of its standard error at
    once."""
    reap_abandoned()
    began = time.monotonic()
    with running.start_command():
        child = ChildProcess(
            argv, english_environment() if env is None else env, stdin, cwd, max_output, hear
        )
        running.add_group(child.pid, child.name)
    try:
        running.refuse_at_the_end()
        child.exchange_until(began + limit)
        status = child.wait_for_end(began + limit)
        if status is None:
            raise TimedOut(*child.give_up(limit), child.stderr_bytes, child.stdout_bytes)
        running.discard_group(child.pid)
    except BaseException as error:
        if not isinstance(error, TimedOut):
            child.kill_group(limit)
        running.discard_group(
            child.pid
        )  # a second Ctrl-C skips this; then the command is ended at exit
        raise
    finally:
        child.close_pipes()
    done = Done(
        code=os.waitstatus_to_exitcode(status),
        out=child.stdout_bytes,
        err=child.stderr_bytes,
        seconds=time.monotonic() - began,
    )
    _raise_if_not_started(argv, cwd, done)
    return done


def _raise_if_not_started(argv: Sequence[str], cwd: str | None, done: Done) -> None:
    """Raise CommandNotFound if the answer is a complaint of env(1) and not of the command."""
    if done.code not in _NOT_STARTED or done.out or not done.err.startswith(b"env: "):
        return
    said = visible(os.fsdecode(done.err[5:]).partition("\n")[0].rpartition(": ")[2])
    if done.code == 125 and cwd:
        raise CommandNotFound(f"cannot start {visible(argv[0])} in {visible(cwd)}: {said}")
    hint = " (not a file that may be executed)" if done.code == 126 else ""
    if done.code == 127 and " " in argv[0]:
        hint = " (the name holds a blank: arguments are items of their own)"
    elif done.code == 127 and "/" not in argv[0]:
        said = "it is not installed, or not in PATH"
    raise CommandNotFound(f"cannot start {visible(argv[0])}: {said}{hint}")
