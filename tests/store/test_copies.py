"""Changes of the schema, copies of a state, and copies put back."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from sentinel.core.errors import StoreBusy
from sentinel.store.copies import CopyRefused, copy_database, open_read_only
from sentinel.store.errors import StateDamaged, StateUnavailable, StateVersionMismatch
from sentinel.store.inspection import inspect_state
from sentinel.store.lease import DirectoryLock, Lease
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION
from sentinel.store.opening import migrate_state, open_store
from sentinel.store.postgres import PostgresBackend
from sentinel.store.restore_copy import restore_state
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.disk import Disk
from tests.store.golden import STATES
from tests.store.nouns import at, summaries, told


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A state of schema 5, as commit d826494 left it."""
    write_older(tmp_path / "state")
    return tmp_path / "state"


def write_older(state: Path) -> None:
    state.mkdir(exist_ok=True)
    with closing(sqlite3.connect(state / "sentinel.db")) as connection:
        connection.executescript((STATES / "sqlite.sql").read_text(encoding="utf-8"))


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT version FROM schema_version").fetchone()[0])


def test_a_change_of_the_schema_leaves_a_copy(older: Path) -> None:
    """As it was before, for its owner alone; a state that is of this version already leaves none."""
    open_store(str(older), at()).store.close()
    copy = older / "sentinel.db.before-schema-6"
    assert (version_of(copy), version_of(older / "sentinel.db")) == (5, NEWEST_SCHEMA_VERSION)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    copy.unlink()
    open_store(str(older), at()).store.close()
    assert list(older.glob("*before*")) == []


def test_nothing_is_changed_under_an_older_sentinel(older: Path) -> None:
    """It holds the lock: whoever is newer says so and changes nothing."""
    running = DirectoryLock(str(older / "lock"))
    assert running.take_file_lock(Lease("an older one", at().wall))
    with pytest.raises(StoreBusy, match="an older sentinel that still runs: an older one"):
        open_store(str(older), at())
    assert version_of(older / "sentinel.db") == 5
    running.drop_file_lock()
    open_store(str(older), at()).store.close()
    assert version_of(older / "sentinel.db") == NEWEST_SCHEMA_VERSION


def test_no_room_for_the_copy_changes_nothing(disk: Disk) -> None:
    """It is as before, and the change is made when there is room."""
    write_older(disk.state)
    disk.fill()
    disk.shrink(20_000)
    store = SqlStore(SqliteBackend(str(disk.state)))
    with pytest.raises(StateUnavailable, match=r"before-schema-6: no copy can be made"):
        store.read_alerts()
    assert list(disk.state.glob("*before*")) == []
    disk.free()
    assert version_of(disk.state / "sentinel.db") == 5
    assert len(store.read_alerts()) == 2
    store.close()


@pytest.mark.parametrize(("oldest", "serves"), [(NEWEST_SCHEMA_VERSION, True), (99, False)])
def test_a_newer_state_says_whom_it_serves(tmp_path: Path, oldest: int, serves: bool) -> None:
    """A version that only added to it leaves this one at work; another one is refused."""
    first = open_store(str(tmp_path), at()).store
    first.take_lead("test", at())
    first.commit(told("waits"))
    first.close()
    with closing(sqlite3.connect(tmp_path / "sentinel.db")) as connection:
        connection.execute("UPDATE schema_version SET version = 99, oldest = ?", (oldest,))
        connection.commit()
    store = SqlStore(SqliteBackend(str(tmp_path)))
    if serves:
        store.take_lead("test", at(1))
        store.commit(told("more"))
        assert summaries(store.read_outbox()) == ["waits", "more"]
    else:
        with pytest.raises(StateVersionMismatch, match="written by a newer sentinel: schema 99"):
            store.read_outbox()
    store.close()
    assert version_of(tmp_path / "sentinel.db") == 99


# A look


def test_a_look_changes_nothing(older: Path) -> None:
    """Not even what the next service would bring to this version."""
    before = (older / "sentinel.db").read_bytes()
    found = inspect_state(str(older))
    assert (found.version, found.needs_migration, found.unreadable) == (5, True, {})
    assert found.rows > 5
    with closing(sqlite3.connect(older / "sentinel.db")) as connection:
        connection.execute("UPDATE runs SET body = 'x'")
        connection.commit()
    assert inspect_state(str(older)).unreadable == {"runs of checks": 1}
    assert sorted(path.name for path in older.iterdir()) == ["sentinel.db"]
    assert before != b""


def test_a_look_at_what_is_no_state(tmp_path: Path) -> None:
    (tmp_path / "sentinel.db").write_text("this was a state once, before somebody wrote into it")
    with pytest.raises(StateDamaged):
        inspect_state(str(tmp_path))


