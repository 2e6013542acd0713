"""SQL statements as text, and a DB-API connection that runs them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Literal
from weakref import finalize

from sentinel.core.lazy_pattern import lazy_pattern

Dialect = Literal["sqlite", "postgresql"]
Values = Mapping[str, Any]
_NO_VALUES: Values = {}

_PARAMETER_PATTERN = lazy_pattern(r"(?<!:):([a-z]\w*)")
"""`:name`, but not the cast `::name`."""
_TABLE_PATTERN = lazy_pattern(r"\b(FROM|JOIN|INTO|UPDATE|TABLE) (?!now\b|pg_|[a-z_]+\()(?=[a-z])")
"""The place before the name of a table of the state."""


KEY_NAMES = tuple(f"key{number}" for number in range(500))
"""The parameters of `:keys...`; SQLite before 3.32 takes 999 in a statement."""
_KEY_PARAMETERS = ", ".join(f":{name}" for name in KEY_NAMES)


class Statement:
    """One statement with named parameters, `:name`, or `:keys...` for all of KEY_NAMES.

    Its text is a constant of statements.py. Values come in as parameters, never as text.
    `postgresql`: its text there, if the two databases differ.
    """

    def __init__(self, text: str, *, postgresql: str = "") -> None:
        self.sqlite = text.replace(":keys...", _KEY_PARAMETERS)
        self._postgresql = postgresql or self.sqlite

    @cached_property
    def postgresql(self) -> str:
        """The text with the placeholders of psycopg."""
        return _PARAMETER_PATTERN.sub(r"%(\1)s", self._postgresql.replace("%", "%%"))


class MissingRow(LookupError):
    """A row that must always be there is missing."""


class Connection:
    """A connection of sqlite3 (`isolation_level=None`) or psycopg. Raises the driver's errors. `schema`:
    that of the state's tables, in PostgreSQL."""

    def __init__(self, driver: Any, dialect: Dialect) -> None:
        self.driver, self.dialect, self.schema = driver, dialect, ""
        # If the object is dropped without being closed, this closes its session on the server.
        finalize(self, _close_driver, driver).atexit = False

    @contextmanager
    def begin_transaction(self, *, writing: bool = False) -> Iterator["Connection"]:
        """A transaction: all of it is kept, or nothing.

        psycopg begins it with the first statement. A writer of SQLite takes the lock first, since a
        read that becomes a write fails if it cannot wait."""
        if self.dialect == "sqlite":
            self.driver.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        try:
            yield self
            self.driver.commit()
        except BaseException:
            with suppress(Exception):  # the connection is lost, and the reason will be raised
                self.driver.rollback()
            raise

    def run(self, statement: Statement, values: Values = _NO_VALUES) -> int:
        """Run the statement. Returns the number of rows that it changed."""
        return int(self._execute_statement(statement, values).rowcount)

    def run_many(self, statement: Statement, rows: Sequence[Values]) -> None:
        """Run the statement once for each row. psycopg sends them without waiting for an answer in
        between."""
        if rows:
            self.driver.cursor().executemany(self._find_text(statement), rows)

    def fetch_rows(
        self, statement: Statement, values: Values = _NO_VALUES
    ) -> list[tuple[Any, ...]]:
        """All rows that the statement finds."""
        found: list[tuple[Any, ...]] = self._execute_statement(statement, values).fetchall()
        return found

    def fetch_column(self, statement: Statement, values: Values = _NO_VALUES) -> list[Any]:
        """The first value of each row that the statement finds."""
        return [row[0] for row in self.fetch_rows(statement, values)]

    def fetch_first(
        self, statement: Statement, values: Values = _NO_VALUES
    ) -> tuple[Any, ...] | None:
        """The first row; None if there is none."""
        row: tuple[Any, ...] | None = self._execute_statement(statement, values).fetchone()
        return row

    def fetch_one(self, statement: Statement, values: Values = _NO_VALUES) -> tuple[Any, ...]:
        """The row that must always be there. Raises MissingRow."""
        row = self.fetch_first(statement, values)
        if row is None:
            raise MissingRow("a row that is always there is missing")
        return row

    def fetch_value(self, statement: Statement, values: Values = _NO_VALUES) -> Any:
        """The first value of the first row; None if there is none."""
        row = self.fetch_first(statement, values)
        return row[0] if row else None

    def run_script(self, statements: Sequence[str]) -> None:
        """The statements of a file of this package (migrations.py), without parameters."""
        for text in statements:
            self.driver.execute(text)

    @property
    def is_worn_out(self) -> bool:
        """Whether the server has sent so much that a new connection has to replace this one."""
        return bool(getattr(self.driver, "is_worn_out", False))

    def close(self) -> None:
        """End the connection without a commit. Uncommitted writes are lost."""
        self.driver.close()

    def _execute_statement(self, statement: Statement, values: Values) -> Any:
        return self.driver.execute(self._find_text(statement), values)

    def _find_text(self, statement: Statement) -> str:
        """The text of the statement, with the schema before the names of tables."""
        text: str = getattr(statement, self.dialect)
        quoted = self.schema.replace('"', '""').replace("%", "%%")
        return _TABLE_PATTERN.sub(rf'\g<0>"{quoted}".', text) if quoted else text


def _close_driver(driver: Any) -> None:
    with suppress(Exception):
        driver.close()
