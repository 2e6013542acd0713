"""Directories of checkpoints to remove from."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sentinel.clean.child import program_argv
from sentinel.clean.rules import RetentionRules
from sentinel.clean.steps import CheckpointStep, removable_steps
from sentinel.clean.tree import CheckpointRoot

WHOLE = "weights"
"""The file that each checkpoint here holds; two of them stay where it is given as `complete`."""

RULES = RetentionRules(r"step(\d+)", complete=WHOLE)
HOUR = RetentionRules(r"step(\d+)", complete=WHOLE, older_than=3600.0)


def checkpoint(root: Path, number: int, *, size: int = 10_000) -> Path:
    """A directory of two levels."""
    folder = root / f"step{number}"
    (folder / "inner").mkdir(parents=True)
    (folder / "weights").write_bytes(b"w" * size)
    (folder / "inner" / "more").write_bytes(b"m" * 100)
    return folder


def going(root: CheckpointRoot, rules: RetentionRules = RULES, *, later: float = 0.0) -> list[str]:
    """Names that may go, so many seconds from now."""
    return [
        e.first_name for e in removable_steps(root.find_steps(rules), rules, time.time() + later)
    ]


def first(
    root: CheckpointRoot, rules: RetentionRules = RULES, *, later: float = 0.0
) -> CheckpointStep:
    return removable_steps(root.find_steps(rules), rules, time.time() + later)[0]


def renewed(root: Path, *numbers: int) -> None:
    """These, or else the two that are newest by number, are so by time again."""
    for number in numbers or (4, 5):
        os.utime(root / f"step{number}")


def soon() -> float:
    return time.monotonic() + 30


def treasure(root: Path) -> str:
    return (root.parent / "treasure" / "gold").read_text()


def asked(
    mode: str,
    root: Path,
    rules: RetentionRules = RULES,
    names: tuple[str, ...] = (),
    who: Sequence[str] = (),
) -> Any:
    """The program's answer and what it complained about."""
    command = [*who, *program_argv(mode, str(root), rules.rules_text(), names or None)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return (json.loads(done.stdout) if done.stdout else None), done.stderr.strip()


def names(root: Path) -> list[str]:
    return sorted(p.name for p in root.iterdir())


@contextmanager
def mounted(point: Path, *how: str) -> Iterator[Path]:
    subprocess.run(["mount", *(how or ("-t", "tmpfs", "tmpfs")), str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=False)