# Copies


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """One that is led and written while it is copied."""
    place = tmp_path / "state"
    store = open_store(str(place), at()).store
    store.take_lead("test", at())
    store.commit(told("one"))
    yield place
    store.close()


def copy_state(state: Path, target: Path) -> None:
    with closing(open_read_only(str(state / "sentinel.db"))) as source:
        copy_database(source, str(target))


def test_a_copy_is_whole_while_it_is_written(state: Path, tmp_path: Path) -> None:
    """With what is still in the write-ahead log; `cp` of the file alone would lack it."""
    copy_state(state, tmp_path / "copy")
    (tmp_path / "other").mkdir()
    os.rename(tmp_path / "copy", tmp_path / "other" / "sentinel.db")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["sentinel.db"]
    store = SqlStore(SqliteBackend(str(tmp_path / "other")))
    assert summaries(store.read_outbox()) == ["one"]
    store.close()


def test_a_copy_is_put_back(tmp_path: Path) -> None:
    """What was there is kept; the next leader hears of it once, and so actions rest."""
    place, copy = tmp_path / "state", tmp_path / "copy"
    store = open_store(str(place), at()).store
    store.take_lead("test", at())
    store.commit(told("one"))
    copy_state(place, copy)
    store.commit(told("two"))
    with pytest.raises(StoreBusy, match="a sentinel leads, end it first: test"):
        restore_state(str(place), str(copy), at(9))
    assert summaries(store.read_outbox()) == ["one", "two"]
    store.close()
    aside = restore_state(str(place), str(copy), at(10))
    assert Path(aside).name == "sentinel.db.replaced-20270115T080010Z"
    after = open_store(str(place), at(11)).store
    after.take_lead("test", at(11))
    assert summaries(after.read_outbox()) == ["one"]
    (notice,) = after.take_notices()
    assert "the state was restored from a copy" in notice
    after.close()
    after = open_store(str(place), at(12)).store
    after.take_lead("test", at(12))
    assert after.take_notices() == ()
    after.close()


@pytest.mark.parametrize("what", ["text", "cut", "newer"])
def test_what_is_no_sound_state_is_not_put_back(state: Path, tmp_path: Path, what: str) -> None:
    """Nothing has changed then."""
    copy = tmp_path / "copy"
    copy_state(state, copy)
    if what == "text":
        copy.write_text("a letter of some length, which is no database at all")
    elif what == "cut":
        copy.write_bytes(copy.read_bytes()[: copy.stat().st_size // 2])
    else:
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("UPDATE schema_version SET version = 99, oldest = 99")
            connection.commit()
    place = tmp_path / "other"
    write_older(place)
    before = (place / "sentinel.db").read_bytes()
    with pytest.raises((CopyRefused, StateVersionMismatch)):
        restore_state(str(place), str(copy), at(1))
    assert (place / "sentinel.db").read_bytes() == before
    assert list(place.glob("*replaced*")) == []


def test_a_copy_of_an_older_version_is_put_back_and_migrated(older: Path, tmp_path: Path) -> None:
    """What `before-schema-6` is kept for, the other way round."""
    copy = tmp_path / "copy"
    copy_state(older, copy)
    restore_state(str(tmp_path / "new"), str(copy), at(1))
    store = open_store(str(tmp_path / "new"), at(2)).store
    assert len(store.read_alerts()) == 2
    store.close()


# PostgreSQL


def test_a_server_is_changed_unasked_only_where_older_ones_go_on(postgres_url: str) -> None:
    """Several sentinels share it: else a person says when all of the older ones have ended."""
    with psycopg.connect(postgres_url) as server:
        server.execute((STATES / "postgresql.sql").read_text(encoding="utf-8").encode())
    backend = PostgresBackend(postgres_url)
    with closing(backend.open_connection()) as connection:
        with (
            pytest.raises(StateVersionMismatch, match="then: sentinel state migrate"),
            connection.begin_transaction(),
            backend.hold_for_migration(connection, 4),
        ):
            pass
        backend.migrating = True
        with connection.begin_transaction(), backend.hold_for_migration(connection, 4):
            pass
    migrate_state(postgres_url)
    assert inspect_state(postgres_url).version == NEWEST_SCHEMA_VERSION
    leader = SqlStore(PostgresBackend(postgres_url))
    leader.take_lead("test", at())
    with (
        closing(backend.open_connection()) as connection,
        pytest.raises(StoreBusy, match="an older sentinel still leads"),
        connection.begin_transaction(),
        backend.hold_for_migration(connection, 4),
    ):
        pass
    leader.close()
