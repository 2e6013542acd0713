"""Whoever sits on the port of a PostgreSQL server that is down: gets no password, and is not believed.

Messages: https://www.postgresql.org/docs/16/protocol-message-formats.html
"""

import itertools
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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

Behaviour = Callable[[socket.socket], None]
ASK_PASSWORD = b"R" + struct.pack("!II", 8, 3)
WELCOME = b"R" + struct.pack("!II", 8, 0) + b"Z" + struct.pack("!I", 5) + b"I"


@contextmanager
def listening(behave: Behaviour) -> Iterator[int]:
    """A server on 127.0.0.1 that treats each client so; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client, suppress(OSError):
                        behave(client)

        threading.Thread(target=serve, daemon=True).start()
        yield int(server.getsockname()[1])


def read_startup(client: socket.socket) -> None:
    """Until the client has said who it is; it may ask for TLS or GSS first, and gets neither."""
    while True:
        size, code = struct.unpack("!II", client.recv(8, socket.MSG_WAITALL))
        client.recv(size - 8, socket.MSG_WAITALL)
        if code == 3 << 16 or code == (3 << 16) + 2:
            return
        client.sendall(b"N")


knows_require_auth = pytest.mark.skipif(
    psycopg.pq.version() < 160_000, reason="libpq before 16 cannot demand proof of a server"
)


@knows_require_auth
@pytest.mark.parametrize("answer", [ASK_PASSWORD, WELCOME], ids=["asks", "welcomes"])
def test_a_false_server_gets_no_password_and_is_not_believed(answer: bytes) -> None:
    got: list[bytes] = []

    def behave(client: socket.socket) -> None:
        read_startup(client)
        client.sendall(answer)
        client.settimeout(2)
        got.append(client.recv(1000))

    with listening(behave) as port:
        backend = PostgresBackend(f"postgresql://sentinel:the-secret@127.0.0.1:{port}/sentinel")
        with pytest.raises(psycopg.OperationalError, match="authentication method requirement"):
            backend.open_connection()
    assert not any(b"the-secret" in data for data in got)


@knows_require_auth
@pytest.mark.parametrize(("mode", "trusted"), [(0o1777, False), (0o755, True)])
def test_a_socket_in_a_directory_of_all_is_as_open_as_a_port(
    tmp_path: Path, mode: int, trusted: bool
) -> None:
    """PostgreSQL as its authors build it puts it into /tmp. Where only the server can put one, it may
    ask for the password itself, or for nothing (the control)."""
    tmp_path.chmod(mode)
    got: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / ".s.PGSQL.5432"))
        server.listen()

        def serve() -> None:
            client, _ = server.accept()
            with client, suppress(OSError):
                read_startup(client)
                client.sendall(ASK_PASSWORD)
                got.append(client.recv(1000))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"postgresql://sentinel:the-secret@/sentinel?host={tmp_path}"
        with pytest.raises(psycopg.OperationalError):
            PostgresBackend(url).open_connection()
        thread.join(10)
    assert (b"the-secret" in b"".join(got)) is trusted


@knows_require_auth
def test_what_the_address_says_of_it_wins() -> None:
    """For a server that may ask for the password itself, such as one behind a tunnel."""
    got: list[bytes] = []

    def behave(client: socket.socket) -> None:
        read_startup(client)
        client.sendall(ASK_PASSWORD)
        got.append(client.recv(1000))

    with listening(behave) as port:
        url = f"postgresql://sentinel:the-secret@127.0.0.1:{port}/sentinel?require_auth=password"
        with pytest.raises(psycopg.OperationalError):
            PostgresBackend(url).open_connection()
    assert b"the-secret" in b"".join(got)


def test_the_right_server_proves_itself(postgres: Postgres) -> None:
    """One that asks by SCRAM, over TCP; with the wrong password it says so."""
    with postgres.database() as url, psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE ROLE keeper LOGIN PASSWORD 'the-secret'")
        place = admin.execute("SHOW hba_file").fetchone()
        assert place
        with open(place[0], encoding="ascii") as file:
            rules = file.read()
        name, folder = admin.info.dbname, admin.info.host
        try:
            with open(place[0], "w", encoding="ascii") as file:
                file.write(f"local all keeper scram-sha-256\n{rules}")
            admin.execute("SELECT pg_reload_conf()")

            with listening(partial(relay_to, f"{folder}/.s.PGSQL.5432")) as port:
                url = "postgresql://keeper:{}@127.0.0.1:" + f"{port}/{name}"
                connection = PostgresBackend(url.format("the-secret")).open_connection()
                connection.close()
                with pytest.raises(psycopg.OperationalError, match="password authentication"):
                    PostgresBackend(url.format("wrong")).open_connection()
        finally:
            with open(place[0], "w", encoding="ascii") as file:
                file.write(rules)
            admin.execute("SELECT pg_reload_conf()")
            admin.execute("DROP ROLE keeper")


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


@contextmanager
def serve_without_end(what: str, sent: list[int]) -> Iterator[int]:
    """A server of one of ENDLESS; its port. `sent`: the sizes of what it sent."""

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

    with listening(behave) as port:
        yield port


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_end_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it fills the memory, with the address and why."""
    monkeypatch.setattr(measured_answers, "MAX_ANSWER_BYTES", 4 * 2**20)
    sent: list[int] = []
    with serve_without_end(what, sent) as port:
        address = f"postgresql://sentinel@127.0.0.1:{port}/sentinel"
        backend = PostgresBackend(address)
        with pytest.raises(ExcessiveAnswer) as told, translate_driver_errors(backend):
            backend.open_connection()
    assert str(told.value).startswith(f"{address}: the server sent")
    # What the kernel had taken by then is in it. libpq reads on in one row while the server is as fast.
    assert sum(sent) < 64 * 2**20 + (2**30 if what == "one row" else 0)


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
