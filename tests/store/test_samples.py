"""Samples: recent ones in order of time, older ones in order of series, and what moves them."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sentinel.core.clock import Instant
from sentinel.core.model import Batch, Sample
from sentinel.store import samples as history
from sentinel.store import statements
from sentinel.store.backend import Backend
from sentinel.store.postgres import PostgresBackend
from sentinel.store.retention import DAY_S
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.nouns import at, measured

SERIES = [("fs", "/a"), ("fs", "/b"), ("du", "/a"), ("gpu", "n1")]
Found = list[list[tuple[Instant, float]]]


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param == "sqlite":
        return SqliteBackend(str(tmp_path))
    return PostgresBackend(request.getfixturevalue("postgres_url"))


@pytest.fixture
def store(backend: Backend) -> Iterator[SqlStore]:
    store = SqlStore(backend)
    store.take_lead("test", at())
    yield store
    store.close()


def commit(store: SqlStore, moment: Instant, **values: dict[str, float]) -> None:
    """Numbers by check and subject."""
    samples = {
        check: tuple(Sample(subject, "used", value) for subject, value in several.items())
        for check, several in values.items()
    }
    store.commit(Batch(at=moment, samples=samples))


def fill(store: SqlStore) -> None:
    """Several checks in a pass and each by itself, a clock that jumps back, moments that repeat."""
    commit(store, at(60), fs={"/a": 1.0, "/b": 2.0}, du={"/a": 3.0})
    commit(store, at(120), fs={"/a": 4.0})
    commit(store, at(30), fs={"/a": math.inf}, gpu={"n1": -0.5})
    commit(store, at(180), du={"/a": 5.0})
    commit(store, at(120), fs={"/a": 6.0, "/b": 7.0})
    commit(store, at(240), gpu={"n1": 8.0})


def read(store: SqlStore) -> Found:
    return [store.read_samples(check, subject, "used", 0) for check, subject in SERIES]


WANTED = [
    [(at(60), 1.0), (at(120), 6.0), (at(30), math.inf)],
    [(at(60), 2.0), (at(120), 7.0)],
    [(at(60), 3.0), (at(180), 5.0)],
    [(at(30), -0.5), (at(240), 8.0)],
]
"""A moment that repeats has its place by its first commit, and its last value."""


def count_recent(backend: Backend) -> int:
    """Samples that are not moved yet."""
    with closing(backend.open_connection()) as connection, connection.begin_transaction():
        return int(connection.fetch_one(statements.RECENT_EXTENT)[2])


def test_recent_samples_are_read_and_moved_after_a_day(store: SqlStore, backend: Backend) -> None:
    """The same answers before and after; what comes then stands behind them."""
    fill(store)
    store.prune(at(DAY_S))
    assert (count_recent(backend), read(store)) == (10, WANTED)
    store.prune(at(DAY_S + 31))
    assert (count_recent(backend), read(store)) == (0, WANTED)
    commit(store, at(DAY_S + 60), fs={"/a": 9.0})
    commit(store, at(180), fs={"/b": 10.0})
    assert count_recent(backend) == 2
    assert read(store)[0] == [*WANTED[0], (at(DAY_S + 60), 9.0)]
    assert read(store)[1] == [*WANTED[1], (at(180), 10.0)]


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_samples_are_moved_in_parts(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """However few are sorted in memory at once, also one series at a time."""
    monkeypatch.setattr(history, "MAX_MOVED_ROWS", at_once)
    fill(store)
    store.prune(at(DAY_S + 31))
    assert read(store) == WANTED


def test_many_recent_samples_are_moved_earlier(
    store: SqlStore, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that they are never more than an hour adds to the limit."""
    monkeypatch.setattr(history, "MAX_UNSORTED_ROWS", 10)
    fill(store)
    store.prune(at(300))
    assert count_recent(backend) == 10
    commit(store, at(300), fs={"/b": 9.0})
    store.prune(at(300))
    assert count_recent(backend) == 0


def test_samples_of_a_clock_that_was_ahead_are_moved(store: SqlStore, backend: Backend) -> None:
    """Else nothing would be moved for as long as it was ahead."""
    store.commit(measured(1.0, at(4000 * DAY_S)))
    store.commit(measured(2.0, at()))
    store.prune(at(60))
    assert count_recent(backend) == 0
    assert [v for _, v in store.read_samples("fs", "/scratch", "used", 0)] == [1.0, 2.0]


def test_a_series_with_recent_samples_alone_is_not_forgotten(store: SqlStore) -> None:
    """Housekeeping forgets series without samples, and these are samples."""
    store.commit(measured(1.0, at()))
    store.prune(at(60))
    store.commit(measured(2.0, at(60), name="other"))
    store.prune(at(DAY_S + 30))
    found = [store.read_samples("fs", "/scratch", name, 0) for name in ("used", "other")]
    assert found == [[(at(), 1.0)], [(at(60), 2.0)]]


def test_a_pass_writes_few_pages(tmp_path: Path) -> None:
    """Also where each of 500 series has pages of its own: what it adds to the write-ahead log."""
    store = SqlStore(SqliteBackend(str(tmp_path)))
    store.take_lead("test", at())
    names = [f"/scratch/{number}" for number in range(500)]
    for minute in range(300):
        commit(store, at(60 * minute), fs=dict.fromkeys(names, float(minute)))
    store.prune(at(2 * DAY_S))
    log = tmp_path / "sentinel.db-wal"
    with closing(sqlite3.connect(tmp_path / "sentinel.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    commit(store, at(2 * DAY_S), fs=dict.fromkeys(names, 1.0))
    assert 0 < log.stat().st_size < 16 * 4096
    store.close()


def test_the_recent_samples_of_a_series_are_found_by_keys(tmp_path: Path) -> None:
    """A scan would read all that was measured in a day."""
    backend = SqliteBackend(str(tmp_path))
    SqlStore(backend).open_database()
    with closing(backend.open_connection()) as connection:
        text = f"EXPLAIN QUERY PLAN {statements.RECENT_SAMPLES_OF.sqlite}"
        wanted = {"source": "x", "series": 1, "since": 0}
        plan = [row[3] for row in connection.driver.execute(text, wanted)]
    assert len(plan) == 2
    assert all("PRIMARY KEY (" in step for step in plan), plan
