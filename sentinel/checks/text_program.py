"""The child of `text_child`. It calls functions with texts that users wrote, within limits of its
own."""

from __future__ import annotations

import math
import pickle
import resource
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from sentinel.core.errors import CannotTell

LENGTH_BYTES = 8
"""Bytes of the length with which each request and answer begins, most significant byte first."""


def with_length(message: bytes) -> bytes:
    """A request or an answer as it is sent."""
    return len(message).to_bytes(LENGTH_BYTES, "big") + message


def read_length(head: bytes) -> int:
    """How many bytes follow."""
    return int.from_bytes(head, "big")


def get_ready(function: Callable[..., Any]) -> None:
    """Do nothing. The request for this imports the module of the function."""


def main() -> None:
    """Answer requests until the input ends."""
    most, seconds = int(sys.argv[1]), float(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(
        resource.RLIMIT_CORE, (0, 0)
    )  # a core file would contain text of users' logs
    while head := sys.stdin.buffer.read(LENGTH_BYTES):
        request = sys.stdin.buffer.read(read_length(head))
        _limit_cpu_time(seconds)
        answer = _run_request(*pickle.loads(request))  # noqa: S301 - from the parent
        sys.stdout.buffer.write(with_length(answer))
        sys.stdout.buffer.flush()


def _limit_cpu_time(seconds: float) -> None:
    """Let the kernel end this process (SIGXCPU) when it has used so much more processor time.

    The time of a clock would say more about the other processes of a busy node than about a text.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))


def _run_request(function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    try:
        return b"=" + msgspec.msgpack.encode(function(*args))
    except CannotTell as error:
        return b"!" + str(error).encode()
