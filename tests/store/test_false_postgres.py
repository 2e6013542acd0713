"""Whoever sits on the port of a PostgreSQL server that is down fills no memory and no message.

Messages: https://www.postgresql.org/docs/16/protocol-message-formats.html
"""

import itertools
import socket
import struct
from functools import partial
from pathlib import Path

import psycopg
import pytest

from sentinel.core.errors import StoreError
from sentinel.store import measured_answers
from sentinel.store.database import Statement
from sentinel.store.errors import ExcessiveAnswer
from sentinel.store.postgres import PostgresBackend
from sentinel.store.session import DatabaseSession, translate_driver_errors
from tests.lab.postgres import Postgres
from tests.store.false_server import Behaviour, listen_at, listening, read_startup, relay_to


def test_an_address_that_is_none_is_told_as_before() -> None:
    with pytest.raises(StoreError, match="not a URL"):
        PostgresBackend("postgresql://u@h:x/d")


def test_what_a_server_says_comes_short_and_inert() -> None:
    """libpq takes 30,000 characters of an error before anybody has proven anything."""
    said = b"\x1b]0;title\x07" + b"x" * 20_000

    def behave(client: socket.socket) -> None:
        read_startup(client)
        body = b"SFATAL\0C08006\0M" + said + b"\0\0"
        client.sendall(b"E" + struct.pack("!I", len(body) + 4) + body)

    with listening(behave) as port:
        backend = PostgresBackend(f"postgresql://sentinel:the-secret@127.0.0.1:{port}/sentinel")
        with pytest.raises(StoreError) as told, translate_driver_errors(backend):
            backend.open_connection()
    assert "\\x1b]0;title\\x07xxx" in str(told.value)
    assert len(str(told.value)) < 700


def frame(kind: bytes, body: bytes) -> bytes:
    """One message of a server."""
    return kind + struct.pack("!I", len(body) + 4) + body


def make_rows(size: int) -> bytes:
    return frame(b"D", struct.pack("!Hi", 1, size) + b"x" * size) * (2**16 // size + 1)


COLUMN = struct.pack("!H", 1) + b"body\0" + struct.pack("!IhIhih", 0, 0, 25, -1, -1, 0)
TABLE = frame(b"1", b"") + frame(b"2", b"") + frame(b"T", COLUMN)
ENDLESS = {
    "rows": (TABLE, make_rows(1000)),
    "small rows": (TABLE, make_rows(1)),
    "one row": (TABLE + b"D" + struct.pack("!IHi", 2**30 + 10, 1, 2**30), b"x" * 2**16),
    "notices": (b"", frame(b"N", b"SNOTICE\0M" + b"x" * 29_000 + b"\0\0")),
    "notifications": (b"", frame(b"A", struct.pack("!I", 1) + b"c\0" + b"x" * 29_000 + b"\0")),
    "parameters": (b"", b""),
    "parameters at the beginning": (b"", b""),
}
"""What begins an answer, and what follows without end. Parameters have another name each: libpq keeps them
until the connection ends."""


def send_without_end(what: str, sent: list[int]) -> Behaviour:
    """A server of one of ENDLESS. `sent`: the sizes of what it sent."""

    def send(client: socket.socket, data: bytes) -> None:
        client.sendall(data)
        sent.append(len(data))

    def behave(client: socket.socket) -> None:
        read_startup(client)
        client.sendall(frame(b"R", struct.pack("!I", 0)))
        if "beginning" not in what:
            client.sendall(frame(b"S", b"client_encoding\0UTF8\0") + frame(b"Z", b"T"))
            client.recv(65536)
        head, block = ENDLESS[what]
        send(client, head)
        for number in itertools.count():
            send(client, block or frame(b"S", b"p%d\0" % number + b"x" * 29_000 + b"\0"))

    return behave


def refuse_answer(address: str) -> str:
    """What is told of a server that is not read to its end."""
    backend = PostgresBackend(address)
    with pytest.raises(ExcessiveAnswer) as told, translate_driver_errors(backend):
        backend.open_connection()
    return str(told.value)


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_end_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it fills the memory, with the address and why."""
    monkeypatch.setattr(measured_answers, "MAX_ANSWER_BYTES", 4 * 2**20)
    sent: list[int] = []
    with listening(send_without_end(what, sent)) as port:
        address = f"postgresql://sentinel@127.0.0.1:{port}/sentinel"
        assert refuse_answer(address).startswith(f"{address}: the server sent")
    # What the kernel had taken by then is in it. libpq reads on in one row while the server is as fast.
    assert sum(sent) < 64 * 2**20 + (2**30 if what == "one row" else 0)


@pytest.mark.parametrize("what", sorted(ENDLESS.keys() - {"one row", "notices", "notifications"}))
def test_so_on_a_socket_of_another_user(
    as_root: None, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What grows there is this process; what libpq passes on at once fills nothing."""
    monkeypatch.setattr(measured_answers, "MAX_ANSWER_BYTES", 16 * 2**20)
    sent: list[int] = []
    place = str(tmp_path / ".s.PGSQL.5432")
    with listen_at(place, send_without_end(what, sent), uid=4321):
        assert "the server sent more" in refuse_answer(
            f"postgresql://sentinel@/sentinel?host={tmp_path}"
        )
    assert sum(sent) < 256 * 2**20


def test_what_the_right_server_sends_in_parts_is_read(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TCP, close to the limit, in many statements: a connection that has carried much is made anew."""
    monkeypatch.setattr(measured_answers, "MAX_ANSWER_BYTES", 2**20)
    monkeypatch.setattr(measured_answers, "MAX_CONNECTION_BYTES", 2 * 2**20)
    big = Statement("SELECT repeat('x', 900000)")
    with postgres.database() as url, psycopg.connect(url) as admin:
        info = admin.info
        with listening(partial(relay_to, f"{info.host}/.s.PGSQL.{info.port}")) as port:
            session = DatabaseSession(
                PostgresBackend(f"postgresql://{info.user}@127.0.0.1:{port}/{info.dbname}")
            )
            numbers = []
            for _ in range(8):
                with session.read_transaction() as connection:
                    assert len(connection.fetch_value(big)) == 900_000
                numbers.append(session.number)
            session.close()
    assert numbers == sorted(numbers)
    assert 1 < numbers[-1] < 8
