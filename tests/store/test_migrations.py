"""The schema: what it is, how it changes, and states that earlier sentinels wrote."""

import os
import re
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from sentinel.core.errors import StoreError
from sentinel.core.model import Batch
from sentinel.core.run_ledger import LedgerRow
from sentinel.store import migrations
from sentinel.store.audit_log import SqlAuditLog
from sentinel.store.backend import Backend
from sentinel.store.database import Connection, Statement
from sentinel.store.gpu_ledger import SqlGpuLedger
from sentinel.store.migrations import (
    NEWEST_SCHEMA_VERSION,
    OLDEST_SCHEMA_VERSION,
    migrate_schema,
)
from sentinel.store.postgres import PostgresBackend
from sentinel.store.session import translate_driver_errors
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.lab.systemd import ROOT
from tests.packaging.test_pyz import builder
from tests.store.disk import Disk
from tests.store.golden import HOSTILE, LEDGER_ROW, STATES
from tests.store.nouns import at, told

RELEASES = ("", "schema7.", "0.1.0.")
"""What sentinel wrote before its first release (at commit d826494, and with schema 7), and what each release
did (`python -m tests.store.golden`)."""

FILES = sorted(Path(migrations.MIGRATIONS_DIR).glob("*.sql"))


def test_each_version_has_a_file_for_each_database() -> None:
    """And VERSION is the highest of them."""
    names = [f"{n:04}.{kind}.sql" for n in VERSIONS for kind in KINDS]
    assert [path.name for path in FILES] == sorted(names)


KINDS = ("postgresql", "sqlite")
VERSIONS = range(OLDEST_SCHEMA_VERSION, NEWEST_SCHEMA_VERSION + 1)


def test_both_databases_have_the_same_tables() -> None:
    """The same columns and indexes; only the types of numbers differ."""
    for number in VERSIONS:
        one, other = (
            re.sub(
                r"--.*|INTEGER|BIGINT|BIGSERIAL|DOUBLE PRECISION|DOUBLE|WITHOUT ROWID|\s",
                "",
                (Path(migrations.MIGRATIONS_DIR) / f"{number:04}.{kind}.sql").read_text(),
            )
            for kind in KINDS
        )
        assert one == other


