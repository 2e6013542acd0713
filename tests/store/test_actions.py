"""The audit log and the ledger of nodes: what every kind of state keeps its word about."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.core.actions import (
    ActionHistory,
    ActionOutcome,
    ActionRecord,
    ActionSwitch,
    GuardDecision,
)
from sentinel.core.cluster import Node
from sentinel.core.ports import AuditLog
from sentinel.store.audit_log import SqlAuditLog
from sentinel.store.postgres import PostgresBackend
from sentinel.store.retention import DAY_S
from sentinel.store.sqlite import SqliteBackend
from tests.store.book_memory import BookState, MemoryBooks
from tests.store.nouns import HOSTILE, at

Open = Callable[[], AuditLog]
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


def record(
    name: str, target: str = "n1", outcome: ActionOutcome = ActionOutcome.INTENDED
) -> ActionRecord:
    return ActionRecord(
        id=name, action="drain", target=target, reason="bad", by="test", at=at(), outcome=outcome
    )


def write(books: AuditLog, wanted: ActionRecord) -> ActionHistory:
    """Without any judgement; returns what could have been judged by."""
    seen: list[ActionHistory] = []

    def decide(past: ActionHistory) -> GuardDecision:
        seen.append(past)
        return GuardDecision(record=wanted)

    books.record_intent(wanted.target, decide)
    return seen[0]


def thousand(test: Callable[..., None]) -> Callable[..., None]:
    """A thousand transactions: seconds in memory, minutes in some places of a state."""
    return pytest.mark.long(pytest.mark.timeout(600)(test))


class BooksContract:
    """One rule, one test. Subclasses bring `open_books`, which opens the same state each time."""

    @pytest.fixture
    def books(self, open_books: Open) -> Iterator[AuditLog]:
        books = open_books()
        yield books
        books.close()

    def test_a_new_state_knows_of_nothing(self, books: AuditLog) -> None:
        """No records, no switches, no readings."""
        assert (books.read_past_actions("n1"), books.records(), books.read_unresolved()) == (
            ActionHistory(),
            [],
            [],
        )
        assert books.readings("n1") == []

    def test_an_intent_is_seen_by_everybody_at_once(
        self, books: AuditLog, open_books: Open
    ) -> None:
        """Another handle, as another process has, judges by it."""
        write(books, record("a"))
        other = open_books()
        assert write(other, record("b")).records == (record("a"),)
        assert [r.id for r in other.records()] == ["b", "a"]
        assert [r.id for r in books.read_unresolved()] == ["a", "b"]
        other.close()

    def test_what_is_no_news_is_not_written(self, books: AuditLog) -> None:
        """`write` False: judged, and nothing added."""
        decision = books.record_intent(
            "n1", lambda past: GuardDecision(record=record("a"), write=False)
        )
        assert (decision.record.id, books.records()) == ("a", [])

    def test_a_decision_that_raises_writes_nothing(self, books: AuditLog) -> None:
        """The transaction is undone, and the next one works."""

        def fail(past: ActionHistory) -> GuardDecision:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            books.record_intent("n1", fail)
        write(books, record("a"))
        assert len(books.records()) == 1

    def test_only_an_open_record_is_concluded(self, books: AuditLog) -> None:
        """intended -> unknown -> done; what is over stays as it is, what never was is not made."""
        write(books, record("a"))
        assert books.record_outcome(record("a", outcome=ActionOutcome.UNKNOWN))
        assert [r.outcome for r in books.read_unresolved()] == [ActionOutcome.UNKNOWN]
        assert books.record_outcome(record("a", outcome=ActionOutcome.DONE))
        assert not books.record_outcome(record("a", outcome=ActionOutcome.ERROR))
        assert not books.record_outcome(record("never", outcome=ActionOutcome.DONE))
        assert [(r.id, r.outcome) for r in books.records()] == [("a", ActionOutcome.DONE)]
        assert books.read_unresolved() == []

    def test_records_about_one_target(self, books: AuditLog) -> None:
        """Newest first, at most so many."""
        for number, target in enumerate(["n1", "n2", "n1", "n1"]):
            write(books, record(str(number), target))
        assert [r.id for r in books.records("n1", 2)] == ["3", "2"]
        assert [r.id for r in books.records(limit=3)] == ["3", "2", "1"]

    @thousand
    def test_refusals_hide_neither_what_was_tried_nor_what_is_open(self, books: AuditLog) -> None:
        """However many there are, about this target and others."""
        write(books, record("open"))
        write(books, record("tried", "n2", ActionOutcome.DONE))
        for number in range(1002):
            write(books, record(f"r{number}", f"n{number % 2 + 1}", ActionOutcome.REFUSED))
        found = {r.id for r in books.read_past_actions("n1").records}
        assert {"open", "tried"} <= found

    def test_any_text_comes_back(self, books: AuditLog) -> None:
        """NUL, lone surrogates, quotes, long ones."""
        odd = replace(record("a", HOSTILE), reason=HOSTILE, evidence={HOSTILE: HOSTILE * 100})
        write(books, odd)
        assert books.records(HOSTILE) == [odd]

    def test_switches(self, books: AuditLog, open_books: Open) -> None:
        """Thrown by one, seen by all, until undone; the breaker also by a decision."""
        maintenance = ActionSwitch(since=at(), seconds=7200, why="cooling", by="root")
        breaker = ActionSwitch(since=at(), seconds=1800, why="9 nodes left service")
        books.set_switch("maintenance", maintenance)
        books.record_intent("n1", lambda past: GuardDecision(record=record("a"), breaker=breaker))
        other = open_books()
        past = other.read_past_actions("n2")
        assert (past.maintenance, past.breaker) == (maintenance, breaker)
        books.set_switch("maintenance", None)
        books.set_switch("maintenance", None)
        books.set_switch("breaker", replace(breaker, seconds=5))
        past = other.read_past_actions("n2")
        assert (past.maintenance, past.breaker) == (None, replace(breaker, seconds=5))
        other.close()

    def test_two_processes_never_decide_at_once(self, open_books: Open) -> None:
        """A cap of five is five, however many threads with states of their own try it."""

        def decide(past: ActionHistory) -> GuardDecision:
            name = f"{threading.get_ident()}-{len(past.records)}"
            return GuardDecision(record=record(name), write=len(past.records) < 5)

        def hurry() -> None:
            mine = open_books()
            for _ in range(5):
                mine.record_intent("n1", decide)
            mine.close()

        threads = [threading.Thread(target=hurry) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(open_books().records()) == 5

    def test_every_reason_is_remembered(self, books: AuditLog) -> None:
        """Slurm overwrites "bad dimm" with "Kill task failed"; the ledger has both, once each."""
        for seconds, node in enumerate([HEALTHY, DRAINED, DRAINED, KILLED, KILLED, HEALTHY]):
            books.record_readings([node], at(seconds))
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

    def test_a_node_that_leaves_service_is_counted_once(self, books: AuditLog) -> None:
        """Not when it is seen for the first time ever, nor when only its reason changes."""
        gone = replace(DRAINED, name="n2")
        books.record_readings([HEALTHY, gone], at())
        assert books.read_past_actions("n1").left == ()
        books.record_readings([DRAINED, gone], at(1))
        books.record_readings([KILLED, gone], at(2))
        assert [(r.node, r.left) for r in books.read_past_actions("n1").left] == [("n1", at(1))]

    def test_a_look_at_one_node_is_none_at_all(self, books: AuditLog) -> None:
        """What one command saw of its node does not date the others."""
        books.record_readings([HEALTHY], at(), whole=False)
        books.record_readings([replace(DRAINED, name="n2")], at(1))
        assert books.read_past_actions("n1").left == ()

    @thousand
    def test_very_many_actions(self, books: AuditLog) -> None:
        """Those of the last hour count for caps, however many: tests of 1,000 nodes must not make
        them forget what was undrained. What is old goes; what is open, the newest of each node, and
        the newest thousand stay."""
        old = {"a": ActionOutcome.DONE, "b": ActionOutcome.UNKNOWN}
        for name, outcome in old.items():
            write(books, record(name, outcome=outcome))
        for number in range(1000):
            judged_by = write(books, record(f"r{number}", "n2", ActionOutcome.DONE))
        assert [r.id for r in judged_by.records][:3] == ["a", "b", "r0"]
        books.prune(at(400 * DAY_S - 1))
        assert len(books.records(limit=2000)) == 1002
        books.prune(at(400 * DAY_S + 1))
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
        return lambda: SqlAuditLog(SqliteBackend(str(tmp_path)))


class TestNetwork(BooksContract):
    """In a state directory on a network file system."""

    @pytest.fixture
    def open_books(self, tmp_path: Path) -> Open:
        return lambda: SqlAuditLog(SqliteBackend(str(tmp_path), local=False))


class TestPostgres(BooksContract):
    """In PostgreSQL."""

    @pytest.fixture
    def open_books(self, postgres_url: str) -> Open:
        return lambda: SqlAuditLog(PostgresBackend(postgres_url))
