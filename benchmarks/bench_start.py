"""Start-up and memory of a one-shot against the interpreter, `df` and check_disk."""

import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import interleaved, machine, peak_memory, row

FLOOR = "python -c pass"
GOAL = 6.0
LOOKS = 20  # a process of a millisecond is mostly gone before it is looked at
CHECK_DISK = "/usr/lib/nagios/plugins/check_disk"
DF_SCRIPT = """
import subprocess
out = subprocess.run(["df", "-P", "/"], capture_output=True, text=True).stdout
print(out.splitlines()[1].split()[4])
out = subprocess.run(["df", "-Pi", "/"], capture_output=True, text=True).stdout
print(out.splitlines()[1].split()[4])
"""
"""What cron scripts do: `df` for space, `df` for inodes, and a look at the fifth column."""


def main() -> None:
    """Print the ratios; everything is measured in one run, in turn."""
    print(machine())
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(DF_SCRIPT)
        script.flush()
        commands = _commands(script.name)
        times = interleaved(commands)
        for name, seconds in times.items():
            ratio = f"{seconds / times[FLOOR]:.1f} x {FLOOR}"
            goal = f", goal: at most {GOAL:g}" if name.startswith("sentinel") else ""
            row(name, f"{seconds * 1000:.1f} ms", ratio + goal)
        for name, argv in commands.items():
            peak = max(peak_memory(argv) for _ in range(LOOKS))
            row(f"peak memory: {name}", f"{peak / 1e6:.1f} MB")


def _commands(script: str) -> dict[str, list[str]]:
    sentinel = str(Path(sys.executable).with_name("sentinel"))
    commands = {
        FLOOR: [sys.executable, "-c", "pass"],
        "sentinel check fs --path /": [sentinel, "check", "fs", "--path", "/"],
        "script that calls df twice": [sys.executable, script],
    }
    if shutil.which(CHECK_DISK):
        limits = ["-w", "15%", "-c", "5%", "-p", "/"]
        commands["check_disk -w 15% -c 5% -p /"] = [CHECK_DISK, *limits]
    return commands


if __name__ == "__main__":
    main()
