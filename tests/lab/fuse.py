"""The handle of a FUSE mount whose answers a test withholds: `fusefs` is the other side."""

import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.lab import fusefs


class Fuse:
    """A mounted file system with a file `data`; unmounted on exit and when this process dies.

    A call that meets a held operation waits in state D and survives SIGKILL until `release`.
    """

    def __init__(self, point: Path, user: int = 0) -> None:
        """`user`: the uid whose mount it is, as the kernel was told."""
        point.mkdir(parents=True, exist_ok=True)
        self.point = point
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", fusefs.__file__, str(point), str(user)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        self.pid = self._process.pid
        self._answer()

    def hold(self, *operations: str) -> None:
        """Withhold the answers to these: open, statfs, getattr, lookup, read, opendir."""
        self._tell("hold", *operations)

    def release(self) -> None:
        """Answer everything that waits, and hold nothing any more."""
        self._tell("release")

    def reset(self) -> None:
        """Release, and answer as at the begin: no errors, half of the space and no quotas."""
        self._tell("reset")

    def fail(self, number: int, *operations: str) -> None:
        """Answer these with this errno from now on, all others as usual; 0 ends it."""
        self._tell("fail", str(number), *operations)

    def space(
        self,
        *,
        total: int,
        free: int,
        available: int | None = None,
        inodes: int = 1 << 20,
        free_inodes: int = 1 << 19,
        of: str = "",
    ) -> None:
        """What statfs says from now on: bytes (rounded down to 4096) and inodes. `of`: of one of its
        directories, project-1, project-2 and plain, which has a quota then."""
        left = free if available is None else available
        command = ["quota", of] if of else ["space"]
        self._tell(*command, *(str(n) for n in (total, free, left, inodes, free_inodes)))

    def list_without_end(self) -> None:
        """The root lists names without end from now on, and none of them is there."""
        self._tell("endless")

    def withheld(self) -> int:
        """How many calls wait for an answer just now."""
        return self._tell("count")

    def crash(self) -> None:
        """The daemon dies, the mount stays: every call answers ENOTCONN."""
        self._process.kill()
        self._close()

    def close(self) -> None:
        """Unmount; calls that still wait end with an error."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(10)
        self._close()
        subprocess.run(["umount", "--lazy", str(self.point)], capture_output=True, check=False)

    def __enter__(self) -> "Fuse":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _close(self) -> None:
        self._process.wait(10)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _tell(self, *words: str) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write((" ".join(words) + "\n").encode())
        return self._answer()

    def _answer(self) -> int:
        """The daemon has done it: what comes after sees the change."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], 10.0)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise RuntimeError(f"the FUSE daemon of {self.point} does not answer")
        return int(line)
