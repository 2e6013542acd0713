"""What makes a one-shot start fast. Measured by benchmarks/bench_start.py."""

import argparse
import atexit
import gc
import os
import sys


def prepare_startup() -> None:
    """To be called before anything that uses msgspec is imported."""
    atexit.register(gc.freeze)  # else the interpreter looks through all objects before it ends
    _import_msgspec()


def _import_msgspec() -> None:
    """Without typing_extensions: where it is installed msgspec takes from it what typing has too
    (3.10 lacks Required, for which settings have no use), and it imports inspect, ast and dis.

    None in sys.modules makes importing it fail:
    https://docs.python.org/3/reference/import.html#the-module-cache
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]


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
    """Of the terminal, as argparse has it: $COLUMNS, else its own, else 80."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
