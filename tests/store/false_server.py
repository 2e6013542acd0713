"""A program that stands in for PostgreSQL, and one that passes on what the real one says.

Messages: https://www.postgresql.org/docs/16/protocol-message-formats.html
"""

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Behaviour = Callable[[socket.socket], None]
ASK_PASSWORD = b"R" + struct.pack("!II", 8, 3)
ASK_MD5 = b"R" + struct.pack("!II", 12, 5) + b"salt"
WELCOME = b"R" + struct.pack("!II", 8, 0) + b"Z" + struct.pack("!I", 5) + b"I"


@contextmanager
def listening(behave: Behaviour) -> Iterator[int]:
    """A server on 127.0.0.1 that treats each client so; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server, _serving(server, behave):
        yield int(server.getsockname()[1])


@contextmanager
def listen_at(path: str, behave: Behaviour, uid: int | None = None) -> Iterator[None]:
    """The same on a Unix socket. `uid`: as this user (root only)."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        before = os.geteuid()
        try:
            os.seteuid(before if uid is None else uid)
            server.listen()  # whose socket it is: SO_PEERCRED of unix(7)
        finally:
            os.seteuid(before)
        with _serving(server, behave):
            yield


@contextmanager
def _serving(server: socket.socket, behave: Behaviour) -> Iterator[None]:
    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                with client, suppress(OSError, struct.error):
                    behave(client)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # ends the wait for the next one


def read_startup(client: socket.socket) -> None:
    """Until the client has said who it is; it may ask for TLS or GSS first, and gets neither."""
    while True:
        size, code = struct.unpack("!II", client.recv(8, socket.MSG_WAITALL))
        client.recv(size - 8, socket.MSG_WAITALL)
        if code == 3 << 16 or code == (3 << 16) + 2:
            return
        client.sendall(b"N")


def relay_to(path: str, client: socket.socket) -> None:
    """The server of that Unix socket, over TCP."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        threading.Thread(target=pump, args=(server, client), daemon=True).start()
        pump(client, server)


def pump(source: socket.socket, sink: socket.socket) -> None:
    """All that comes from there goes here."""
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
