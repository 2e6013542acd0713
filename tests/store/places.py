"""The states that the contract is run over."""

from contextlib import ExitStack
from pathlib import Path

from sentinel.alerting.state import Store
from sentinel.store.backend import Backend
from sentinel.store.buffered import BufferedStore
from sentinel.store.database import Statement
from sentinel.store.memory import MemoryStore, SharedState
from sentinel.store.postgres import PostgresBackend
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend

TAKE_OVER = Statement("UPDATE leader SET token = token + 1")


class MemoryPlace:
    """Several stores over one state in memory."""

    def __init__(self) -> None:
        self._state = SharedState()

    def open(self) -> Store:
        return MemoryStore(state=self._state)

    def usurp(self) -> None:
        self._state.token += 1

    def close(self) -> None: ...


class SqlPlace:
    """Several stores over one database."""

    def __init__(self) -> None:
        self._opened = ExitStack()

    def backend(self) -> Backend:
        raise NotImplementedError

    def sql(self) -> SqlStore:
        store = SqlStore(self.backend())
        self._opened.callback(store.close)
        return store

    def open(self) -> Store:
        return self.sql()

    def usurp(self) -> None:
        connection = self.backend().open_connection()
        with connection.begin_transaction(writing=True):
            connection.run(TAKE_OVER)
        connection.close()

    def close(self) -> None:
        self._opened.close()


class SqlitePlace(SqlPlace):
    """A state directory."""

    local: bool | None = None

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    def backend(self) -> Backend:
        return SqliteBackend(str(self.directory), self.local)


class NetworkPlace(SqlitePlace):
    """A state directory as on a network file system."""

    local = False


class BufferedPlace(SqlitePlace):
    """A state directory as the service uses it."""

    def open(self) -> Store:
        return BufferedStore(self.sql(), MemoryStore())


class PostgresPlace(SqlPlace):
    """A database of PostgreSQL."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def backend(self) -> Backend:
        return PostgresBackend(self._url)
