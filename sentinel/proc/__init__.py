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
from sentinel.proc.child import GRACE, Child
from sentinel.proc.errors import NotFound, TimedOut, TooMuch
from sentinel.proc.hanging import Hanging, Hangs
from sentinel.proc.stuck import Stuck, boot_id, bury, left_behind, still_stuck

__all__ = [
    "GRACE",
    "Done",
    "Hanging",
    "Hangs",
    "NotFound",
    "Stuck",
    "TimedOut",
    "TooMuch",
    "boot_id",
    "in_english",
    "left_behind",
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


def in_english() -> dict[str, str]:
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

    The command has ended when it and all who hold its output are gone. Raises NotFound,
    TimedOut or TooMuch. `env` None: this process's own, in which tools answer in English: what
    reads their words would not know them in another language.
    """
    bury()
    began = time.monotonic()
    with running.starting():
        child = Child(argv, in_english() if env is None else env, stdin, cwd, max_output)
        running.add(child.pid, child.name)
    try:
        running.refuse_at_the_end()
        child.talk(began + limit)
        status = child.wait(began + limit)
        if status is None:
            raise TimedOut(*child.give_up(limit), child.err)
        running.discard(child.pid)
    except BaseException as error:
        if not isinstance(error, TimedOut):
            child.kill(limit)
        running.discard(child.pid)  # not where a second Ctrl-C cut that short: it is ended at exit
        raise
    finally:
        child.close()
    done = Done(
        code=os.waitstatus_to_exitcode(status),
        out=child.out,
        err=child.err,
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
        raise NotFound(f"cannot start {visible(argv[0])} in {visible(cwd)}: {said}")
    hint = " (not a file that may be executed)" if done.code == 126 else ""
    if done.code == 127 and " " in argv[0]:
        hint = " (the name holds a blank: arguments are items of their own)"
    raise NotFound(f"cannot start {visible(argv[0])}: {said}{hint}")
