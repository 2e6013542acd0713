"""Start-up and memory of a one-shot against the interpreter, `df` and check_disk; of every command
that reads the state, and of `tick`, against another checkout: BESIDE=/path/to/it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import (
    ENV,
    interleaved,
    interleaved_processor_time,
    machine,
    peak_memory,
    row,
)

ROOT = Path(__file__).resolve().parent.parent
BESIDE = os.environ.get("BESIDE", "")
READING = {
    "alerts list": 0.42,
    "alerts history": 0.42,
    "alerts silences": None,
    "explain load": 0.42,
    "status": 0.48,
    "incidents": 0.48,
    "gpus list": 0.48,
    "gpus lemons": 0.48,
    "nodes list": None,
    "cron status": None,
    "config check": None,
    "tick": 0.5,
    "tick, 20 checks": 0.5,
    "check fs --path /": 0.85,
}
"""Commands, and how much of the processor time of the checkout beside (commit d826494, which had
SQLAlchemy) they may take; None where nothing was promised, or
where that one has no such command or does not open the state for it."""
MOST_MB = 34.0
STATE = """\
state: {folder}/state
channels:
  book: {{kind: file, path: {folder}/book}}
checks:
"""
ONE_CHECK = "  load: {kind: exec, command: [/bin/false]}\n"
TWENTY_CHECKS = "".join(
    f"  load{n}: {{kind: exec, command: [/bin/false]}}\n  disk{n}: {{kind: fs, paths: [/]}}\n"
    for n in range(10)
)
PEERS = {
    "borgmatic --version": "borgmatic",
    "amtool --version": "amtool",
    "gcm --version": "gcm",
}
"""Command lines of others, where they are installed or the environment names where: BORGMATIC=/path/to/it."""
COLD_RUNS = 5

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
    _reading()


def _reading() -> None:
    """Commands on a state in which a check has failed."""
    trees = {"here": str(ROOT), **({"beside": BESIDE} if BESIDE else {})}
    with tempfile.TemporaryDirectory() as name:
        files = {tree: _state(Path(name) / tree, place) for tree, place in trees.items()}
        commands = {
            f"{tree}: {words}": _started(place, files[tree], words)
            for words in READING
            for tree, place in trees.items()
        }
        times = interleaved_processor_time(
            {FLOOR: [sys.executable, "-c", "pass"], **commands, **_find_peers()}
        )
        for words, goal in READING.items():
            here, beside = times[f"here: {words}"], times.get(f"beside: {words}")
            against = f"{here / times[FLOOR]:.1f} x {FLOOR}"
            if beside:
                against += f", {here / beside:.2f} of {beside * 1000:.1f} ms"
                against += f", goal: at most {goal}" if goal else ""
            row(f"processor: sentinel {words}", f"{here * 1000:.1f} ms", against)
            peak = max(peak_memory(commands[f"here: {words}"]) for _ in range(3)) / 1e6
            row(f"peak memory: sentinel {words}", f"{peak:.1f} MB", f"goal: at most {MOST_MB:g}")
        for words in _find_peers():
            against = f"{times[words] / times[FLOOR]:.1f} x {FLOOR}"
            row(f"processor: {words}", f"{times[words] * 1000:.1f} ms", against)
        _cold(files["here"])


def _cold(file: str) -> None:
    """Where the folder of the installation is not writable and was not compiled, each start compiles
    all that it loads; `uv pip install --compile-bytecode` does it once."""
    for words in ("status", "tick", "check fs --path /"):
        code, *argv = _started(str(ROOT), file, words)[2:]
        nowhere = [sys.executable, "-B", "-X", "pycache_prefix=/dev/null/none", "-c", code, *argv]
        times = interleaved_processor_time({words: nowhere}, COLD_RUNS)
        row(f"nothing compiled: sentinel {words}", f"{times[words] * 1000:.0f} ms")


def _find_peers() -> dict[str, list[str]]:
    found = {
        words: os.environ.get(name.upper()) or shutil.which(name) for words, name in PEERS.items()
    }
    return {words: [place, "--version"] for words, place in found.items() if place}


def _state(folder: Path, tree: str) -> str:
    """A configuration whose state has an alert; compiles what is not compiled yet."""
    for place, checks in ((folder, ONE_CHECK), (folder / "many", TWENTY_CHECKS)):
        place.mkdir()
        file = place / "sentinel.yaml"
        file.write_text(STATE.format(folder=place) + checks)
        started = _started(tree, str(file), "tick")
        done = subprocess.run(started, env=ENV, capture_output=True, text=True, check=False)
        if "Traceback" in done.stderr or not (place / "state").exists():
            sys.exit(f"{tree} does not run:\n{done.stderr}")
    return str(folder / "sentinel.yaml")


def _started(tree: str, file: str, words: str) -> list[str]:
    """By the environment of that checkout, where it has one: an older one needs other libraries."""
    python = Path(tree) / ".venv/bin/python"
    code = f"import sys; sys.path.insert(0, {tree!r}); sys.argv[0] = 'sentinel'; "
    code += "from sentinel.cli import main; sys.exit(main())"
    if words.endswith(", 20 checks"):
        words = words.removesuffix(", 20 checks")
        file = str(Path(file).parent / "many" / "sentinel.yaml")
    config = [] if words.startswith("check") else ["-c", file]
    return [str(python if python.exists() else sys.executable), "-c", code, *words.split(), *config]


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
