"""A small file system that is full when told."""

import os
from contextlib import suppress
from pathlib import Path


class Disk:
    """Mounted at `point`; `state` is a directory in it."""

    def __init__(self, point: Path) -> None:
        self.point = point
        self.state = point / "state"
        self._ballast = point / "ballast"

    def fill(self) -> None:
        """Not a byte is left."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (4096, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        assert os.statvfs(self.point).f_bavail == 0

    def shrink(self, size: int) -> None:
        """So many bytes of what fills it go."""
        os.truncate(self._ballast, self._ballast.stat().st_size - size)

    def free(self) -> None:
        """Room again."""
        self._ballast.unlink()
