"""The status page of a large cluster: 10,000 nodes, 20,000 jobs, 500 alerts in the state.

Wants Debian's wrk; what is asked of a page stays on the loopback.
"""

import asyncio
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable

from benchmarks.measure import machine, row
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.model import Status
from sentinel.web.rate_limit import RequestRateLimiter
from sentinel.wiring import app
from tests.web.scenery import alert, fill
from tests.web.stage import Stage, stage

NODES, JOBS, ALERTS, CLIENTS = 10_000, 20_000, 500, 50
SECONDS = 10
STEP = 0.01
TONES = (Status.CRITICAL, Status.WARNING, Status.UNKNOWN)


def main() -> None:
    """Under a minute."""
    print(machine())
    limits = (RequestRateLimiter(10**9, 1e9), RequestRateLimiter(10**9, 1e9))
    with tempfile.TemporaryDirectory() as folder:
        state, _ = app.open_state(Settings(state=folder), SystemClock())
        alerts = [alert(n, f"gpu{n * 17:05}", TONES[n % 3]) for n in range(ALERTS)]
        fill(state, alerts, NODES, {"RUNNING": JOBS // 4, "PENDING": JOBS - JOBS // 4})
        with stage(limits=limits, state=state) as s:
            measure(s)


def measure(s: Stage) -> None:
    """Each page made anew, then fifty who reload while checks are committed."""
    for path, goal in (("/", 150), ("/nodes", 0), ("/alerts", 0), ("/metrics", 200)):
        times, size = asked(s, path)
        told = f"goal: below {goal} ms; " if goal else ""
        row(f"{path}: made anew, median", f"{1000 * statistics.median(times):.1f} ms", told)
        row(f"{path}: made anew, slowest of {len(times)}", f"{1000 * max(times):.1f} ms")
        row(f"{path}: size", f"{size / 1000:.0f} kB", "goal: below 300 kB" if path == "/" else "")
    calm = lag(s, lambda: time.sleep(3))
    row("lag of the event loop, nobody looks: slowest", f"{1000 * max(calm):.1f} ms")
    for path in ("/", "/nodes", "/nodes/room.json", "/alerts", "/metrics"):
        busy = lag(s, lambda path=path: reload(s, path))  # type: ignore[misc]
        row(
            f"lag while {CLIENTS} reload {path}: slowest, 99 %",
            f"{1000 * max(busy):.1f}, {1000 * statistics.quantiles(busy, n=100)[98]:.1f} ms",
            "goal: below 100 ms",
        )


def asked(s: Stage, path: str, rounds: int = 15) -> tuple[list[float], int]:
    """Seconds of each request, and bytes; each comes after a commit, so that nothing is kept."""
    times, size = list[float](), 0
    for _ in range(rounds):
        s.do(s.engine.run_check("late"))
        time.sleep(0.6)
        start = time.perf_counter()
        with urllib.request.urlopen(s.url + path) as answer:
            size = len(answer.read())
        times.append(time.perf_counter() - start)
    return times, size


def lag(s: Stage, work: Callable[[], None]) -> list[float]:
    """By how much the server's loop was late, every 10 ms, while `work` lasts; checks run."""
    late, over = list[float](), threading.Event()

    async def probe() -> None:
        while not over.is_set():
            due = time.perf_counter() + STEP
            await asyncio.sleep(STEP)
            late.append(max(0.0, time.perf_counter() - due))

    async def checks() -> None:
        while not over.is_set():
            await s.engine.run_check("late")
            await asyncio.sleep(1)

    async def both() -> None:
        await asyncio.gather(probe(), checks())

    thread = threading.Thread(target=lambda: s.do(both()))
    thread.start()
    try:
        work()
    finally:
        over.set()
        thread.join()
    return late


def reload(s: Stage, path: str) -> None:
    """CLIENTS connections that ask for the page again and again."""
    if shutil.which("wrk") is None:
        raise SystemExit("needs Debian's wrk")
    wrk = [
        "wrk",
        "-t1",
        "--latency",
        "--timeout",
        "10s",
        f"-c{CLIENTS}",
        f"-d{SECONDS}s",
        s.url + path,
    ]
    done = subprocess.run(wrk, capture_output=True, text=True, check=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise SystemExit(done.stdout)
    told = {
        words[0]: words[1] for words in map(str.split, done.stdout.splitlines()) if len(words) > 1
    }
    row(f"{path}: answers to {CLIENTS} who reload", f"{told['Requests/sec:']} /s")
    row(
        f"{path}: each waits, median, 99 %",
        f"{told['50%']}, {told['99%']}",
        "goal: 99 % below 1 s",
    )


if __name__ == "__main__":
    main()
