"""A PostgreSQL server proves who it is before it gets a password, and who proves it goes on as before."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trustme

from sentinel.core.errors import StoreError
from sentinel.store.postgres import PostgresBackend
from sentinel.store.session import translate_driver_errors
from tests.lab.postgres import Postgres
from tests.store.false_server import (
    ASK_MD5,
    ASK_PASSWORD,
    WELCOME,
    Behaviour,
    listen_at,
    listening,
    read_startup,
    relay_to,
)

Admin = psycopg.Connection[Any]
SECRET = "the-secret"
KNOWS_REQUIRE_AUTH = psycopg.pq.version() >= 160_000
knows_require_auth = pytest.mark.skipif(
    not KNOWS_REQUIRE_AUTH, reason="libpq before 16 cannot demand proof of a server"
)
ASKS = pytest.mark.parametrize("ask", [ASK_PASSWORD, ASK_MD5], ids=["clear", "MD5"])


def steal(ask: bytes, got: list[bytes]) -> Behaviour:
    """A server that says this to whoever comes, and keeps what it is told."""

    def behave(client: socket.socket) -> None:
        read_startup(client)
        client.sendall(ask)
        client.settimeout(5)
        got.append(client.recv(1000))

    return behave


def is_given(got: list[bytes]) -> bool:
    """Whether a password message (`p`) came, in whatever form."""
    return any(data.startswith(b"p") for data in got)


def connect(url: str) -> None:
    """As sentinel does."""
    PostgresBackend(url).open_connection().close()


@pytest.fixture
def passfile(tmp_path: Path) -> Path:
    path = tmp_path / "pgpass"
    path.write_text(f"*:*:*:*:{SECRET}\n", encoding="ascii")
    path.chmod(0o600)
    return path


@knows_require_auth
@ASKS
@pytest.mark.parametrize(
    "source",
    ["address", "query", "passfile", "PGPASSWORD", "PGPASSFILE", "PGSERVICE", "service"],
)
def test_a_false_server_gets_no_password_wherever_it_lies(
    ask: bytes, source: str, passfile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """https://www.postgresql.org/docs/current/libpq-envars.html, libpq-pgpass.html, libpq-pgservice.html"""
    services = passfile.with_name("services")
    services.write_text(f"[state]\nhost=127.0.0.1\npassword={SECRET}\n", encoding="ascii")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    for name, value in {
        "PGPASSWORD": SECRET,
        "PGPASSFILE": str(passfile),
        "PGSERVICE": "state",
    }.items():
        if name == source:
            monkeypatch.setenv(name, value)
    user = f"sentinel:{SECRET}" if source == "address" else "sentinel"
    host = "" if source.lower().endswith("service") else "127.0.0.1"
    query = {"query": f"password={SECRET}", "passfile": f"passfile={passfile}"}.get(source, "")
    query = "service=state" if source == "service" else query
    got: list[bytes] = []
    with listening(steal(ask, got)) as port:
        url = f"postgresql://{user}@{host}:{port}/sentinel?{query}"
        with pytest.raises(psycopg.OperationalError, match="authentication method requirement"):
            connect(url)
    assert not is_given(got)


@knows_require_auth
def test_a_server_that_asks_for_no_proof_is_not_believed() -> None:
    """Where the address has a password."""
    with listening(steal(WELCOME, [])) as port:
        url = f"postgresql://sentinel:{SECRET}@127.0.0.1:{port}/sentinel"
        with pytest.raises(psycopg.OperationalError, match="authentication method requirement"):
            connect(url)


