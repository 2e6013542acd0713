"""Rows that nobody can read, and words that only a newer sentinel knows."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.actions import ActionOutcome, ActionRecord, ActionSwitch
from sentinel.core.errors import StoreBusy
from sentinel.core.gpu_ledger import LedgerEntry
from sentinel.core.model import Alert, Batch, CheckRun, Status
from sentinel.core.stored_memory import decode_memory
from sentinel.store.audit_log import SqlAuditLog
from sentinel.store.backend import Backend
from sentinel.store.database import Statement
from sentinel.store.errors import StateDamaged
from sentinel.store.opening import open_store
from sentinel.store.postgres import PostgresBackend
from sentinel.store.rows import StoredOrder, UnreadableRow, decode_stored, encode_stored
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.nouns import alert, at, outgoing, run, summaries, transition


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param == "sqlite":
        return SqliteBackend(str(tmp_path))
    return PostgresBackend(request.getfixturevalue("postgres_url"))


@pytest.fixture
def store(backend: Backend) -> Iterator[SqlStore]:
    """With two of each noun."""
    store = SqlStore(backend)
    store.take_lead("test", at())
    store.commit(
        Batch(
            at=at(),
            alerts=(alert("/a"), alert("/b")),
            runs=(run("a"), run("b")),
            transitions=(transition(1, "alert-/a"), transition(2, "alert-/b")),
            outbox=(outgoing("one"), outgoing("two")),
            memory={"a": {"n": 1}, "b": {"n": 2}},
        )
    )
    store.release_lead()
    yield store
    store.close()


def execute(backend: Backend, statement: str) -> list[Any]:
    with (
        closing(backend.open_connection()) as connection,
        connection.begin_transaction(writing=True),
    ):
        cursor = connection._execute_statement(Statement(statement), {})
        return list(cursor.fetchall()) if cursor.description else []


def spoil(backend: Backend, table: str, order: str = "body") -> None:
    """Cut the first row of a table, as a bug or a hand that edits would."""
    key = {"outbox": "seq", "transitions": "seq", "actions": "seq"}.get(table, "key")
    execute(
        backend,
        f"UPDATE {table} SET body = '[1' WHERE {key} = "
        f"(SELECT {key} FROM {table} ORDER BY {order} LIMIT 1)",
    )


@pytest.mark.parametrize("table", ["alerts", "runs", "memory", "outbox"])
def test_one_row_is_kept_apart_and_the_rest_serves(
    store: SqlStore, backend: Backend, table: str
) -> None:
    """Whoever leads next tells of it once; the row is kept as it was, and every other one is there."""
    spoil(backend, table)
    store.take_lead("test", at(1))
    (notice,) = store.take_notices()
    assert "1 " in notice
    assert "kept apart in the table `unreadable`; the rest serves" in notice
    assert "is unreadable" in notice
    assert [row[0] for row in execute(backend, "SELECT body FROM unreadable")] == ["[1"]
    counts = {
        "alerts": len(store.read_alerts()),
        "runs": len(store.read_runs()),
        "memory": sum(bool(store.read_memory(name)) for name in "ab"),
        "outbox": len(store.read_outbox()),
    }
    assert counts == {name: 1 if name == table else 2 for name in counts}
    store.take_lead("test", at(2))
    assert store.take_notices() == ()


def test_a_healthy_state_keeps_nothing_apart(store: SqlStore, backend: Backend) -> None:
    store.take_lead("test", at(1))
    assert store.take_notices() == ()
    assert execute(backend, "SELECT body FROM unreadable") == []


def test_history_is_shown_without_the_row(
    store: SqlStore, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    """What is only looked at stays where it is; the log names what is left out."""
    spoil(backend, "transitions", "seq")
    assert [t.id for t in store.read_transitions()] == ["transition-2"]
    assert "left out: a stored Transition is unreadable" in caplog.text


def test_a_person_hears_of_it(tmp_path: Path) -> None:
    """By the notices of the store that a service uses; nothing is set aside as a whole."""
    first = open_store(str(tmp_path), at()).store
    first.take_lead("test", at())
    first.commit(Batch(at=at(), alerts=(alert("/a"), alert("/b"))))
    first.close()
    spoil(SqliteBackend(str(tmp_path)), "alerts")
    opened = open_store(str(tmp_path), at(1))
    assert opened.notices == ()
    opened.store.take_lead("test", at(1))
    (notice,) = opened.store.take_notices()
    assert "1 alerts cannot be read" in notice
    assert len(opened.store.read_alerts()) == 1
    assert list(tmp_path.glob("*.damaged*")) == []
    opened.store.close()


def test_nothing_is_done_by_a_log_that_cannot_be_read(backend: Backend) -> None:
    """What the guard judges by must be whole: no caps are counted from a part of it."""
    books = SqlAuditLog(backend)
    record = ActionRecord(
        id="one",
        action="drain",
        target="n1",
        reason="bad",
        by="test",
        at=at(),
        outcome=ActionOutcome.DONE,
    )
    execute_record(books, record)
    assert len(books.read_past_actions("n1").records) == 1
    spoil(backend, "actions", "seq")
    with pytest.raises(StateDamaged, match="a stored ActionRecord is unreadable"):
        books.read_past_actions("n1")
    assert books.records("n1") == []
    books.close()


def test_an_audit_log_that_cannot_be_read_is_set_aside_by_hand(backend: Backend) -> None:
    """Only by a person, who is told how; then actions rest, since the caps do not count what is gone. A
    maintenance that cannot be read becomes one without an end."""
    books = SqlAuditLog(backend)
    pause = ActionSwitch(since=at(2), seconds=3600.0, why="lost", by="a person")
    for name in ("one", "two"):
        execute_record(books, record(id=name))
    assert books.set_unreadable_aside(pause) == {}
    assert books.read_past_actions("n1").maintenance is None
    spoil(backend, "actions", "seq")
    with pytest.raises(StateDamaged, match="no action is done until: sentinel state repair"):
        books.read_past_actions("n1")
    assert books.set_unreadable_aside(pause) == {"actions": 1}
    past = books.read_past_actions("n1")
    assert [r.id for r in past.records] == ["two"]
    assert past.maintenance == pause
    assert [tuple(row) for row in execute(backend, "SELECT noun, body FROM unreadable")] == [
        ("ActionRecord", "[1")
    ]
    longer = replace(pause, seconds=None, why="mine")
    books.set_switch("maintenance", longer)
    spoil(backend, "actions", "seq")
    assert books.set_unreadable_aside(pause) == {"actions": 1}
    assert books.read_past_actions("n1").maintenance == longer
    spoil(backend, "switches")
    assert books.set_unreadable_aside(pause) == {"switches": 1}
    assert books.read_past_actions("n1").maintenance == replace(pause, seconds=None)
    books.close()


def test_a_lease_that_cannot_be_read_is_somebodys(backend: Backend) -> None:
    """Nobody takes over before it is over by its own time; it is shown as what it is."""
    first, second = SqlStore(backend), SqlStore(backend_of(backend))
    first.take_lead("first", at())
    if isinstance(backend, SqliteBackend):
        (Path(backend.place).parent / "lock").write_text("[1")
    else:
        execute(backend, "UPDATE leader SET body = '[1'")
    assert second.read_leader() == "a sentinel whose name cannot be read"
    with pytest.raises(StoreBusy, match="another sentinel leads: a sentinel whose name cannot be"):
        second.take_lead("second", at(1))
    first.commit(Batch(at=at(1), alerts=(alert("/a"),)))
    first.close()
    second.take_lead("second", at(2))
    assert second.read_leader().startswith("second since ")
    second.close()


def backend_of(backend: Backend) -> Backend:
    """Another process's, of the same state."""
    if isinstance(backend, SqliteBackend):
        return SqliteBackend(str(Path(backend.place).parent))
    return backend


