"""Watches another sentinel: the content of its heartbeat file on shared storage has to change.

The times of the file are not compared with this host's clock, because the clocks and a cache may
differ. Only the content counts, from one run to the next, on the clock of this boot.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from sentinel import proc
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import look
from sentinel.core.long_lines import decode_lines
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
    """The finding about the peer, and what to remember of it."""

    finding: Finding  # The finding about the peer.
    memory: Mapping[str, Any]  # What to remember for the next run.


class PeerWatch:
    """Reads the file in a child process that can be left behind, one at a time."""

    def __init__(self, path: str, patience: float) -> None:
        self._path, self._patience = str(path), patience  # the encoder does not know FilePath
        self._hanging = proc.HangingChildren()

    def check_peer(self, memory: Mapping[str, Any], now: Instant) -> PeerLook:
        """Check the peer. This takes READ_TIMEOUT_S at most.

        A file that is missing or cannot be read is no sign of life: the same reason may keep the
        peer from giving one.
        """
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
            commands=(
                look("cat -v {}", self._path),
                look("sentinel status  # on the host named there"),
            ),
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
            raise CannotTell(decode_lines(done.err).strip().rpartition(": ")[2])
        return decode_lines(done.out)


def _recall_life_sign(memory: Mapping[str, Any], path: str) -> LifeSign | None:
    sign = decode_memory(memory.get(_MEMORY_KEY), LifeSign)
    return sign if sign and sign.path == path else None
