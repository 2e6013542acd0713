"""A line at the end of a file that may lie on a file system that hangs."""

import os
import sys

from sentinel.core.values import duration_text
from sentinel.proc import Done, HangingChildren, StillHanging, TimedOut, run

NEVER = 2
"""Exit code: what stands at the path is no file, so no retry will help."""

_PROGRAM = os.path.join(os.path.dirname(__file__), "append.py")


_hanging = HangingChildren()


def append_line(path: str, line: bytes, *, limit: float) -> Done:
    """Append the line and a newline by a child that can be abandoned; code 0 when written.

    Raises what `run` raises; at once while an earlier child still hangs on that file. A torn last
    line is closed first, and a line that did not reach the child whole (this process was killed)
    is not written at all.
    """
    argv = (sys.executable, "-I", "-S", _PROGRAM, path, str(len(line)))
    try:
        with _hanging.start_alone(path):
            return run(argv, limit=limit, stdin=line, max_output=1 << 16)
    except StillHanging as error:
        raise TimedOut(f"its file system {error}", error.stuck) from None
    except TimedOut as error:
        text = f"cannot be written: nothing happened for {duration_text(limit)}"
        raise TimedOut(text, error.stuck) from None
