"""Run as a program by `append_line`: appends its input to the file it is given.

A program of its own, because opening or writing a file on a mount that hangs cannot be
given up, only left behind. Standard library only; exit 2 says that no retry will help.
"""

import os
import stat
import sys
import time

PAUSE, LOOKS = 0.05, 20
"""Seconds between two looks at an end that another writer may be about to write."""

_OPEN_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class NotAppendable(OSError):
    """What stands at the path is no regular file."""


def append_to_file(path: str, line: bytes) -> None:
    """One write(2) of the line and its end; after a torn line it starts on a new one."""
    fd = os.open(path, _OPEN_FLAGS, 0o640)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise NotAppendable("is not a regular file")
        data = b"\n" * _is_torn(fd) + line + b"\n"
        if os.write(fd, data) != len(data):
            raise OSError("only part of the line could be written; is the file system full?")
    finally:
        os.close(fd)


def _is_torn(fd: int) -> bool:
    """Whether the last line has no end, and nobody is just about to write it."""
    for _ in range(LOOKS):
        size = os.fstat(fd).st_size
        if not size or os.pread(fd, 1, size - 1) == b"\n":
            return False
        time.sleep(PAUSE)
        if os.fstat(fd).st_size == size:
            return True
    return False


def main() -> int:
    """0 written, 1 not now, 2 never; the reason goes to stderr.

    The length of the line is an argument: a sentinel that is killed while it hands the line
    over leaves a piece of it, or nothing, which must not become a line.
    """
    path, length, line = sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read()
    if len(line) != length:
        print("the line did not arrive whole", file=sys.stderr)  # noqa: T201
        return 1
    try:
        append_to_file(path, line)
    except OSError as error:
        print(error.strerror or error, file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, NotAppendable | IsADirectoryError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
