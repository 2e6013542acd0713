"""The tools that nodes have: a PATH in which one awk, one shell, one ps and one userland come first.

Debian's and Ubuntu's default awk is mawk; Alpine and rescue images have busybox alone. All of it runs
in a German locale, whose words and decimal commas nothing may depend on.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.lab import needs

BUSYBOX_TOOLS = ("grep", "sed", "tr", "sort", "head", "tail", "cut", "stat", "find", "cat", "id")
GERMAN = "de_DE.UTF-8"


class Column(NamedTuple):
    """One node's tools."""

    awk: str
    shell: str
    ps: str
    userland: str

    def __str__(self) -> str:
        return ", ".join((self.awk, self.shell, f"{self.ps} ps", self.userland))


COLUMNS = [
    Column(*words)
    for words in itertools.product(
        ("mawk", "gawk", "original-awk", "busybox awk"),
        ("dash", "bash", "busybox sh"),
        ("procps", "busybox"),
        ("GNU", "busybox"),
    )
]

USUAL_COLUMNS = {
    Column("mawk", "dash", "procps", "GNU"),
    Column("gawk", "bash", "procps", "GNU"),
    Column("original-awk", "bash", "procps", "busybox"),
    Column("busybox awk", "dash", "procps", "GNU"),
    Column("mawk", "busybox sh", "procps", "busybox"),
    Column("busybox awk", "busybox sh", "busybox", "busybox"),
}
"""Every tool at least once, and what people have: the others are long."""


class Tools:
    """Such a PATH, as a folder of links."""

    def __init__(self, folder: Path, column: Column, locales: Path | None = None) -> None:
        self.folder, self.column, self._locales = folder, column, locales
        self._link("awk", column.awk.split()[0])
        self._link("sh", column.shell.split()[0])
        names = BUSYBOX_TOOLS if column.userland == "busybox" else ()
        for name in (*names, *(["ps"] if column.ps == "busybox" else [])):
            self._link(name, "busybox")

    def _link(self, name: str, program: str) -> None:
        (self.folder / name).symlink_to(needs.require_program(program, program))

    def add_stand_in(self, name: str, text: str) -> None:
        """A program that this node has besides, or in place of a link to one of this machine, which is
        not written through."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(self, argv: list[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        """Run the command with these tools, in a session of its own: a script leaves out its own. A
        fault that is planted may let it write beside it."""
        german = {"LC_ALL": GERMAN, "LANG": GERMAN, "LOCPATH": str(self._locales or "")}
        argv = [str(self.folder / "sh") if argv[0] in ("sh", "/bin/sh") else argv[0], *argv[1:]]
        return subprocess.run(
            argv,
            input=stdin,
            env={**os.environ, **german, "PATH": f"{self.folder}:{os.environ['PATH']}"},
            cwd=self.folder.parent,
            capture_output=True,
            timeout=60,
            check=False,
            start_new_session=True,
        )


def make_german(folder: Path) -> Path:
    """A folder for $LOCPATH, with the locale where Debian's `locales` is installed."""
    subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / GERMAN)],
        capture_output=True, check=False,
    )  # fmt: skip
    return folder