def execute_record(books: SqlAuditLog, record: ActionRecord) -> None:
    from sentinel.core.actions import GuardDecision

    books.record_intent(record.target, lambda _: GuardDecision(record=record))


# Words of a newer sentinel


def reword(value: Struct, path: str, word: object) -> str:
    """The stored form with another word in one place, and a field that nobody knows."""
    tree = json.loads(encode_stored(value))
    *way, last = path.split(".")
    place = tree
    for step in way:
        place = place[step]
    place[last] = word
    return json.dumps({**tree, "new_field": {"of": ["a", 1]}})


def record(**more: Any) -> ActionRecord:
    given = {"id": "1", "action": "drain", "target": "n1", "reason": "", "by": "", "at": at()}
    return ActionRecord(**{**given, "outcome": ActionOutcome.DONE, **more})


def order() -> StoredOrder:
    from sentinel.alerting.silences import Remark

    return StoredOrder(remark=Remark(incident="i", deed="close", at=at(), text="done"))


def notified() -> Alert:
    from sentinel.core.model import LastNotified

    return alert(told={"mail": LastNotified(at(), Status.CRITICAL)})


def entry() -> LedgerEntry:
    return LedgerEntry(subject="GPU-a", first=at(), seen=at(), mark="good")


@pytest.mark.parametrize(
    ("value", "path", "read"),
    [
        (alert(), "status", Status.CRITICAL),
        (alert(), "severity", Status.CRITICAL),
        (notified(), "told.mail.severity", Status.WARNING),
        (run(), "status", Status.UNKNOWN),
        (transition(), "status", Status.CRITICAL),
        (outgoing(), "notification.severity", Status.CRITICAL),
        (record(), "outcome", ActionOutcome.UNKNOWN),
        (record(ended=at(1)), "outcome", ActionOutcome.UNCLEAR),
        (order(), "remark.deed", "comment"),
        (entry(), "mark", ""),
    ],
)  # fmt: skip
def test_an_unknown_word_is_never_milder(value: Struct, path: str, read: object) -> None:
    """Bad as it can be; told to whom it may be news; open or spent for the guard; no mark, no deed."""
    assert fetch(decode_stored(encode_stored(value), type(value)), path) == fetch(value, path)
    found = decode_stored(reword(value, path, "purple"), type(value))
    assert fetch(found, path) == read


