"""A line at the end of a file that may lie on a file system that hangs."""

import os
import sys

from sentinel.proc import Done, run

NEVER = 2
"""Exit code: what stands at the path is no file, so no retry will help."""

_PROGRAM = os.path.join(os.path.dirname(__file__), "append.py")


def append_line(path: str, line: bytes, *, limit: float) -> Done:
    """Append the line and a newline by a child that can be abandoned; code 0 when written.

    Raises what `run` raises. A torn last line is closed first, and a line that did not reach
    the child whole (this process was killed) is not written at all.
    """
    argv = (sys.executable, "-I", "-S", _PROGRAM, path, str(len(line)))
    return run(argv, limit=limit, stdin=line, max_output=1 << 16)
