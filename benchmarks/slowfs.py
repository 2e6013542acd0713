"""A folder seen through FUSE, every call a millisecond late: a shared file system far away.

Runs as a program: `python -m benchmarks.slowfs FOLDER MOUNTPOINT SECONDS`. Needs mfusepy.
"""

import os
import sys
import time


def main() -> None:
    from mfusepy import FUSE, FuseOSError, Operations

    folder, point, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])

    def there(path: str) -> str:
        time.sleep(delay)
        return folder + path

    class Slow(Operations):  # type: ignore[misc]
        use_ns = True

        def getattr(self, path: str, fh: object = None) -> dict[str, int]:
            try:
                found = os.lstat(there(path))
            except OSError as error:
                raise FuseOSError(error.errno) from error
            names = ("mode", "nlink", "uid", "gid", "size")
            times = ("atime", "mtime", "ctime")
            known = {f"st_{n}": getattr(found, f"st_{n}") for n in names}
            return known | {f"st_{n}": getattr(found, f"st_{n}_ns") for n in times}

        def readdir(self, path: str, fh: object) -> list[str]:
            return [".", "..", *os.listdir(there(path))]

        def readlink(self, path: str) -> str:
            return os.readlink(there(path))

        def open(self, path: str, flags: int) -> int:
            return os.open(there(path), flags)

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            time.sleep(delay)
            return os.pread(fh, size, offset)

        def release(self, path: str, fh: int) -> int:
            os.close(fh)
            return 0

    FUSE(Slow(), point, foreground=True, nothreads=False, ro=True, allow_other=False)


if __name__ == "__main__":
    main()