def fetch(value: Any, path: str) -> object:
    for step in path.split("."):
        value = value[step] if isinstance(value, dict) else getattr(value, step)
    return value


@pytest.mark.parametrize("word", [7, None, ["ok"], {"a": 1}])
def test_what_is_no_word_stays_unreadable(word: object) -> None:
    """Only another word is a newer sentinel's; anything else is damage."""
    with pytest.raises(UnreadableRow):
        decode_stored(reword(run(), "status", word), CheckRun)


def test_a_row_is_written_by_known_words_only() -> None:
    """A word that this sentinel does not know never begins here."""
    from sentinel.store.errors import Unstorable

    with pytest.raises(Unstorable):
        encode_stored(alert(status="purple"))  # type: ignore[arg-type]


class Remembered(Struct):
    """As the memory of a kind."""

    status: Status
    runs: tuple[CheckRun, ...] = ()


def test_the_memory_of_a_check_keeps_what_it_knows() -> None:
    """An unknown word in it does not make the check forget the rest."""
    row = json.loads(encode_stored(run()))
    memory = {"status": "purple", "runs": [{**row, "status": "purple"}]}
    found = decode_memory(memory, Remembered)
    assert found is not None
    assert (found.status, found.runs[0].status) == (Status.CRITICAL, Status.UNKNOWN)
    assert decode_memory({"status": 3}, Remembered) is None


def test_a_message_of_a_newer_sentinel_is_sent(store: SqlStore, backend: Backend) -> None:
    """Its words are read, and none is lost."""
    execute(backend, """UPDATE outbox SET body = replace(body, '"critical"', '"purple"')""")
    store.take_lead("test", at(1))
    assert store.take_notices() == ()
    assert sorted(summaries(store.read_outbox())) == ["one", "two"]
    assert {row.notification.severity for row in store.read_outbox()} == {Status.CRITICAL}
