"""The last screen of `.ci/run`: each step, and why what failed did: `python3 -m tests.gate.table [FOLDER]`.

Needs nothing but Python: it also runs where the installation failed. Reads from FOLDER (build/gate) the
file `steps` (name, seconds and exit code of each step, in a line), STEP.json where a step ran tests, and
STEP.log, the output of each step. The exit code is 1 where a step failed, or none is noted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COLUMNS = 160
TAIL_LINES = 10


def print_table(folder: Path) -> bool:
    """Whether there were steps, and every one passed."""
    steps = [line.split() for line in _read(folder / "steps").splitlines()]
    outcomes = {name: _outcomes(folder / f"{name}.json") for name, _, _ in steps}
    rows: list[tuple[str, ...]] = [("step", "seconds", "passed", "failed", "unsteady", "")]
    for name, seconds, code in steps:
        of = outcomes[name]
        counts = (
            [str(of["passed"]), str(len(of["failed"])), str(len(of["unsteady"]))]
            if of
            else [""] * 3
        )
        rows.append((name, seconds, *counts, "" if code == "0" else f"FAILED ({code})"))
    total = sum(int(seconds) for _, seconds, _ in steps)
    rows.append(("all", str(total), "", "", "", ""))
    print("\n" + "=" * 60)
    for row in rows:
        print(
            (f"{row[0]:<16}" + "".join(f"{cell:>9}" for cell in row[1:5]) + f"  {row[5]}").rstrip()
        )
    failed = [name for name, _, code in steps if code != "0"]
    for name, of in outcomes.items():
        for test, reason in (of or {}).get("unsteady", {}).items():
            print(f"\nunsteady in {name}: {test}")
            _print_lines(reason)
    for name in failed:
        of = outcomes[name] or {}
        for test, reason in of.get("failed", {}).items():
            print(f"\nFAILED in {name}: {test}")
            _print_lines(reason)
        for line in of.get("left", []):
            print(f"\nFAILED in {name}: left on this machine: {line}")
        if not of.get("failed") and not of.get("left"):
            print(f"\nFAILED: {name}; its last lines:")
            _print_lines(_read(folder / f"{name}.log").splitlines()[-TAIL_LINES:])
    if not steps:
        print(f"\nFAILED: no step is noted in {folder / 'steps'} (is the disk full?)")
    return bool(steps) and not failed


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        print(f"  {line[:COLUMNS]}")


def _outcomes(file: Path) -> dict[str, Any] | None:
    if not file.exists():
        return None
    empty: dict[str, Any] = {"passed": 0, "failed": {}, "unsteady": {}, "left": []}
    return {**empty, **json.loads(file.read_text())}


def _read(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""


if __name__ == "__main__":
    sys.exit(0 if print_table(Path(sys.argv[1] if len(sys.argv) > 1 else "build/gate")) else 1)
