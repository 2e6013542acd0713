"""Memory of an idle service, and processor time of one with 200 checks a minute."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.measure import ENV, cpu_children, machine, row

CHECKS = 200
SETTLING = 10.0
IDLE_SECONDS = 30.0
BUSY_SECONDS = 120.0
CHECK_DISK = "/usr/lib/nagios/plugins/check_disk"
CONFIG = """\
state: {folder}/state
checks:
{checks}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""


def main() -> None:
    """About three minutes."""
    print(machine())
    idle = "  disks: {kind: fs, paths: [/], every: 10s}"
    measure("1 fs check every 10 s", idle, IDLE_SECONDS)
    lines = (f"  disks-{n}: {{kind: fs, paths: [/], every: 1m}}" for n in range(CHECKS))
    measure(f"{CHECKS} fs checks at 1m", "\n".join(lines), BUSY_SECONDS, "goal: below 2 %")
    others()


def measure(what: str, checks: str, seconds: float, goal: str = "") -> None:
    """One service, its start not counted."""
    with tempfile.TemporaryDirectory() as folder, Service(folder, checks) as process:
        time.sleep(SETTLING)
        before, switches = cpu(process), sum(process.num_ctx_switches())
        time.sleep(seconds)
        used = 100 * (cpu(process) - before) / seconds
        own = sum(process.num_ctx_switches()) - switches
        rss = process.memory_info().rss / 1e6
        row(f"{what}: memory", f"{rss:.1f} MB", "goal: below 80 MB")
        row(f"{what}: processor", f"{used:.2f} %", f"of one core, children included; {goal}")
        which = f"of the main thread; {process.num_threads()} threads"
        row(f"{what}: context switches", f"{own / seconds:.1f} /s", which)


class Service:
    """`sentinel run` for as long as the block lasts."""

    def __init__(self, folder: str, checks: str) -> None:
        self._config = Path(folder, "sentinel.yaml")
        self._config.write_text(CONFIG.format(folder=folder, checks=checks))

    def __enter__(self) -> psutil.Process:
        argv = [sys.executable, "-m", "sentinel", "run", "-c", str(self._config)]
        self._process = subprocess.Popen(argv, env=ENV, stderr=subprocess.DEVNULL)
        return psutil.Process(self._process.pid)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


def cpu(process: psutil.Process) -> float:
    """Seconds so far, those of children that have ended included."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def others() -> None:
    """The same work done by others, without anybody who schedules them or judges the answer."""
    script = "df -P / | awk 'NR==2 {print $5}'; df -Pi / | awk 'NR==2 {print $5}'"
    commands = {
        "sh that calls df and awk twice": ["sh", "-c", script],
        "stat -f /": ["stat", "-f", "/"],
    }
    if shutil.which(CHECK_DISK):
        commands["check_disk"] = [CHECK_DISK, "-w", "15%", "-c", "5%", "-p", "/"]
    for name, argv in commands.items():
        row(f"{name}, {CHECKS} times a minute", f"{100 * cost(argv) * CHECKS / 60:.2f} %")


def cost(argv: list[str], runs: int = 100) -> float:
    """Seconds of processor time of one run."""
    began = cpu_children()
    for _ in range(runs):
        os.waitpid(os.posix_spawnp(argv[0], argv, ENV, file_actions=QUIET), 0)
    return (cpu_children() - began) / runs


QUIET = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]

if __name__ == "__main__":
    main()
