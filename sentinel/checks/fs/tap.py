"""Run as a program: writes, syncs, reads and removes a small file in the directory it is given.

A program of its own, because a directory on a mount that hangs cannot be given up, only left
behind. Standard library only. Prints the seconds it took; exit 1 with the error's name.
"""

import errno
import os
import sys
import time

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DATA = b"sentinel\n" * 455


def write_and_read(folder: str) -> float:
    """Seconds for a file of 4 KB from its making to its end. It never touches what is there.

    Its name goes first: whoever is ended while he waits for the disk leaves no file behind.
    """
    name = os.path.join(folder, f".sentinel-{os.urandom(6).hex()}")
    began = time.monotonic()
    fd = os.open(name, _NEW, 0o600)
    try:
        os.unlink(name)
        left = memoryview(_DATA)
        while left:  # a disk that is all but full takes a part
            left = left[os.write(fd, left) :]
        os.fsync(fd)
        if os.pread(fd, len(_DATA), 0) != _DATA:
            raise OSError(errno.EIO, "what was read is not what was written")
    finally:
        os.close(fd)
    return time.monotonic() - began


def main() -> int:
    """0 with the seconds on stdout, or 1 with the reason on stderr."""
    try:
        print(f"{write_and_read(sys.argv[1]):.6f}")  # noqa: T201
    except OSError as error:
        print(error.strerror or error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
