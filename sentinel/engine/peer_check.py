"""Watching another sentinel: its heartbeat file on shared storage has to change.

Never by the file's times against this host's clock, which tell of two clocks and a cache;
only by what stands in it, from one look to the next, on the clock of this boot.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from sentinel import proc
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.recall import recalled
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.engine.liveness import Sign, noticed, silent_for

SUBJECT = "peer"
LIMIT = 5.0
MOST = 4096
_REMEMBERED = "peer"


class Look(Struct, frozen=True):
    """What was seen of the peer, and what to remember of it."""

    finding: Finding
    memory: Mapping[str, Any]


class PeerWatch:
    """Reads the file by a child that can be left behind, one at a time."""

    def __init__(self, path: str, patience: float) -> None:
        self._path, self._patience = str(path), patience  # a FilePath is none to a codec
        self._hanging = proc.Hanging()

    def look(self, memory: Mapping[str, Any], now: Instant) -> Look:
        """Takes LIMIT seconds at most. That the file is missing or cannot be read is no sign of
        life: it may be what keeps the peer from giving one."""
        try:
            mark, trouble = self._read(), ""
        except CannotTell as error:
            mark, trouble = "", f" ({visible(str(error))})"
        sign = noticed(_recalled(memory, self._path), self._path, mark, now)
        remembered = {_REMEMBERED: msgspec.to_builtins(sign)}
        return Look(self._finding(silent_for(sign, now), trouble), remembered)

    def _finding(self, silent: float, trouble: str) -> Finding:
        if silent < self._patience:
            return Finding(subject=SUBJECT, status=Status.OK, summary="gives signs of life")
        return Finding(
            subject=SUBJECT,
            status=Status.CRITICAL,
            summary=f"the other sentinel has given no sign of life in {visible(self._path)} "
            f"for {duration_text(silent)}{trouble}: it is down or blind, or the storage is",
            commands=(f"cat {visible(self._path)}", "sentinel status  # on the host named there"),
        )

    def _read(self) -> str:
        argv = ["head", "-c", str(MOST), "--", self._path]
        try:
            with self._hanging.alone(self._path):
                done = proc.run(argv, limit=LIMIT, max_output=2 * MOST)
        except proc.Hangs as error:
            raise CannotTell(f"its file system {error}") from None
        except proc.TimedOut as error:
            raise CannotTell(f"cannot be read within {LIMIT:.0f}s") from error
        if done.code:
            raise CannotTell(done.err.decode("utf-8", "replace").strip().rpartition(": ")[2])
        return done.out.decode("utf-8", "replace")


def _recalled(memory: Mapping[str, Any], path: str) -> Sign | None:
    sign = recalled(memory.get(_REMEMBERED), Sign)
    return sign if sign and sign.path == path else None
