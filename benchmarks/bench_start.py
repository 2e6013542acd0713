"""Start-up and memory of a one-shot against the interpreter, `df` and check_disk."""

import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import interleaved, peak_memory, row

CHECK_DISK = "/usr/lib/nagios/plugins/check_disk"
DF_SCRIPT = """
import subprocess
out = subprocess.run(["df", "-P", "/"], capture_output=True, text=True).stdout
print(out.splitlines()[1].split()[4])
out = subprocess.run(["df", "-Pi", "/"], capture_output=True, text=True).stdout
print(out.splitlines()[1].split()[4])
"""


def main() -> None:
    """Print the ratios; everything is measured in one run, in turn."""
    sentinel = str(Path(sys.executable).with_name("sentinel"))
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(DF_SCRIPT)
        script.flush()
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "sentinel check fs --path /": [sentinel, "check", "fs", "--path", "/"],
            "script that calls df twice": [sys.executable, script.name],
        }
        if shutil.which(CHECK_DISK):
            commands["check_disk -w 15% -c 5% -p /"] = [
                CHECK_DISK,
                "-w",
                "15%",
                "-c",
                "5%",
                "-p",
                "/",
            ]
        times = interleaved(commands)
        floor = times["python -c pass"]
        for name, seconds in times.items():
            row(name, f"{seconds * 1000:.1f} ms", f"{seconds / floor:.1f} x python -c pass")
        for name, argv in commands.items():
            row(f"peak memory: {name}", f"{peak_memory(argv) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
