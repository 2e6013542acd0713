"""States of earlier and of later sentinels."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, inspect, text

from sentinel.store.errors import TooNew
from sentinel.store.migrations import STEPS, newest
from sentinel.store.opening import open_store
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.nouns import at, summaries, told

DUMPS = Path(__file__).parent / "dumps"


def load(dump: Path, state: Path) -> None:
    with sqlite3.connect(state / "sentinel.db") as connection:
        connection.executescript(dump.read_text())
    connection.close()


def shape(state: Path) -> dict[str, object]:
    """Tables with columns, keys and indexes, as the database has them."""
    engine = create_engine(f"sqlite:///{state}/sentinel.db")
    found = inspect(engine)
    shape: dict[str, object] = {
        table: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(table)],
            found.get_pk_constraint(table),
            sorted(str(i) for i in found.get_indexes(table)),
            sorted(str(u) for u in found.get_unique_constraints(table)),
        )
        for table in found.get_table_names()
    }
    engine.dispose()
    return shape


def later(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE alerts ADD COLUMN node TEXT DEFAULT '' NOT NULL"))


def latest(connection: Connection) -> None:
    connection.execute(text("UPDATE alerts SET node = 'n1'"))


def version(state: Path) -> int:
    with sqlite3.connect(state / "sentinel.db") as connection:
        (found,) = connection.execute("SELECT version FROM schema_version").fetchone()
    connection.close()
    return int(found)


@pytest.mark.parametrize("number", range(1, newest() + 1))
def test_every_earlier_version_becomes_the_newest(tmp_path: Path, number: int) -> None:
    """By being opened; nothing it held is lost, and its tables are those of a new state."""
    load(DUMPS / f"v{number}.sql", tmp_path)
    store = open_store(str(tmp_path), at()).store
    assert [alert.summary for alert in store.alerts()] == ["full"]
    assert summaries(store.outbox()) == ["waiting"]
    assert [text for _, _, text in store.deliveries("alert-/scratch")] == ["250 ok", ""]
    assert store.memory("fs") == {"value": [1, "\x00", "\ud800"]}
    assert [t.reason for t in store.history()] == ["firing"]
    assert [value for _, value in store.samples("fs", "/scratch", "used", 0)] == [1.0, 2.0]
    store.lead("test", at())
    store.commit(told("new"))
    assert summaries(store.outbox()) == ["waiting", "new"]
    store.close()
    assert version(tmp_path) == newest()
    (tmp_path / "fresh").mkdir()
    open_store(str(tmp_path / "fresh"), at()).store.close()
    assert shape(tmp_path) == shape(tmp_path / "fresh")


def test_steps_are_taken_in_order_once(tmp_path: Path) -> None:
    """From any version to the newest, and never again."""
    load(DUMPS / "v1.sql", tmp_path)
    for steps in ((later,), (later, latest), (later, latest)):
        store = SqlStore(SqliteBackend(str(tmp_path)), steps=(*STEPS, *steps))
        assert len(store.alerts()) == 1
        store.close()
    assert version(tmp_path) == newest() + 2
    with sqlite3.connect(tmp_path / "sentinel.db") as connection:
        assert connection.execute("SELECT node FROM alerts").fetchall() == [("n1",)]
    connection.close()


def test_a_step_that_fails_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    """An upgrade is one transaction."""
    load(DUMPS / "v1.sql", tmp_path)

    def fail(connection: Connection) -> None:
        raise RuntimeError("step failed")

    store = SqlStore(SqliteBackend(str(tmp_path)), steps=(*STEPS, later, fail))
    with pytest.raises(RuntimeError, match="step failed"):
        store.alerts()
    store.close()
    again = open_store(str(tmp_path), at())
    assert (again.notices, len(again.store.alerts())) == ((), 1)
    again.store.close()


def test_a_later_state_is_left_alone(tmp_path: Path) -> None:
    """Not read, not moved aside: the message says what to do."""
    load(DUMPS / "v1.sql", tmp_path)
    SqlStore(SqliteBackend(str(tmp_path)), steps=(*STEPS, later)).prepare()
    with pytest.raises(
        TooNew,
        match=rf"sentinel\.db: written by a newer .*schema {newest() + 1}.* set another state:",
    ):
        open_store(str(tmp_path), at())
    assert not list(tmp_path.glob("*damaged*"))
    assert version(tmp_path) == newest() + 1
