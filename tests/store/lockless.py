"""Runs as a program: a folder through FUSE, without locks. `python -m tests.store.lockless A B`."""

import errno
import os
import sys

from mfusepy import FUSE, FuseOSError, Operations


class Lockless(Operations):  # type: ignore[misc]
    """Files and directories of `folder`; fcntl(2) locks answer ENOLCK."""

    use_ns = True

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def getattr(self, path: str, fh: object = None) -> dict[str, int]:
        try:
            found = os.lstat(self._folder + path)
        except OSError as error:
            raise FuseOSError(error.errno) from error
        return {name: getattr(found, name) for name in ("st_mode", "st_nlink", "st_size", "st_uid")}

    def mkdir(self, path: str, mode: int) -> int:
        os.mkdir(self._folder + path, mode)
        return 0

    def create(self, path: str, mode: int, fi: object = None) -> int:
        return os.open(self._folder + path, os.O_RDWR | os.O_CREAT, mode)

    def open(self, path: str, flags: int) -> int:
        return os.open(self._folder + path, flags)

    def unlink(self, path: str) -> int:
        os.unlink(self._folder + path)
        return 0

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def lock(self, path: str, fh: int, cmd: int, lock: object) -> int:
        raise FuseOSError(errno.ENOLCK)


if __name__ == "__main__":
    FUSE(Lockless(sys.argv[1]), sys.argv[2], foreground=True, allow_other=False)