def test_the_files_are_in_what_is_installed(tmp_path: Path) -> None:
    """In the wheel, in the source distribution, and in sentinel.pyz, which leaves some files out."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as packed:
        names = {Path(name).name for name in packed.getnames()}
    assert {path.name for path in FILES} <= names
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    builder().remove_superfluous(site)
    assert {path.name for path in FILES} <= {path.name for path in site.rglob("*.sql")}


# States of earlier sentinels


@pytest.fixture(params=[f"{release}{kind}" for release in RELEASES for kind in KINDS])
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """A state as an earlier sentinel left it."""
    dump = (STATES / f"{request.param}.sql").read_text(encoding="utf-8")
    if request.param.endswith("sqlite"):
        with closing(sqlite3.connect(tmp_path / "sentinel.db")) as connection:
            connection.executescript(dump)
        yield SqliteBackend(str(tmp_path))
    else:
        url = request.getfixturevalue("postgres_url")
        with psycopg.connect(url) as server:
            server.execute(dump.encode())
        yield PostgresBackend(url)


def test_each_release_has_left_its_states() -> None:
    """No golden state of a release is forgotten, nor any that nobody opens."""
    found = {path.name.removesuffix(".sql") for path in STATES.glob("*.sql")}
    assert found == {f"{release}{kind}" for release in RELEASES for kind in KINDS}


def test_an_earlier_state_is_read_and_led_on(
    earlier: Backend, request: pytest.FixtureRequest
) -> None:
    """Everything that was in it, and what is written to it then."""
    state = request.node.callspec.params["earlier"]
    kept = [] if state.startswith("schema7.") or state in KINDS else [LEDGER_ROW]
    store = SqlStore(earlier)
    assert {a.key.subject for a in store.read_alerts()} == {HOSTILE, "/b"}
    assert [r.check for r in store.read_runs()] == ["fs"]
    assert [row.notification.summary for row in store.read_outbox()] == ["waits"]
    assert [t.id for t in store.read_transitions()] == ["transition-2", "transition-1"]
    assert store.read_memory("fs") == {"text": HOSTILE, "number": 1.5}
    assert [v for _, v in store.read_samples("fs", "/scratch", "used", 0)] == [1.0, float("inf")]
    about = store.read_deliveries("alert-/scratch")
    assert [(when, text) for _, when, text in about] == [
        (at(5), "250 ok"), (None, ""), (None, "no such user"),
    ]  # fmt: skip
    assert (store.read_orders().silences[0].reason, store.read_orders().acks["alert-/b"].who) == (
        HOSTILE,
        "bob",
    )
    assert store.read_ledger(0) == kept
    assert store.take_lead("sentinel run", at(100)) == 2
    store.commit(told("after"))
    assert [row.seq for row in store.read_outbox()] == [2, 4]
    row = LedgerRow(run="llm", kind="saved", began=1, ended=1)
    store.commit(Batch(at=at(101), ledger=(row,)))
    assert store.read_ledger(0) == [row, *kept]
    store.close()


def test_earlier_ledgers_are_read_and_written_on(earlier: Backend) -> None:
    """The audit log, the nodes, their switch, and the GPUs."""
    books, gpus = SqlAuditLog(earlier), SqlGpuLedger(earlier)
    assert [r.id for r in books.records()] == ["one"]
    assert [r.node for r in books.readings("n1")] == ["n1"]
    assert [(e.subject, e.node, e.mark) for e in gpus.read_entries("n1")] == [
        ("GPU-b", "n1", "lemon")
    ]
    assert [stay.node for stay in gpus.read_stays("GPU-a")] == ["n1", "n2"]
    assert [event.text for event in gpus.read_events("GPU-a")] == [HOSTILE]
    gpus.set_mark("GPU-a", "good", "swapped", "bob", at(99))
    assert [event.by for event in gpus.read_events("GPU-a")] == ["bob", ""]
    books.close()
    gpus.close()


def test_a_new_state_has_the_tables_of_an_earlier_one(tmp_path: Path) -> None:
    """Once that is brought to this version: columns, types, keys and indexes, as SQLite lists them."""
    new, old = tmp_path / "new.db", tmp_path / "old.db"
    with closing(sqlite3.connect(old)) as connection:
        connection.executescript((STATES / "sqlite.sql").read_text(encoding="utf-8"))
    for path, stored in ((old, OLDEST_SCHEMA_VERSION), (new, 0)):
        with closing(sqlite3.connect(path, isolation_level=None)) as driver:
            connection = Connection(driver, "sqlite")
            with connection.begin_transaction(writing=True):
                migrate_schema(connection, stored)
    assert described(new) == described(old)


def described(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: [
                *sorted(connection.execute(f"SELECT * FROM pragma_table_info('{name}')"), key=str),
                *sorted(
                    connection.execute(
                        "SELECT l.[unique], l.origin, group_concat(i.name) "
                        f"FROM pragma_index_list('{name}') l, pragma_index_info(l.name) i "
                        "GROUP BY l.name"
                    ),
                    key=str,
                ),
            ]
            for (name,) in tables
        }


# A change of the schema

NEXT = """\
-- A change that needs room: a table with all of the memory, twice.
CREATE TABLE twice (body TEXT NOT NULL);
INSERT INTO twice (body) SELECT body FROM memory;
INSERT INTO twice (body) SELECT body FROM twice;
"""


@pytest.fixture
def following(tmp_path: Path) -> Path:
    """The files of this version, and one of the next."""
    folder = tmp_path / "files"
    folder.mkdir()
    for kind in KINDS:
        (folder / f"{NEWEST_SCHEMA_VERSION + 1:04}.{kind}.sql").write_text(NEXT)
    return folder


def upgrade(backend: Backend, folder: Path) -> None:
    """As Session does, from the version that the state has."""
    SqlStore(backend).read_runs()
    with (
        translate_driver_errors(backend),
        closing(backend.open_connection()) as connection,
        connection.begin_transaction(writing=True),
    ):
        migrate_schema(
            connection, NEWEST_SCHEMA_VERSION, folder=str(folder), version=NEWEST_SCHEMA_VERSION + 1
        )


def test_a_change_keeps_what_was_there(earlier: Backend, following: Path) -> None:
    """The new version is noted with it."""
    upgrade(earlier, following)
    with closing(earlier.open_connection()) as connection, connection.begin_transaction():
        version = connection.fetch_value(Statement("SELECT version FROM schema_version"))
        assert version == NEWEST_SCHEMA_VERSION + 1
        assert connection.fetch_value(Statement("SELECT count(*) FROM twice")) == 2


def test_a_full_disk_in_the_middle_of_a_change_loses_nothing(disk: Disk, following: Path) -> None:
    """All of it or nothing: the state is as before, and the change is made when there is room."""
    store = SqlStore(SqliteBackend(str(disk.state)))
    store.take_lead("test", at())
    store.commit(told("waits"))
    store._session.close()
    with closing(sqlite3.connect(disk.state / "sentinel.db")) as connection:
        connection.execute("INSERT INTO memory VALUES ('x', ?)", ("x" * 150_000,))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = dump(disk.state)
    disk.fill()
    disk.shrink(100_000)
    with pytest.raises(StoreError, match="full"):
        upgrade(SqliteBackend(str(disk.state)), following)
    assert dump(disk.state) == before
    disk.free()
    upgrade(SqliteBackend(str(disk.state)), following)
    assert len(dump(disk.state)) == len(before) + 3
    store.close()


def test_a_kill_in_the_middle_of_a_change_loses_nothing(tmp_path: Path, following: Path) -> None:
    """What was half done is gone with the process."""
    state = tmp_path / "state"
    store = SqlStore(SqliteBackend(str(state)))
    store.take_lead("test", at())
    store.commit(told("waits"))
    store.close()
    before = dump(state)
    code = (
        "import os\n"
        "from pathlib import Path\n"
        "from sentinel.store.migrations import migrate_schema\n"
        "from sentinel.store.sqlite import SqliteBackend\n"
        f"connection = SqliteBackend({str(state)!r}).open_connection()\n"
        "with connection.begin_transaction(writing=True):\n"
        f"    migrate_schema(\n"
        f"        connection, {NEWEST_SCHEMA_VERSION}, folder={str(following)!r},\n"
        f"        version={NEWEST_SCHEMA_VERSION + 1})\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ}, check=False)
    assert done.returncode == -9
    assert dump(state) == before
    upgrade(SqliteBackend(str(state)), following)
    assert dump(state) != before


def dump(state: Path) -> list[str]:
    with closing(sqlite3.connect(state / "sentinel.db")) as connection:
        return [line for line in connection.iterdump() if "schema_version" not in line]
