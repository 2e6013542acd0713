"""Appends a line to a file that may lie on a file system that hangs."""

import sys

from sentinel.core.values import duration_text
from sentinel.proc import Done, HangingChildren, StillHanging, TimedOut, run
from sentinel.proc.own_package import read_program_file

NEVER = 2
"""Exit code of the child if the path is not a regular file, so that no retry will help."""

_hanging = HangingChildren()


def append_line(path: str, line: bytes, *, limit: float) -> Done:
    """Append the line and a newline by a child that can be abandoned. Exit code 0: written.

    Raises what `run` raises, and raises at once while an earlier child still hangs on that file. An
    incomplete last line is ended first. If the line did not reach the child whole (this process was
    killed), it is not written at all."""
    argv = (
        sys.executable,
        "-I",
        "-S",
        "-c",
        read_program_file("proc/append.py"),
        path,
        str(len(line)),
    )
    try:
        with _hanging.start_alone(path):
            return run(argv, limit=limit, stdin=line, max_output=1 << 16)
    except StillHanging as error:
        raise TimedOut(f"its file system {error}", error.stuck) from None
    except TimedOut as error:
        text = f"cannot be written: nothing happened for {duration_text(limit)}"
        raise TimedOut(text, error.stuck) from None
