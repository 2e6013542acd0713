"""Memory of an idle service, and processor time of one with 200 checks a minute."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.measure import row

MINUTES = 2
IDLE = "state: {state}\nchecks:\n  disks: {{kind: fs, paths: [/], every: 10s}}\nchannels:\n  book: {{kind: file, path: {state}/book.jsonl}}\n"


def main() -> None:
    """About three minutes."""
    with tempfile.TemporaryDirectory() as folder:
        _measure("idle service, 1 check", IDLE.format(state=folder), folder, 20.0)
    with tempfile.TemporaryDirectory() as folder:
        checks = "".join(f"  c{i}: {{kind: fs, paths: [/], every: 1m}}\n" for i in range(200))
        text = f"state: {folder}\nchecks:\n{checks}channels:\n  book: {{kind: file, path: {folder}/book.jsonl}}\n"
        _measure("200 fs checks a minute", text, folder, MINUTES * 60.0)


def _measure(what: str, text: str, folder: str, seconds: float) -> None:
    config = Path(folder, "sentinel.yaml")
    config.write_text(text)
    service = subprocess.Popen(
        [sys.executable, "-m", "sentinel", "run", "-c", str(config)], stderr=subprocess.DEVNULL
    )
    try:
        process = psutil.Process(service.pid)
        time.sleep(8)
        before = _cpu(process)
        time.sleep(seconds)
        used = _cpu(process) - before
        row(f"{what}: memory", f"{process.memory_info().rss / 1e6:.1f} MB", "goal: below 80 MB")
        row(
            f"{what}: processor",
            f"{100 * used / seconds:.2f} %",
            "of one core, children included; goal: below 2 %",
        )
    finally:
        service.terminate()
        service.wait(30)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