@knows_require_auth
@ASKS
@pytest.mark.parametrize(
    ("mode", "owner", "group", "query", "known"),
    [
        pytest.param(0o1777, 0, 0, "", False, id="everybody may put one there"),
        pytest.param(0o1777, 0, 0, "sslmode=verify-full", False, id="a socket has no TLS"),
        pytest.param(0o755, 4321, 0, "", False, id="a user's folder"),
        pytest.param(0o775, 0, 4321, "", False, id="a group's folder"),
        pytest.param(0o755, 0, 0, "hostaddr=127.0.0.1", False, id="a port all the same"),
        pytest.param(0o755, 0, 0, "", True, id="root's folder"),
        pytest.param(0o2775, 1, 1, "", True, id="a daemon's folder, as Debian has it"),
        pytest.param(0o1777, 0, 0, "requirepeer=root", True, id="the server's user is named"),
        pytest.param(0o1777, 0, 0, "requirepeer=daemon", False, id="another user is named"),
    ],
)
def test_a_socket_is_known_by_its_folder_or_its_user(
    as_root: None, ask: bytes, mode: int, owner: int, group: int, query: str, known: bool
) -> None:
    """PostgreSQL as its authors build it puts it into /tmp."""
    got: list[bytes] = []
    with tempfile.TemporaryDirectory(prefix="sentinel-socket-") as folder:
        os.chown(folder, owner, group)
        os.chmod(folder, mode)
        thief = steal(ask, got)
        with listening(thief) as port, listen_at(f"{folder}/.s.PGSQL.{port}", thief):
            url = f"postgresql://sentinel:{SECRET}@:{port}/sentinel?host={folder}&{query}"
            with pytest.raises(psycopg.OperationalError):
                connect(url)
    assert is_given(got) is known


@knows_require_auth
@ASKS
def test_a_socket_without_a_file_is_as_open_as_a_port(ask: bytes) -> None:
    """unix(7): everybody may bind any abstract name."""
    got: list[bytes] = []
    name = f"sentinel-test-{os.getpid()}-{len(ask)}"
    url = f"postgresql://sentinel:{SECRET}@/sentinel?host=@{name}&sslmode=verify-full"
    thief = steal(ask, got)
    with listen_at(f"\0{name}/.s.PGSQL.5432", thief), pytest.raises(psycopg.OperationalError):
        connect(url)
    assert not is_given(got)


