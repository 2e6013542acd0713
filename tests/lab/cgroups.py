"""Processes in a real cgroup2 tree of the shape that slurmd makes."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.lab.waiting import wait_until

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"


class Cgroups:
    """A `NODE_slurmstepd.scope` of its own in the machine's cgroup2 hierarchy."""

    def __init__(self, root: Path) -> None:
        self._slice = root / f"sentinel-test-{os.getpid()}.slice"
        self.scope = self._slice / "n1_slurmstepd.scope"
        self._started: list[subprocess.Popen[bytes]] = []

    def process(
        self, place: str, uid: int = 0, env: dict[str, str] | None = None, then: str = ""
    ) -> int:
        """The pid of a process of that user that the kernel counts to that place of the scope."""
        started = subprocess.Popen(
            ["/usr/bin/python3", "-c", then + SLEEPER],
            env=env or {},
            user=uid,
            stdout=subprocess.PIPE,
        )
        self._started.append(started)
        assert started.stdout is not None
        assert started.stdout.readline() == b"up\n"
        if place:
            self.move(started.pid, place)
        return started.pid

    def move(self, pid: int, place: str) -> None:
        """Let the kernel count the process to that place of the scope."""
        (self.scope / place).mkdir(parents=True, exist_ok=True)
        (self.scope / place / "cgroup.procs").write_text(str(pid))

    def alive(self, pid: int) -> bool:
        """Whether it has not been ended."""
        return next(p for p in self._started if p.pid == pid).poll() is None

    def end(self) -> None:
        """Everything of it."""
        for started in self._started:
            started.kill()
            started.communicate()
        wait_until(self._removed, "the end of the cgroups")

    def _removed(self) -> bool:
        for folder, _, _ in os.walk(self._slice, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)
        return not self._slice.exists()


@contextmanager
def cgroup_tree(folder: Path) -> Iterator[Cgroups]:
    """Mounts the hierarchy of cgroup v2 (there is one a machine) at the folder; needs root."""
    subprocess.run(["mount", "-t", "cgroup2", "none", str(folder)], check=True)
    tree = Cgroups(folder)
    try:
        yield tree
    finally:
        tree.end()
        subprocess.run(["umount", str(folder)], check=True)
