"""States of earlier and of later sentinels."""

import sqlite3
from pathlib import Path

import pytest

from sentinel.store.errors import StateVersionMismatch
from sentinel.store.migrations import NEWEST_SCHEMA_VERSION, OLDEST_SCHEMA_VERSION
from sentinel.store.opening import open_store
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.nouns import at, told


def written(state: Path, version: int) -> None:
    """A state with something in it, as if a sentinel of that version had written it."""
    store = open_store(str(state), at()).store
    store.take_lead("test", at())
    store.commit(told("waiting"))
    store.close()
    with sqlite3.connect(state / "sentinel.db") as connection:
        assert (
            connection.execute(
                "UPDATE schema_version SET version = ?1, oldest = ?1", (version,)
            ).rowcount
            == 1
        )
    connection.close()


@pytest.mark.parametrize(
    ("version", "age"),
    [
        (NEWEST_SCHEMA_VERSION + 1, "a newer"),
        (OLDEST_SCHEMA_VERSION - 1, "an older"),
        (1, "an older"),
    ],
)
def test_a_state_of_another_version_is_left_alone(tmp_path: Path, version: int, age: str) -> None:
    """Not read, not moved aside, not changed: the message says what to do."""
    written(tmp_path, version)
    before = (tmp_path / "sentinel.db").read_bytes()
    what = rf"sentinel\.db: written by {age} sentinel: schema {version}, .* knows {NEWEST_SCHEMA_VERSION}; .* state:"
    with pytest.raises(StateVersionMismatch, match=what):
        open_store(str(tmp_path), at())
    assert not list(tmp_path.glob("*damaged*"))
    assert (tmp_path / "sentinel.db").read_bytes() == before


def test_a_state_of_this_version_is_read(tmp_path: Path) -> None:
    """The number alone decides."""
    written(tmp_path, NEWEST_SCHEMA_VERSION)
    store = SqlStore(SqliteBackend(str(tmp_path)))
    assert len(store.read_outbox()) == 1
    store.close()
