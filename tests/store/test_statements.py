"""No statement is built from text: whatever is stored or looked for is a parameter."""

import ast
import random
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sentinel
from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Ack, Silence
from sentinel.core.actions import ActionSwitch
from sentinel.core.gpu_ledger import GpuEvent, GpuSighting
from sentinel.core.model import Batch, Receipt, Sample
from sentinel.store import statements
from sentinel.store.audit_log import SqlAuditLog
from sentinel.store.backend import Backend
from sentinel.store.database import KEY_NAMES, Connection, Statement
from sentinel.store.gpu_ledger import SqlGpuLedger
from sentinel.store.postgres import PostgresBackend
from sentinel.store.retention import DAY_S
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.nouns import HOSTILE, alert, at, key, outgoing, run, transition
from tests.store.test_actions import DRAINED, record, write

STATEMENTS = {
    name: value for name, value in vars(statements).items() if isinstance(value, Statement)
}
STORE = Path(sentinel.__file__).parent / "store"


def test_every_statement_is_written_out() -> None:
    """In one module, as literal text: nothing is put into it."""
    for path in STORE.rglob("*.py"):
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Statement"
        ]
        assert not calls or path.name == "statements.py", path
        for call in calls:
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            assert all(isinstance(value, ast.Constant) for value in given), ast.unparse(call)


def test_placeholders_of_postgresql() -> None:
    """A name becomes one of psycopg's, a cast stays, a per cent sign is only one."""
    wanted = "SELECT a::bigint, '5%%' FROM t WHERE b = %(first_1)s AND c = %(d)s"
    told = Statement("SELECT a::bigint, '5%' FROM t WHERE b = :first_1 AND c = :d")
    assert told.postgresql == wanted
    assert Statement("x", postgresql=":y").postgresql == "%(y)s"
    many = Statement("IN (:keys...)")
    assert many.sqlite.count(":") == many.postgresql.count("%(") == len(KEY_NAMES) == 500


@pytest.mark.parametrize("name", STATEMENTS)
def test_old_sqlite_knows_the_words(name: str) -> None:
    """RHEL 8 has SQLite 3.26: no RETURNING (3.35), no UPDATE … FROM (3.33), no IIF, no STRICT."""
    newer = r"\bRETURNING\b|\bUPDATE\b.*\bFROM\b(?! samples)|\biif\(|\bSTRICT\b|\bMATERIALIZED\b"
    assert not re.search(newer, STATEMENTS[name].sqlite, re.IGNORECASE)


class Recorder:
    """A driver's connection or cursor that notes the text of each statement."""

    def __init__(self, driver: Any, texts: set[str]) -> None:
        self._driver, self._texts = driver, texts

    def execute(self, text: str, *values: Any) -> Any:
        self._texts.add(text)
        return self._driver.execute(text, *values)

    def executemany(self, text: str, rows: Sequence[Any]) -> Any:
        self._texts.add(text)
        return self._driver.executemany(text, rows)

    def cursor(self) -> "Recorder":
        return Recorder(self._driver.cursor(), self._texts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)


class RecordedSqlite(SqliteBackend):
    def open_connection(self) -> Connection:
        return recording(super().open_connection())


class RecordedPostgres(PostgresBackend):
    def open_connection(self) -> Connection:
        return recording(super().open_connection())


TEXTS: set[str] = set()
"""Of all that was asked of a recorded backend in this test."""


def recording(connection: Connection) -> Connection:
    connection.driver = Recorder(connection.driver, TEXTS)
    return connection


@pytest.fixture(params=["sqlite", "postgresql"])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """A backend with its schema made, whose statements are noted from then on."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else ""
    backend: Backend = RecordedPostgres(url) if url else RecordedSqlite(str(tmp_path))
    store = SqlStore(backend)
    store.open_database()
    store.close()
    TEXTS.clear()
    return backend


WORDS = [
    "'",
    '"',
    ";",
    "--",
    "\x00",
    "\ud800",
    "%s",
    "%(key)s",
    ":key",
    "?",
    "$1",
    "\\",
    "ü",
    "DROP",
]


def test_no_text_becomes_part_of_a_statement(recorded: Backend) -> None:
    """Hostile names in every column that users fill: what runs are the statements of the list."""
    backend = recorded
    chance = random.Random(1)

    def name() -> str:
        return HOSTILE[:60] + "".join(chance.choices(WORDS, k=8))

    store, books, gpus = SqlStore(backend), SqlAuditLog(backend), SqlGpuLedger(backend)
    for number in range(20):
        n = name()
        store.take_lead(n, at())
        store.commit(
            Batch(
                at=at(number),
                alerts=(alert(n, id=n, summary=n, labels={n: n}),),
                closed=(key(name()),),
                runs=(run(n),),
                transitions=(replace(transition(1, n), id=n),),
                outbox=(outgoing(n, n, n), outgoing(n, n, n)),
                memory={n: {n: n}},
                samples={n: (Sample(n, n, 1.0),)},
            )
        )
        first, second, *_ = store.read_outbox()
        store.failed([replace(first, error=n)])
        store.sent([first], at(number), Receipt(n, (n,)))
        store.dropped([second], at(number), n)
        store.put_silence(Silence(id=n, match=Match(check=[n]), starts=1, ends=at(9).wall, who=n))
        store.put_ack(Ack(alert=n, at=at(), who=n))
        assert store.read_memory(n) == {n: n}
        assert store.read_samples(n, n, n, 0) == [(at(number), 1.0)]
        assert len(store.read_deliveries(n)) == 2
        assert store.read_transitions(alert=n)[0].id == n
        write(books, record(n, n))
        books.record_outcome(record(n, n))
        books.record_readings([replace(DRAINED, name=n, reason=n)], at(number))
        books.set_switch(n, ActionSwitch(since=at(), seconds=None, why=n, by=n))
        books.set_switch(n, None)
        gpus.record_sightings([GpuSighting(uuid=n, node=n, slot=n)], at(number))
        gpus.record_sightings([GpuSighting(uuid=n, node=n + "2", slot=n)], at(number + 1))
        gpus.add_events([GpuEvent(id=n, subject=n, what="xid 79", at=at(number), node=n, text=n)])
        gpus.set_mark(n, "lemon", n, n, at(number))
        gpus.forget_events(n, [n, "xid 79"], 0, n, n, at(number))
        read = (
            books.records(n),
            books.readings(n),
            gpus.read_entries(n + "2"),
            gpus.read_events(n),
        )
        assert all([*read, gpus.read_entry(n), gpus.read_stays(n), gpus.read_standings(at(number))])
    for place in (store, books, gpus):
        place.prune(at(500 * DAY_S))
        place.close()
    begin = {"BEGIN", "BEGIN IMMEDIATE"} if backend.dialect == "sqlite" else set()
    texts = {text.replace('"public".', "") for text in TEXTS}
    assert texts - begin <= {getattr(s, backend.dialect) for s in STATEMENTS.values()}
    assert len(TEXTS) > 60


def test_every_statement_is_understood(tmp_path: Path) -> None:
    """By SQLite as it is here, without running it."""
    store = SqlStore(SqliteBackend(str(tmp_path)))
    store.open_database()
    store.close()
    connection = sqlite3.connect(tmp_path / "sentinel.db")
    for name, statement in STATEMENTS.items():
        names = dict.fromkeys(re.findall(r":(\w+)", statement.sqlite), 1)
        if statement.sqlite:
            assert connection.execute(f"EXPLAIN {statement.sqlite}", names).fetchall(), name
    connection.close()
