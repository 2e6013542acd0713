"""A connection of psycopg that counts the bytes from the server, and reads no more than a state can
need.

libpq keeps rows, notifications and parameters of a server until the statement or the connection
ends. A program that listens on the port of a dead server could fill the memory with any of them."""

import os
import socket
import struct
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from sentinel.store.errors import ExcessiveAnswer
from sentinel.trust import FIRST_USER_UID, get_trusted_uids

if TYPE_CHECKING:
    from types import ModuleType

MAX_ANSWER_BYTES = 256 * 2**20
"""Bytes from the server for one statement, or for the beginning of a connection. The GPUs of 10,000
nodes take less than half of it. Of one row libpq may read more before it can be stopped: all that the
row announces (at most 2 GiB), if the server sends as fast as libpq reads."""

MAX_CONNECTION_BYTES = 512 * 2**20
"""Bytes after which a new connection is made: libpq frees some data only at the end of a
connection."""

_CREDENTIALS = struct.Struct("=3I")
"""pid, uid and gid of `struct ucred`."""

_RECEIVED = struct.Struct("=128xQ")
"""`tcpi_bytes_received` of `struct tcp_info` (linux/tcp.h, Linux 4.1)."""


def count_received_bytes(descriptor: int) -> int:
    """Bytes that a TCP connection has received so far. Nobody counts those of a Unix socket: 0 if
    its server runs as a trusted user or as an account of the system, else the memory of this
    process, which grows with them."""
    try:
        with socket.socket(fileno=os.dup(descriptor)) as line:
            if line.family == socket.AF_UNIX:
                return 0 if _is_server_trusted(line) else _get_used_memory()
            told = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
    except OSError:
        return 0
    return int(_RECEIVED.unpack(told)[0]) if len(told) == _RECEIVED.size else 0


def _is_server_trusted(line: socket.socket) -> bool:
    """Whether root, this user, whom `trust` names or an account of the system listens there:
    SO_PEERCRED of unix(7)."""
    told = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid = _CREDENTIALS.unpack(told)[1]
    return uid < FIRST_USER_UID or uid in get_trusted_uids()


def _get_used_memory() -> int:
    """Bytes: the second number of proc_pid_statm(5) counts pages."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def make_measured_class(psycopg: "ModuleType") -> Any:
    """psycopg.Connection with these limits; psycopg is imported only if it is used."""

    class MeasuredConnection(psycopg.Connection):  # type: ignore[name-defined, misc]
        is_worn_out = False

        @classmethod
        def _connect_gen(cls, *words: Any, **more: Any) -> Any:
            steps = super()._connect_gen(*words, **more)
            return _limit_steps(steps, lambda wanted: wanted[0])

        def wait(self, gen: Any, *words: Any, **more: Any) -> Any:
            line = self.pgconn.socket
            self.is_worn_out = count_received_bytes(line) > MAX_CONNECTION_BYTES
            steps = _limit_steps(gen, lambda _wanted: line)
            try:
                return super().wait(steps, *words, **more)
            except ExcessiveAnswer:
                self.pgconn.finish()  # frees the memory of the answer
                raise

    return MeasuredConnection


def _limit_steps(steps: Any, find_line: Callable[[Any], int]) -> Generator[Any, Any, Any]:
    """Run psycopg's steps of one exchange; each yields what it waits for, and `find_line` gives the
    descriptor. Raises ExcessiveAnswer between two steps."""
    try:
        wanted = next(steps)
        most = count_received_bytes(find_line(wanted)) + MAX_ANSWER_BYTES
        while count_received_bytes(find_line(wanted)) <= most:
            wanted = steps.send((yield wanted))
    except StopIteration as end:
        return end.value
    raise ExcessiveAnswer(
        f"the server sent more than {MAX_ANSWER_BYTES >> 20} MiB in one answer, which no state has; "
        "look what listens at that address"
    )
