"""Whole processes measured from outside, and rows printed one way."""

import os
import platform
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

ENV = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Compiled files are kept, as they are where software is installed; the first round makes them."""


def interleaved(commands: Mapping[str, Sequence[str]], runs: int = 25) -> dict[str, float]:
    """Median seconds of each, taken in turn so that a drifting machine is fair to all."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs + 1):
        for name, argv in commands.items():
            times[name].append(_once(argv))
    return {name: statistics.median(t[1:]) for name, t in times.items()}


def interleaved_processor_time(
    commands: Mapping[str, Sequence[str]], runs: int = 15
) -> dict[str, float]:
    """As `interleaved`, of the processor: what others do on the machine changes it less."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs + 1):
        for name, argv in commands.items():
            before = cpu_children()
            _once(argv)
            times[name].append(cpu_children() - before)
    return {name: statistics.median(t[1:]) for name, t in times.items()}


def peak_memory(argv: Sequence[str]) -> int:
    """Bytes of resident memory at its largest (VmHWM), polled while it runs; ru_maxrss would
    count this process' own memory, which a child has until it calls exec."""
    process = subprocess.Popen(argv, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        with suppress(OSError), open(f"/proc/{process.pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
            peak = max(peak, int(fields.get("VmHWM", "0 kB").split()[0]) * 1024)
        time.sleep(0.001)
    return peak


def cpu_children() -> float:
    """Seconds of processor time of all ended children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_with_children() -> float:
    """Seconds of processor time so far of this process and of its children, those that run included."""
    me, ticks = str(os.getpid()), os.sysconf("SC_CLK_TCK")
    with open(f"/proc/{me}/task/{me}/children") as file:
        living = file.read().split()
    seconds = time.process_time() + cpu_children()
    for child in living:
        with suppress(OSError), open(f"/proc/{child}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
            seconds += sum(map(int, fields[11:15])) / ticks
    return seconds


def machine() -> str:
    """Where and beside what it was measured: numbers of a busy machine are worth little."""
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, load {load:.1f} before, Python {platform.python_version()}"


def row(what: str, value: str, against: str = "") -> None:
    """One line of the report."""
    print(f"{what:<52} {value:>16}  {against}", flush=True)


def _once(argv: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(argv, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start
