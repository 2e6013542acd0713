"""The one place that starts a process: bounded in time and output, killed with its group.

Every program is started through env(1). posix_spawn(3) and subprocess both hold the
interpreter's lock until the child has replaced itself, so a program (or a directory of
PATH, or a working directory) on a mount that hangs would stop every thread of sentinel
for good. env lives with the system; whatever hangs after it hangs in the child.
"""

import os
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.core.text import visible
from sentinel.proc import running
from sentinel.proc.child import KILL_GRACE_S, ChildProcess
from sentinel.proc.errors import CommandNotFound, TimedOut, TooMuchOutput
from sentinel.proc.hanging import HangingChildren, StillHanging
from sentinel.proc.stuck import StuckProcess, boot_id, reap_abandoned, remember_process, still_stuck

__all__ = [
    "KILL_GRACE_S",
    "CommandNotFound",
    "Done",
    "HangingChildren",
    "StillHanging",
    "StuckProcess",
    "TimedOut",
    "TooMuchOutput",
    "boot_id",
    "english_environment",
    "remember_process",
    "run",
    "still_stuck",
]

_NOT_STARTED = (125, 126, 127)  # env(1): itself failed, cannot be invoked, not found


class Done(Struct, frozen=True, kw_only=True):
    """A command that ended by itself; `code` is negative for a signal."""

    code: int
    out: bytes
    err: bytes
    seconds: float


def english_environment() -> dict[str, str]:
    """This process's environment with the language of messages set to English (locale(7))."""
    return {**os.environ, "LC_ALL": "C"}


def run(
    argv: Sequence[str],
    *,
    limit: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    cwd: str | None = None,
    max_output: int = 64 * 2**20,
) -> Done:
    """Run a command to its end, at most `limit` seconds and GRACE for killing it.

    The command has ended when it and all who hold its output are gone. Raises CommandNotFound,
    TimedOut or TooMuchOutput. `env` None: this process's own, in which tools answer in English: what
    reads their words would not know them in another language.
    """
    reap_abandoned()
    began = time.monotonic()
    with running.start_command():
        child = ChildProcess(
            argv, english_environment() if env is None else env, stdin, cwd, max_output
        )
        running.add_group(child.pid, child.name)
    try:
        running.refuse_at_the_end()
        child.exchange_until(began + limit)
        status = child.wait_for_end(began + limit)
        if status is None:
            raise TimedOut(*child.give_up(limit), child.stderr_bytes)
        running.discard_group(child.pid)
    except BaseException as error:
        if not isinstance(error, TimedOut):
            child.kill_group(limit)
        running.discard_group(
            child.pid
        )  # not where a second Ctrl-C cut that short: it is ended at exit
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
    """Tell env's own complaint from an answer of the command."""
    if done.code not in _NOT_STARTED or done.out or not done.err.startswith(b"env: "):
        return
    said = visible(os.fsdecode(done.err[5:]).partition("\n")[0].rpartition(": ")[2])
    if done.code == 125 and cwd:
        raise CommandNotFound(f"cannot start {visible(argv[0])} in {visible(cwd)}: {said}")
    hint = " (not a file that may be executed)" if done.code == 126 else ""
    if done.code == 127 and " " in argv[0]:
        hint = " (the name holds a blank: arguments are items of their own)"
    raise CommandNotFound(f"cannot start {visible(argv[0])}: {said}{hint}")
