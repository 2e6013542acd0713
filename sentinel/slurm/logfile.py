"""slurmctld's log on this host: what was written to it since a moment. Every look is bounded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel import proc
from sentinel.core.errors import CannotTell

LOG_LIMIT_S = 3.0
"""Seconds for one look at the file: it may be on a file system that hangs."""
MAX_LOG_BYTES = 32 * 2**20
"""Bytes of log since that moment, at most."""

_PLACE = re.compile(r"(\d+:\d+):(\d+) (/.*)", re.DOTALL)


def log_position(path: str) -> str:
    """Where the log ends now, for `read_log_since`; raises CannotTell where it cannot be read from here."""
    if not path.startswith("/"):
        raise CannotTell("where it is, nobody said (`slurmctld_log`, SlurmctldLogFile)")
    _run_tool(["tail", "-c", "0", "--", path], path)
    return f"{_stat_text(path)} {path}"


def read_log_since(place: str) -> str:
    """What was logged since; raises CannotTell where the file is another one by now."""
    match = _PLACE.fullmatch(place)
    if match is None:
        raise CannotTell("where it ended before, nobody knows")
    file, size, path = match[1], int(match[2]), match[3]
    out = _run_tool(["tail", "-c", f"+{size + 1}", "--", path], path)
    now, _, length = _stat_text(path).rpartition(":")
    if now != file or int(length) < size:
        raise CannotTell(f"{path} was rotated meanwhile")
    return out.decode("utf-8", "backslashreplace")


def _stat_text(path: str) -> str:
    said = _run_tool(["stat", "-L", "-c", "%d:%i:%s", "--", path], path).decode("ascii", "replace")
    return said.strip()


def _run_tool(argv: Sequence[str], path: str) -> bytes:
    done = proc.run(argv, limit=LOG_LIMIT_S, max_output=MAX_LOG_BYTES)
    if done.code:
        said = done.err.decode("utf-8", "backslashreplace").strip()
        raise CannotTell(said or f"{path} cannot be read here")
    return done.out