@knows_require_auth
@pytest.mark.parametrize("said", ["address", "environment"])
def test_what_a_person_says_of_it_wins(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a server that may ask for the password itself, such as one behind a tunnel. The
    environment does not change the name of the journal."""
    if said == "environment":
        monkeypatch.setenv("PGREQUIREAUTH", "password")
    query = "require_auth=password" if said == "address" else ""
    got: list[bytes] = []
    with listening(steal(ASK_PASSWORD, got)) as port, pytest.raises(psycopg.OperationalError):
        connect(f"postgresql://sentinel:{SECRET}@127.0.0.1:{port}/sentinel?{query}")
    assert is_given(got)


@contextmanager
def ruled(admin: Admin, rules: str) -> Iterator[None]:
    """The server with these lines before its own in pg_hba.conf."""
    place = admin.execute("SHOW hba_file").fetchone()
    assert place
    path = Path(place[0])
    before = path.read_text(encoding="ascii")
    try:
        path.write_text(f"{rules}\n{before}", encoding="ascii")
        admin.execute("SELECT pg_reload_conf()")
        yield
    finally:
        path.write_text(before, encoding="ascii")
        admin.execute("SELECT pg_reload_conf()")


@contextmanager
def keeper(postgres: Postgres, rules: str, encryption: str = "") -> Iterator[Admin]:
    """A server with a role `keeper` that has a password."""
    with postgres.database() as url, psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"SET password_encryption = '{encryption or 'scram-sha-256'}'")
        admin.execute(f"CREATE ROLE keeper LOGIN PASSWORD '{SECRET}'")
        try:
            with ruled(admin, rules):
                yield admin
        finally:
            admin.execute("DROP OWNED BY keeper")
            admin.execute("DROP ROLE keeper")


@contextmanager
def keeper_off_the_host(
    postgres: Postgres, rules: str, encryption: str = ""
) -> Iterator[tuple[Admin, str]]:
    """The same over TCP, and its address."""
    with keeper(postgres, rules, encryption) as admin:
        place = f"{admin.info.host}/.s.PGSQL.{admin.info.port}"
        with listening(partial(relay_to, place)) as port:
            yield admin, f"127.0.0.1:{port}/{admin.info.dbname}"


@pytest.mark.parametrize("source", ["address", "PGPASSFILE"])
def test_a_server_that_asks_by_scram_goes_on(
    postgres: Postgres, passfile: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TCP; with the wrong password it says so."""
    word = f":{SECRET}" if source == "address" else ""
    if not word:
        monkeypatch.setenv("PGPASSFILE", str(passfile))
    with keeper_off_the_host(postgres, "local all keeper scram-sha-256") as (_admin, place):
        connect(f"postgresql://keeper{word}@{place}")
        with pytest.raises(psycopg.OperationalError, match="password authentication"):
            connect(f"postgresql://keeper:wrong@{place}")


@pytest.mark.parametrize("method", ["password", "md5", "scram-sha-256", "trust"])
def test_a_local_socket_with_a_password_goes_on(postgres: Postgres, method: str) -> None:
    """In the folder of the server, whatever it asks for."""
    stored = "md5" if method == "md5" else ""
    with keeper(postgres, f"local all keeper {method}", stored) as admin:
        connect(f"postgresql://keeper:{SECRET}@/{admin.info.dbname}?host={admin.info.host}")


def test_peer_goes_on(
    as_root: None, postgres: Postgres, passfile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where a password lies about that would serve for it too."""
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    with keeper(postgres, "local all root peer") as admin:
        admin.execute("CREATE ROLE root LOGIN")
        try:
            connect(f"postgresql://root@/{admin.info.dbname}?host={admin.info.host}")
        finally:
            admin.execute("DROP OWNED BY root")
            admin.execute("DROP ROLE root")


def test_trust_over_tcp_goes_on(
    postgres: Postgres, passfile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the address has no password: there is nothing that such a server could get."""
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    with keeper_off_the_host(postgres, "local all keeper trust") as (_admin, place):
        connect(f"postgresql://keeper@{place}")


@knows_require_auth
def test_md5_off_the_host_is_refused_with_the_remedy(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gets the MD5 may use it in place of the password. What a person says wins."""
    with keeper_off_the_host(postgres, "local all keeper md5", "md5") as (_admin, place):
        backend = PostgresBackend(f"postgresql://keeper:{SECRET}@{place}")
        with pytest.raises(StoreError) as told, translate_driver_errors(backend):
            backend.open_connection()
        monkeypatch.setenv("PGREQUIREAUTH", "md5")
        backend.open_connection().close()
    assert "requested a hashed password; let the server ask by SCRAM" in str(told.value)
    assert SECRET not in str(told.value)


def test_a_refusal_costs_the_state_alone(postgres: Postgres, tmp_path: Path) -> None:
    """A set-up that went on with MD5 until now is told at once, goes on watching from a journal, and
    writes all of it once the password is stored by SCRAM."""
    with keeper_off_the_host(postgres, "local all keeper md5", "md5") as (admin, place):
        told, config = tmp_path / "told", tmp_path / "sentinel.yaml"
        config.write_text(
            f"state: postgresql://keeper:{SECRET}@{place}\n"
            f"checks: {{new: {{kind: exec, every: 1s, command: [cat, {tmp_path}/gone]}}}}\n"
            f"channels: {{book: {{kind: file, path: {told}}}}}\n"
        )
        config.chmod(0o600)

        def tick(**env: str) -> list[tuple[str, str]]:
            """One pass; whom it told of, and how."""
            before = len(told.read_text().splitlines()) if told.exists() else 0
            argv = [sys.executable, "-m", "sentinel", "tick", "--all", "-c", str(config)]
            env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), **env}
            done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            rows = [json.loads(line) for line in told.read_text().splitlines()[before:]]
            return [(row["subject"], row["reason"]) for row in rows]

        admin.execute("GRANT ALL ON SCHEMA public TO keeper")
        # A libpq before 16 is told, and goes on.
        old = [] if KNOWS_REQUIRE_AUTH else [("trust", "firing")]
        assert tick(PGREQUIREAUTH="md5") == [("new", "firing"), *old]
        if KNOWS_REQUIRE_AUTH:
            assert tick() == [("state", "firing")]
            assert "let the server ask by SCRAM" in told.read_text()
        (tmp_path / "gone").touch()
        assert ("new", "resolved") in tick()
        admin.execute("SET password_encryption = 'scram-sha-256'")
        admin.execute(f"ALTER ROLE keeper PASSWORD '{SECRET}'")
        assert tick() == ([("state", "resolved")] if KNOWS_REQUIRE_AUTH else [])
        assert tick() == []


@pytest.fixture(scope="module")
def encrypted() -> Iterator[tuple[Postgres, str, str]]:
    """A server that speaks TLS on an address of this host; the address, and the file of its CA."""
    with tempfile.TemporaryDirectory(prefix="sentinel-tls-") as folder:
        os.chmod(folder, 0o755)
        ca, place, number = trustme.CA(), Path(folder), os.getpid()
        address = f"127.{1 + number // 250 % 250}.{number % 250}.7"
        issued = ca.issue_cert(address)
        ca.cert_pem.write_to_path(place / "ca")
        issued.cert_chain_pems[0].write_to_path(place / "certificate")
        issued.private_key_pem.write_to_path(place / "key")
        (place / "key").chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(place / "key", "postgres")
        files = {f"ssl_{name}_file": str(place / name) for name in ("key", "ca")}
        files["ssl_cert_file"] = str(place / "certificate")
        with Postgres(listen_addresses=address, ssl="on", **files) as server:
            yield server, address, str(place / "ca")


@pytest.mark.parametrize("said", ["address", "environment"])
def test_verified_tls_goes_on_whatever_the_server_asks_for(
    encrypted: tuple[Postgres, str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encrypted alone is not enough: the other side may be anybody."""
    server, host, ca = encrypted
    query = f"sslmode=verify-full&sslrootcert={ca}"
    if said == "environment":
        monkeypatch.setenv("PGSSLMODE", "verify-full")
        monkeypatch.setenv("PGSSLROOTCERT", ca)
        query = ""
    with keeper(server, "hostssl all keeper 127.0.0.0/8 password") as admin:
        name = admin.info.dbname
        connect(f"postgresql://keeper:{SECRET}@{host}/{name}?{query}")
        if KNOWS_REQUIRE_AUTH:
            with pytest.raises(psycopg.OperationalError, match="authentication method requirement"):
                connect(f"postgresql://keeper:{SECRET}@{host}/{name}?sslmode=require")


@pytest.mark.parametrize("passwords", [0, 1], ids=["no password", "a password"])
@pytest.mark.parametrize(("query", "safe"), [("", False), ("?sslmode=verify-full", True)])
def test_an_old_libpq_is_told(passwords: int, query: str, safe: bool, tmp_path: Path) -> None:
    """It goes on for one release. psycopg's own libpq is new; that of Debian 12 is 15."""
    config = tmp_path / "sentinel.yaml"
    word = f":{SECRET}" * passwords
    config.write_text(f"state: postgresql://keeper{word}@127.0.0.1/sentinel{query}\n")
    config.chmod(0o600)
    env = {**os.environ, "PSYCOPG_IMPL": "python", "HOME": str(tmp_path)}
    asked = [sys.executable, "-c", "from psycopg import pq; print(pq.version())"]
    told = subprocess.run(asked, env=env, capture_output=True, text=True, check=False).stdout
    if not told or int(told) >= 160_000:
        pytest.skip("the libpq of this host is a new one, or there is none")
    argv = [sys.executable, "-m", "sentinel", "config", "check", "-c", str(config)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("state: libpq 15 gives the password" in done.stderr) is (passwords == 1 and not safe)
