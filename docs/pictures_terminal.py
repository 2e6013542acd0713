"""What commands print on a terminal, as SVG."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH, LINES = 90, 16
PLACE = Path(__file__).parent / "pictures"
STARTS, DRAWS = 30.0, 2.0
"""Seconds in which `top` has to show something, and after which that is all it shows."""
_ROW = re.compile(r"\x1b\[(\d+);1H(.*?)\x1b\[0m\x1b\[K", re.DOTALL)


def terminal(argv: list[str], env: Mapping[str, str]) -> str:
    """What a command prints until it ends."""
    process, ours = _start(argv, env)
    with process:
        return read(ours)


def top(env: Mapping[str, str]) -> str:
    """What `sentinel top` shows; it is left by its own key."""
    process, ours = _start(["top"], env)
    with process:
        seen, due = "", time.monotonic() + STARTS
        while time.monotonic() < due:
            if not select.select([ours], [], [], DRAWS)[0] and seen:
                break
            seen += os.read(ours, 65536).decode("utf-8", "replace")
        os.write(ours, b"q")
        return glass(seen + read(ours))


def glass(sent: str) -> str:
    """The lines that stand on the screen in the end: `top` sends only those that change."""
    rows = {int(number): text for number, text in _ROW.findall(sent)}
    return "\n".join(rows.get(n, "") for n in range(1, max(rows, default=0) + 1))


def read(fd: int) -> str:
    """Everything until the other side is closed."""
    chunks = []
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(fd)
    return b"".join(chunks).decode("utf-8", "replace").replace("\r\n", "\n")


def draw(name: str, scenes: list[tuple[str, str]], place: Path = PLACE) -> None:
    """One SVG with the commands and what they printed."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    for number, (command, output) in enumerate(scenes):
        gap = "\n" if number else ""
        console.print(Text(f"{gap}$ {command}", style="bold"))
        console.print(Text.from_ansi(output.rstrip("\n")))
    console.save_svg(str(place / f"{name}.svg"), title="sentinel")
    print(place / f"{name}.svg")


def _start(argv: list[str], env: Mapping[str, str]) -> tuple["subprocess.Popen[bytes]", int]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, WIDTH, 0, 0))
    env = {**env, "COLUMNS": str(WIDTH), "LINES": "60", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-m", "sentinel", *argv],
        stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=env, cwd="/",
    )  # fmt: skip
    os.close(theirs)
    return process, ours
