"""The parent's side of the child that opens files."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from sentinel.core.errors import CannotTell
from sentinel.core.text import shortened, visible
from sentinel.proc import bare_environment
from sentinel.proc.dialogue import Dialogue
from sentinel.user_files.program import LENGTHS
from sentinel.user_files.session import session
from sentinel.user_files.whose import Whose

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from sentinel.user_files.program import main; main()"
)
_ABSENT = (2, 20)
"""ENOENT, ENOTDIR."""


class FileRefused(CannotTell):
    """The request was tried, and nothing was opened or created."""


class FileAbsent(FileRefused):
    """There is no such file."""


class FileReader:
    """A child that opens files; it is started with the first request."""

    def __init__(self) -> None:
        self._dialogue: Dialogue | None = None

    def start_reader(self, limit: float) -> Dialogue:
        """The child, started and ready within `limit` seconds. Raises SlowStart or CannotTell."""
        if self._dialogue is None or not self._dialogue.is_open:
            self._dialogue = Dialogue(_reader_argv(), bare_environment())
            self._dialogue.await_greeting(limit)
        return self._dialogue

    def ask_reader(
        self, do: str, path: str, whose: Whose, limit: float, max_output: int, **asked: object
    ) -> tuple[Mapping[str, Any], bytes]:
        """The answer of the child to a request, see `sentinel.user_files.program`.

        Raises FileAbsent, CannotTell with the path and the reason, and what Dialogue.ask_request
        raises."""
        dialogue = self.start_reader(limit)
        full = os.path.join(os.getcwd(), path) if not path.startswith("/") else path
        request = {"do": do, "path": full, "user": whose.user, "literal": whose.literal,
                   "owned": whose.owned, **asked}  # fmt: skip
        line = json.dumps(request).encode("ascii") + b"\n"
        text, data = dialogue.ask_request(line, LENGTHS.unpack, LENGTHS.size, limit, max_output)
        told = json.loads(text)
        if "error" in told:
            raise _refusal_error(told, path, "made" if do == "create" else "read")
        return told, data

    def end_reader(self) -> None:
        """End the child, if one was started."""
        if self._dialogue:
            self._dialogue.end_child()


def shared_or_own_reader() -> tuple[FileReader, bool]:
    """The reader that this run shares, and True; without one, a new reader that the caller has to
    end, and False."""
    if not session.is_open:
        return FileReader(), False
    if not isinstance(session.reader, FileReader):
        session.reader = FileReader()
    return session.reader, True


def _refusal_error(told: Mapping[str, Any], path: str, done: str) -> FileRefused:
    who = f" as {visible(told['identity'])}" if told.get("identity") else ""
    why = shortened(visible(told["error"]), 200)
    kind = FileAbsent if told["errno"] in _ABSENT else FileRefused
    return kind(f"{visible(path)} cannot be {done}{who}: {why}")


def _reader_argv() -> Sequence[str]:
    return (sys.executable, "-I", "-S", "-c", _START, _ROOT)
