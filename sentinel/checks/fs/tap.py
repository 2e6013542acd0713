"""Program that writes, syncs, reads and removes a small file in the given directory.

It is a separate process, because a call on a hanging mount cannot be stopped, only left behind. It
uses only the standard library. It prints the seconds, or exits with 1 and the name of the error.
"""

import errno
import os
import sys
import time

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DATA = b"sentinel\n" * 455


def write_and_read(folder: str) -> float:
    """Seconds for a file of 4 KB, from creation to removal. Existing files are not touched.

    The name is removed first. So a process that is ended while it waits for the disk leaves no file
    behind.
    """
    name = os.path.join(folder, f".sentinel-{os.urandom(6).hex()}")
    began = time.monotonic()
    fd = os.open(name, _NEW, 0o600)
    try:
        os.unlink(name)
        left = memoryview(_DATA)
        while left:  # on an almost full disk, only a part may be written
            left = left[os.write(fd, left) :]
        os.fsync(fd)
        if os.pread(fd, len(_DATA), 0) != _DATA:
            raise OSError(errno.EIO, "what was read is not what was written")
    finally:
        os.close(fd)
    return time.monotonic() - began


def main() -> int:
    """Print the seconds to stdout, or the reason of a failure to stderr. Returns the exit code, 0
    or 1."""
    try:
        print(f"{write_and_read(sys.argv[1]):.6f}")  # noqa: T201
    except OSError as error:
        print(error.strerror or error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
