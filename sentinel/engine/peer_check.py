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
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.engine.liveness import LifeSign, get_silence_s, update_life_sign

PEER_SUBJECT = "peer"
READ_TIMEOUT_S = 5.0
MAX_READ_BYTES = 4096
_MEMORY_KEY = "peer"


class PeerLook(Struct, frozen=True):
    """What was seen of the peer, and what to remember of it."""

    finding: Finding
    memory: Mapping[str, Any]


class PeerWatch:
    """Reads the file by a child that can be left behind, one at a time."""

    def __init__(self, path: str, patience: float) -> None:
        self._path, self._patience = str(path), patience  # a FilePath is none to a codec
        self._hanging = proc.HangingChildren()

    def check_peer(self, memory: Mapping[str, Any], now: Instant) -> PeerLook:
        """Takes LIMIT seconds at most. That the file is missing or cannot be read is no sign of
        life: it may be what keeps the peer from giving one."""
        try:
            mark, trouble = self._read_heartbeat_file(), ""
        except CannotTell as error:
            mark, trouble = "", f" ({visible(str(error))})"
        sign = update_life_sign(_recall_life_sign(memory, self._path), self._path, mark, now)
        remembered = {_MEMORY_KEY: msgspec.to_builtins(sign)}
        return PeerLook(self._judge_silence(get_silence_s(sign, now), trouble), remembered)

    def _judge_silence(self, silent: float, trouble: str) -> Finding:
        if silent < self._patience:
            return Finding(subject=PEER_SUBJECT, status=Status.OK, summary="gives signs of life")
        return Finding(
            subject=PEER_SUBJECT,
            status=Status.CRITICAL,
            summary=f"the other sentinel has given no sign of life in {visible(self._path)} "
            f"for {duration_text(silent)}{trouble}: it is down or blind, or the storage is",
            commands=(f"cat {visible(self._path)}", "sentinel status  # on the host named there"),
        )

    def _read_heartbeat_file(self) -> str:
        argv = ["head", "-c", str(MAX_READ_BYTES), "--", self._path]
        try:
            with self._hanging.start_alone(self._path):
                done = proc.run(argv, limit=READ_TIMEOUT_S, max_output=2 * MAX_READ_BYTES)
        except proc.StillHanging as error:
            raise CannotTell(f"its file system {error}") from None
        except proc.TimedOut as error:
            raise CannotTell(f"cannot be read within {READ_TIMEOUT_S:.0f}s") from error
        if done.code:
            raise CannotTell(done.err.decode("utf-8", "replace").strip().rpartition(": ")[2])
        return done.out.decode("utf-8", "replace")


def _recall_life_sign(memory: Mapping[str, Any], path: str) -> LifeSign | None:
    sign = decode_memory(memory.get(_MEMORY_KEY), LifeSign)
    return sign if sign and sign.path == path else None
