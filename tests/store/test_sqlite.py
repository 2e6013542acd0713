"""What SQLite is told, by where its file is."""

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from sentinel.core.model import Batch
from sentinel.store.database import Statement
from sentinel.store.memory import MemoryStore
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.nouns import at, remembered


def journal(state: Path) -> str:
    with sqlite3.connect(state / "sentinel.db") as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
    return str(mode)


@pytest.mark.parametrize(("local", "mode", "synchronous"), [(True, "wal", 2), (False, "delete", 3)])
def test_the_journal_follows_the_file_system(
    tmp_path: Path, local: bool, mode: str, synchronous: int
) -> None:
    """A write-ahead log on local disks only; either survives a power cut (2 FULL, 3 EXTRA)."""
    connection = SqliteBackend(str(tmp_path), local).open_connection()
    assert connection.fetch_value(Statement("PRAGMA synchronous")) == synchronous
    connection.close()
    assert journal(tmp_path) == mode


def test_a_state_that_moved_to_a_network_file_system_changes(tmp_path: Path) -> None:
    """The journal is chosen each time it is opened; nothing is lost by it."""
    for local, mode in ((True, "wal"), (False, "delete"), (True, "wal")):
        store = SqlStore(SqliteBackend(str(tmp_path), local))
        store.take_lead("test", at())
        store.commit(Batch(at=at(), memory={mode: {"x": 1}}))
        assert journal(tmp_path) == mode
        store.close()
    assert store.read_memory("delete") == store.read_memory("wal") == {"x": 1}
    store.close()


def test_a_reader_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    """`status` reads while a service is in the middle of a transaction."""
    store = SqlStore(SqliteBackend(str(tmp_path)))
    store.take_lead("test", at())
    store.commit(remembered("before"))
    writer = sqlite3.connect(tmp_path / "sentinel.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM memory")
    other = SqlStore(SqliteBackend(str(tmp_path)))
    assert other.read_memory("fs") == {"value": "before"}
    writer.close()
    other.close()
    store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_threads_take_turns(tmp_path: Path, kind: str) -> None:
    """Checks read their history while the pass commits; nothing is lost or half seen."""
    store = MemoryStore() if kind == "memory" else SqlStore(SqliteBackend(str(tmp_path)))
    store.take_lead("test", at())
    wrong: list[object] = []

    def write(check: str) -> None:
        for number in range(20):
            store.commit(Batch(at=at(), memory={f"{check}-a": {"n": number}, check: {"n": number}}))

    def read(check: str) -> None:
        for _ in range(20):
            first, second = store.read_memory(check), store.read_memory(f"{check}-a")
            if first.get("n", -1) > second.get("n", -1):
                wrong.append((first, second))

    threads = [threading.Thread(target=f, args=(c,)) for c in "abcd" for f in (write, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert [store.read_memory(c) for c in "abcd"] == [{"n": 19}] * 4
    store.close()


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("before", [None, 0o644, 0o666])
def test_its_files_are_its_owners_alone(tmp_path: Path, local: bool, before: int | None) -> None:
    """Whatever the umask lets through, in a directory that everybody may read; also what an older
    version left open. Nothing of it frees the lock of a transaction in the same process."""
    tmp_path.chmod(0o755)
    old = os.umask(0)
    try:
        store = SqlStore(SqliteBackend(str(tmp_path), local))
        store.take_lead("test", at())
        if before is not None:
            for path in tmp_path.glob("sentinel.db*"):
                path.chmod(before)
        other = SqliteBackend(str(tmp_path), local).open_connection()
        store.commit(remembered("x"))
        with other.begin_transaction(writing=True):
            modes = {p.name: oct(stat.S_IMODE(p.stat().st_mode)) for p in tmp_path.iterdir()}
            SqliteBackend(str(tmp_path), local).open_connection().close()
            third = sqlite3.connect(tmp_path / "sentinel.db", timeout=0)
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                third.execute("BEGIN IMMEDIATE")
            third.close()
        other.close()
        store.close()
    finally:
        os.umask(old)
    assert {"sentinel.db", "lock"} < set(modes) or not local
    assert set(modes.values()) == {"0o600"}, modes
