"""Draws a page of lines on a terminal. Unchanged lines are not sent again, for slow ssh
connections."""

import os
import re
import select
import sys
import termios
import tty
from collections.abc import Sequence
from io import StringIO
from types import TracebackType

from rich.console import Console, RenderableType

_KEY_NAMES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left", "\x1bOA": "up",
    "\x1bOB": "down", "\x1b[5~": "pageup", "\x1b[6~": "pagedown", "\x1b": "esc", "\r": "enter",
    "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x08": "backspace", "\x03": "ctrl-c",
}  # fmt: skip
_KEY_PATTERN = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)
_MAX_READ_BYTES = 256


class TerminalScreen:
    """The alternate screen of the terminal; the former screen is restored when the block ends."""

    def __init__(self) -> None:
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._shown: list[str] = []
        self._keys: list[str] = []
        self._size = (0, 0)

    def __enter__(self) -> "TerminalScreen":
        self._before = termios.tcgetattr(self._in)
        tty.setraw(self._in)
        self._write_terminal("\x1b[?1049h\x1b[?25l\x1b[2J")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._write_terminal("\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)

    @property
    def columns_and_lines(self) -> tuple[int, int]:
        """The present numbers of columns and lines."""
        found = os.get_terminal_size(self._out)
        return max(20, found.columns), max(6, found.lines)

    def draw_lines(self, lines: Sequence[str]) -> None:
        """Show these lines from the top, and clear the rest."""
        if self.columns_and_lines != self._size:
            self._size, self._shown = self.columns_and_lines, []
            self._write_terminal("\x1b[2J")
        self._write_terminal("".join(diff_screen_lines(self._shown, lines)))
        self._shown = list(lines)

    def read_key(self, seconds: float) -> str:
        """The name of the next key; empty if none came in time; ctrl-c if the terminal is gone."""
        if not self._keys:
            ready, _, _ = select.select([self._in], [], [], seconds)
            if not ready:
                return ""
            text = os.read(self._in, _MAX_READ_BYTES).decode("utf-8", "replace")
            self._keys = parse_keys(text) if text else ["ctrl-c"]
        return self._keys.pop(0)

    def _write_terminal(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._out, data) :]


def parse_keys(text: str) -> list[str]:
    """The names of the keys in these characters; an unknown escape sequence becomes an empty
    name."""
    return [
        _KEY_NAMES.get(k, k if len(k) == 1 and k.isprintable() else "")
        for k in _KEY_PATTERN.findall(text)
    ]


def diff_screen_lines(shown: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The text to send so that a screen which shows `shown` shows `lines`."""
    rows = max(len(shown), len(lines))
    pairs = (
        (shown[n] if n < len(shown) else None, lines[n] if n < len(lines) else "")
        for n in range(rows)
    )
    return [f"\x1b[{n};1H{new}\x1b[0m\x1b[K" for n, (old, new) in enumerate(pairs, 1) if old != new]


def render_to_lines(what: RenderableType, width: int, colour: bool = True) -> list[str]:
    """A renderable as lines of at most this width."""
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=True,
        color_system="standard" if colour else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(what)
    return capture.get().rstrip("\n").split("\n")
