"""The audit log and the ledger of nodes: what every kind of state keeps its word about."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.core.actions import (
    ActionRecord,
    Decision,
    Outcome,
    Past,
    Switch,
)
from sentinel.core.cluster import Node
from sentinel.core.ports import Books
from sentinel.store.books import SqlBooks
from sentinel.store.postgres import PostgresBackend
from sentinel.store.retention import DAY
from sentinel.store.sqlite import SqliteBackend
from tests.store.book_memory import BookState, MemoryBooks
from tests.store.nouns import HOSTILE, at

Open = Callable[[], Books]
HEALTHY = Node(name="n1", state="IDLE")
DRAINED = Node(
    name="n1",
    state="IDLE",
    flags=frozenset({"DRAIN"}),
    reason="bad dimm, RMA 4711",
    reason_user="root",
    reason_time=1_700_000_000,
)
KILLED = replace(DRAINED, reason="Kill task failed", reason_time=1_700_000_100)


def record(name: str, target: str = "n1", outcome: Outcome = Outcome.INTENDED) -> ActionRecord:
    return ActionRecord(
        id=name, action="drain", target=target, reason="bad", by="test", at=at(), outcome=outcome
    )


def write(books: Books, wanted: ActionRecord) -> Past:
    """Without any judgement; returns what could have been judged by."""
    seen: list[Past] = []

    def decide(past: Past) -> Decision:
        seen.append(past)
        return Decision(record=wanted)

    books.intend(wanted.target, decide)
    return seen[0]


def thousand(test: Callable[..., None]) -> Callable[..., None]:
    """A thousand transactions: seconds in memory, minutes in some places of a state."""
    return pytest.mark.long(pytest.mark.timeout(600)(test))


class BooksContract:
    """One rule, one test. Subclasses bring `open_books`, which opens the same state each time."""

    @pytest.fixture
    def books(self, open_books: Open) -> Iterator[Books]:
        books = open_books()
        yield books
        books.close()

    def test_a_new_state_knows_of_nothing(self, books: Books) -> None:
        """No records, no switches, no readings."""
        assert (books.past("n1"), books.records(), books.unresolved()) == (Past(), [], [])
        assert books.readings("n1") == []

    def test_an_intent_is_seen_by_everybody_at_once(self, books: Books, open_books: Open) -> None:
        """Another handle, as another process has, judges by it."""
        write(books, record("a"))
        other = open_books()
        assert write(other, record("b")).records == (record("a"),)
        assert [r.id for r in other.records()] == ["b", "a"]
        assert [r.id for r in books.unresolved()] == ["a", "b"]
        other.close()

    def test_what_is_no_news_is_not_written(self, books: Books) -> None:
        """`write` False: judged, and nothing added."""
        decision = books.intend("n1", lambda past: Decision(record=record("a"), write=False))
        assert (decision.record.id, books.records()) == ("a", [])

    def test_a_decision_that_raises_writes_nothing(self, books: Books) -> None:
        """The transaction is undone, and the next one works."""

        def fail(past: Past) -> Decision:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            books.intend("n1", fail)
        write(books, record("a"))
        assert len(books.records()) == 1

    def test_only_an_open_record_is_concluded(self, books: Books) -> None:
        """intended -> unknown -> done; what is over stays as it is, what never was is not made."""
        write(books, record("a"))
        assert books.conclude(record("a", outcome=Outcome.UNKNOWN))
        assert [r.outcome for r in books.unresolved()] == [Outcome.UNKNOWN]
        assert books.conclude(record("a", outcome=Outcome.DONE))
        assert not books.conclude(record("a", outcome=Outcome.ERROR))
        assert not books.conclude(record("never", outcome=Outcome.DONE))
        assert [(r.id, r.outcome) for r in books.records()] == [("a", Outcome.DONE)]
        assert books.unresolved() == []

    def test_records_about_one_target(self, books: Books) -> None:
        """Newest first, at most so many."""
        for number, target in enumerate(["n1", "n2", "n1", "n1"]):
            write(books, record(str(number), target))
        assert [r.id for r in books.records("n1", 2)] == ["3", "2"]
        assert [r.id for r in books.records(limit=3)] == ["3", "2", "1"]

    @thousand
    def test_refusals_hide_neither_what_was_tried_nor_what_is_open(self, books: Books) -> None:
        """However many there are, about this target and others."""
        write(books, record("open"))
        write(books, record("tried", "n2", Outcome.DONE))
        for number in range(1002):
            write(books, record(f"r{number}", f"n{number % 2 + 1}", Outcome.REFUSED))
        found = {r.id for r in books.past("n1").records}
        assert {"open", "tried"} <= found

    def test_any_text_comes_back(self, books: Books) -> None:
        """NUL, lone surrogates, quotes, long ones."""
        odd = replace(record("a", HOSTILE), reason=HOSTILE, evidence={HOSTILE: HOSTILE * 100})
        write(books, odd)
        assert books.records(HOSTILE) == [odd]

    def test_switches(self, books: Books, open_books: Open) -> None:
        """Thrown by one, seen by all, until undone; the breaker also by a decision."""
        maintenance = Switch(since=at(), seconds=7200, why="cooling", by="root")
        breaker = Switch(since=at(), seconds=1800, why="9 nodes left service")
        books.switch("maintenance", maintenance)
        books.intend("n1", lambda past: Decision(record=record("a"), breaker=breaker))
        other = open_books()
        past = other.past("n2")
        assert (past.maintenance, past.breaker) == (maintenance, breaker)
        books.switch("maintenance", None)
        books.switch("maintenance", None)
        books.switch("breaker", replace(breaker, seconds=5))
        past = other.past("n2")
        assert (past.maintenance, past.breaker) == (None, replace(breaker, seconds=5))
        other.close()

    def test_two_processes_never_decide_at_once(self, open_books: Open) -> None:
        """A cap of five is five, however many threads with states of their own try it."""

        def decide(past: Past) -> Decision:
            name = f"{threading.get_ident()}-{len(past.records)}"
            return Decision(record=record(name), write=len(past.records) < 5)

        def hurry() -> None:
            mine = open_books()
            for _ in range(5):
                mine.intend("n1", decide)
            mine.close()

        threads = [threading.Thread(target=hurry) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(open_books().records()) == 5

    def test_every_reason_is_remembered(self, books: Books) -> None:
        """Slurm overwrites "bad dimm" with "Kill task failed"; the ledger has both, once each."""
        for seconds, node in enumerate([HEALTHY, DRAINED, DRAINED, KILLED, KILLED, HEALTHY]):
            books.observe([node], at(seconds))
        found = books.readings("n1")
        assert [r.reason for r in found] == ["", "Kill task failed", "bad dimm, RMA 4711"]
        assert [r.out for r in found] == [False, True, True]
        assert (found[2].state, found[2].user, found[2].reason_time, found[2].seen) == (
            "IDLE+DRAIN",
            "root",
            1_700_000_000,
            at(1),
        )
        assert [r.reason for r in books.readings("n1", 1)] == [""]

    def test_a_node_that_leaves_service_is_counted_once(self, books: Books) -> None:
        """Not when it is seen for the first time ever, nor when only its reason changes."""
        gone = replace(DRAINED, name="n2")
        books.observe([HEALTHY, gone], at())
        assert books.past("n1").left == ()
        books.observe([DRAINED, gone], at(1))
        books.observe([KILLED, gone], at(2))
        assert [(r.node, r.left) for r in books.past("n1").left] == [("n1", at(1))]

    def test_a_look_at_one_node_is_none_at_all(self, books: Books) -> None:
        """What one command saw of its node does not date the others."""
        books.observe([HEALTHY], at(), whole=False)
        books.observe([replace(DRAINED, name="n2")], at(1))
        assert books.past("n1").left == ()

    @thousand
    def test_very_many_actions(self, books: Books) -> None:
        """Those of the last hour count for caps, however many: tests of 1,000 nodes must not make
        them forget what was undrained. What is old goes; what is open, the newest of each node, and
        the newest thousand stay."""
        old = {"a": Outcome.DONE, "b": Outcome.UNKNOWN}
        for name, outcome in old.items():
            write(books, record(name, outcome=outcome))
        for number in range(1000):
            judged_by = write(books, record(f"r{number}", "n2", Outcome.DONE))
        assert [r.id for r in judged_by.records][:3] == ["a", "b", "r0"]
        books.prune(at(400 * DAY - 1))
        assert len(books.records(limit=2000)) == 1002
        books.prune(at(400 * DAY + 1))
        assert [r.id for r in books.records("n1")] == ["b"]
        assert len(books.records(limit=2000)) == 1001


class TestMemory(BooksContract):
    """In memory."""

    @pytest.fixture
    def open_books(self) -> Open:
        state = BookState()
        return lambda: MemoryBooks(state)


class TestSqlite(BooksContract):
    """In a state directory."""

    @pytest.fixture
    def open_books(self, tmp_path: Path) -> Open:
        return lambda: SqlBooks(SqliteBackend(str(tmp_path)))


class TestNetwork(BooksContract):
    """In a state directory on a network file system."""

    @pytest.fixture
    def open_books(self, tmp_path: Path) -> Open:
        return lambda: SqlBooks(SqliteBackend(str(tmp_path), local=False))


class TestPostgres(BooksContract):
    """In PostgreSQL."""

    @pytest.fixture
    def open_books(self, postgres_url: str) -> Open:
        return lambda: SqlBooks(PostgresBackend(postgres_url))
