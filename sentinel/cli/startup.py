"""Makes one-shots start fast. Measured by benchmarks/bench_start.py."""

import argparse
import atexit
import gc
import os
import sys
from importlib import import_module
from typing import Any

GC_THRESHOLD = 50_000
"""New objects after which young ones are searched for cycles. A tick has 30,000 when it ends, almost
all of them modules and classes that stay; with Python's 700 it would search thirty times, with 10,000
four times, for 5 ms."""


def prepare_startup() -> None:
    """Prepare a fast start. Call this before anything that uses msgspec is imported, and before a
    parser is made."""
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)  # otherwise the interpreter scans all objects before it ends
    # Messages are not translated. Otherwise argparse would load locale and search five files for
    # each word.
    argparse._ = _keep_text  # type: ignore[attr-defined]
    _import_msgspec()


def _keep_text(text: "str | None") -> "str | None":
    """The text unchanged; None for a description that is not given."""
    return text


def _import_msgspec() -> None:
    """Without two modules that it could use, or a module that it imports. typing_extensions: where
    it is installed msgspec takes from it what typing has too (3.10 lacks Required, for which settings
    have no use), and it imports inspect, ast and dis. platform: uuid asks it for the system's name.

    None in sys.modules makes importing it fail:
    https://docs.python.org/3/reference/import.html#the-module-cache
    """
    stand_ins = {"typing_extensions": None, "platform": _PlatformStandIn()}
    absent = {name: value for name, value in stand_ins.items() if name not in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]
    try:
        import msgspec  # noqa: F401
    finally:
        for name in absent:
            del sys.modules[name]


class _PlatformStandIn:
    """What uuid needs of the module platform, which compiles patterns at its import."""

    __spec__ = None  # the import system requires it

    @staticmethod
    def system() -> str:
        """The name of the kernel, as uname(2) has it."""
        return os.uname().sysname

    def __getattr__(self, name: str) -> Any:
        """Whatever else a newer uuid may ask, from the module itself."""
        present: Any = sys.modules.get("platform")
        if present is self:
            del sys.modules["platform"]
        return getattr(import_module("platform"), name)


class CommandHelpFormatter(argparse.HelpFormatter):
    """argparse makes one per option, whether there will be help or not, and that imports shutil
    to learn how wide the terminal is."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=get_terminal_columns() - 2)

    def add_argument(self, action: argparse.Action) -> None:
        """argparse forgets the indentation of commands: the help of the longest stood a line lower."""
        super().add_argument(action)
        for one in self._iter_indented_subactions(action):
            length = self._current_indent + len(self._format_action_invocation(one))
            self._action_max_length = max(self._action_max_length, length)


def get_terminal_columns() -> int:
    """Columns of the terminal, in the way of argparse: $COLUMNS, else the terminal's, else 80."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
