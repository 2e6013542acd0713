"""Reads slurmctld's log on this host from a position on. Time and size of every look are
limited."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel import proc
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.slurm.slurmctld_log import explain_disorder

LOG_LIMIT_S = 3.0
"""Seconds for one look at the file: it may be on a file system that hangs."""
MAX_LOG_BYTES = 32 * 2**20
"""Bytes that are read of the log at most."""

EARLIER_BYTES = 2**18
"""Bytes before a position in which times have to be in order too: who forges lines tries often."""

_PLACE = re.compile(r"(\d+:\d+):(\d+) (/.*)", re.DOTALL)


def log_position(path: str) -> str:
    """The position where the log ends now, for `read_log_since`. Raises CannotTell if the log
    cannot be read from here."""
    if not path.startswith("/"):
        raise CannotTell("no absolute path of it is known (`slurmctld_log`, SlurmctldLogFile)")
    _require_order(_run_tool(["tail", "-c", str(EARLIER_BYTES), "--", path], path), path)
    return f"{_stat_text(path)} {path}"


def read_log_since(place: str) -> str:
    """The text that was logged after `place`, which `log_position` returned.

    Raises CannotTell if `place` is not valid, the log was rotated, or it cannot be read."""
    match = _PLACE.fullmatch(place)
    if match is None:
        raise CannotTell("not known where it ended at the last look")
    file, size, path = match[1], int(match[2]), match[3]
    out = _run_tool(["tail", "-c", f"+{size + 1}", "--", path], path)
    now, _, length = _stat_text(path).rpartition(":")
    if now != file or int(length) < size:
        raise CannotTell(f"{path} was rotated meanwhile")
    return _require_order(out, path)


def _require_order(out: bytes, path: str) -> str:
    """The text, if its times are in order. Raises CannotTell."""
    text = decode_lines(out)
    if why := explain_disorder(text):
        raise CannotTell(f"{path}: {why}")
    return text


def _stat_text(path: str) -> str:
    said = _run_tool(["stat", "-L", "-c", "%d:%i:%s", "--", path], path).decode("ascii", "replace")
    return said.strip()


def _run_tool(argv: Sequence[str], path: str) -> bytes:
    done = proc.run(argv, limit=LOG_LIMIT_S, max_output=MAX_LOG_BYTES)
    if done.code:
        said = decode_lines(done.err).strip()
        raise CannotTell(said or f"{path} cannot be read here")
    return done.out
