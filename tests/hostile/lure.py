"""A folder that waits for root to type a command in it: whatever Python or a shell would take from there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

MODULES = (
    "json", "msgspec", "yaml", "regex", "ctypes", "pynvml", "tempfile", "subprocess", "torch", "hashlib",
    "datetime", "socket", "sitecustomize", "usercustomize", "__future__", "typing", "psycopg", "sqlite3",
)  # fmt: skip
PROGRAMS = ("squeue", "scontrol", "nvidia-smi", "sh", "python3", "df", "env", "git")
COMMANDS: Sequence[Sequence[str]] = (
    ["check", "gpu"], ["check", "fs", "--path", "/"], ["check", "load"], ["check", "log", "--match", "x"],
    ["check", "sensors"], ["check", "memory"], ["config", "show"], ["config", "check"], ["doctor"],
    ["status"], ["plugins"], ["init", "--dry-run", "--yes"], ["cron", "status"], ["gpus", "list"],
)  # fmt: skip
"""What is typed there; how they end does not matter."""


def lay_lures(folder: Path) -> Path:
    """Modules, programs and a configuration that leave a name in the folder below when they are used; it."""
    caught = folder / "caught"
    caught.mkdir()
    caught.chmod(0o777)
    for package in ("sentinel", "sentinel/checks", "sentinel/checks/gpu", "apprise", "py_spy"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text(_leave(caught, package.replace("/", ".")))
    for name in MODULES:
        (folder / f"{name}.py").write_text(_leave(caught, name))
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\n: >{caught}/program-{name}\n")
        (folder / name).chmod(0o755)
    (folder / "sentinel.yaml").write_text(
        f"checks: {{lure: {{kind: exec, command: [touch, {caught}/configuration]}}}}\n"
    )
    return caught


def make_typed(words: Sequence[str]) -> list[str]:
    """The command as root types it: by its program, not by `python -m`, which takes modules from there."""
    return [str(Path(sys.executable).with_name("sentinel")), *words]


def _leave(caught: Path, name: str) -> str:
    return f"open({str(caught / name)!r}, 'w').close()\n"
