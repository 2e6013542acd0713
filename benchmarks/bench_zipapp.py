"""Start-up from a slow shared file system: sentinel.pyz against a plain virtual environment."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import ENV, machine, row

ROOT = Path(__file__).resolve().parent.parent
DELAY = 0.001
RUNS = 7
GOAL = 0.25


def main() -> None:
    """Each run has a fresh mount: nothing is in the kernel's cache, as in a job's first command."""
    print(machine())
    if not shutil.which("fusermount3"):
        print("skipped: needs fuse3")
        return
    with tempfile.TemporaryDirectory(prefix="sentinel-zipapp-") as name:
        folder = Path(name)
        _install(folder / "shared")
        cache = folder / "cache"
        cache.mkdir()
        plain = _timed(folder, ["venv/bin/python", "venv/bin/sentinel"], cache)
        first = _timed(folder, ["sentinel.pyz"], cache, forget=True)
        again = _timed(folder, ["sentinel.pyz"], cache)
        row("virtual environment, median", f"{plain * 1000:.0f} ms")
        row("sentinel.pyz, first start on a host", f"{first * 1000:.0f} ms", _against(first, plain))
        goal = f", goal: at most {GOAL:g}"
        row("sentinel.pyz, later starts", f"{again * 1000:.0f} ms", _against(again, plain) + goal)


def _against(seconds: float, plain: float) -> str:
    return f"{seconds / plain:.2f} x the virtual environment"


def _install(shared: Path) -> None:
    """Both with compiled files, as installed software has."""
    shared.mkdir()
    run = subprocess.run
    run([sys.executable, "-m", "venv", str(shared / "venv")], check=True)
    python = str(shared / "venv/bin/python")
    run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True, env=ENV)
    pyz = [sys.executable, str(ROOT / "packaging/pyz.py"), str(shared / "sentinel.pyz")]
    run(pyz, check=True, env=ENV, stdout=subprocess.DEVNULL)


def _timed(folder: Path, words: list[str], cache: Path, *, forget: bool = False) -> float:
    """Median seconds of `check fs --path /` on a fresh mount, the interpreter on a local disk."""
    times = []
    for _ in range(RUNS):
        if forget:
            shutil.rmtree(cache)
            cache.mkdir()
        with _mounted(folder / "shared", folder / "mount") as point:
            argv = [str(point / word) for word in words]
            argv = argv if len(argv) > 1 else [sys.executable, *argv]
            start = time.perf_counter()
            subprocess.run(
                [*argv, "check", "fs", "--path", "/"],
                env={**ENV, "SENTINEL_CACHE": str(cache)},
                stdout=subprocess.DEVNULL,
                check=False,
            )
            times.append(time.perf_counter() - start)
    return statistics.median(times)


@contextmanager
def _mounted(folder: Path, point: Path) -> Iterator[Path]:
    point.mkdir(exist_ok=True)
    argv = [sys.executable, "-m", "benchmarks.slowfs", str(folder), str(point), str(DELAY)]
    server = subprocess.Popen(argv, cwd=ROOT)
    try:
        deadline = time.monotonic() + 10
        while not os.path.ismount(point):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{point} is not mounted")
            time.sleep(0.02)
        yield point
    finally:
        subprocess.run(["fusermount3", "-u", "-z", str(point)], check=False)
        # A mount namespace that began meanwhile (a service of systemd, a node of a lab) has a copy
        # of the mount, for which the server would stay. Nothing is written: it may be killed.
        server.kill()
        server.wait(10)


if __name__ == "__main__":
    main()
