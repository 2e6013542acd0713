"""The contract over each store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.contract import Place, StoreContract
from tests.store.places import BufferedPlace, MemoryPlace, NetworkPlace, PostgresPlace, SqlitePlace


class TestMemory(StoreContract):
    @pytest.fixture
    def place(self) -> Place:
        return MemoryPlace()


class TestSqlite(StoreContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        place = SqlitePlace(tmp_path)
        yield place
        place.close()


class TestSqliteOnNetwork(StoreContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        place = NetworkPlace(tmp_path)
        yield place
        place.close()


class TestBuffered(StoreContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Place]:
        place = BufferedPlace(tmp_path)
        yield place
        place.close()


class TestPostgres(StoreContract):
    @pytest.fixture
    def place(self, postgres_url: str) -> Iterator[Place]:
        place = PostgresPlace(postgres_url)
        yield place
        place.close()
