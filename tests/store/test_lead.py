"""Who leads a state that is led by a lease, by a clock that moves when told; and what a lead leaves.

The lease is PostgreSQL's, the tables are SQLite's: what is tested is what both have in common."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sentinel.alerting.handover import HANDOVER_KEY, Handover
from sentinel.core.errors import Fenced, StoreBusy
from sentinel.core.model import Batch
from sentinel.core.stored_memory import decode_memory
from sentinel.store import lease, sql
from sentinel.store.database import Statement
from sentinel.store.errors import StateDamaged, StateUnavailable
from sentinel.store.retention import DAY_S
from sentinel.store.sql import STANDBY_KEY, SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.leased import TERM, LeasedBackend
from tests.store.nouns import alert, at, measured, outgoing, told, transition
from tests.store.ticking import Ticking


class Bench:
    """Processes on one state."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.clock = directory, Ticking()
        self.opened: list[SqlStore] = []

    def start(self) -> tuple[SqlStore, LeasedBackend]:
        backend = LeasedBackend(self.directory, self.clock)
        self.opened.append(SqlStore(backend))
        return self.opened[-1], backend

    def plain(self) -> SqlStore:
        """A process that has no lease: it leads by a lock of the kernel."""
        self.opened.append(SqlStore(SqliteBackend(str(self.directory), local=True)))
        return self.opened[-1]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    for module in (lease, sql):
        monkeypatch.setattr(module, "read_boot_clock", bench.clock)
    yield bench
    for store in bench.opened:
        store.close()


def values(store: SqlStore, name: str = "used") -> list[float]:
    return [value for _, value in store.read_samples("fs", "/scratch", name, 0)]


WRITES: dict[str, Callable[[SqlStore], object]] = {
    "lead": lambda store: store.take_lead("one", at()),
    "renew": lambda store: store.renew_lease(),
    "commit": lambda store: store.commit(Batch(at=at())),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_lease_counts_from_before_the_database_was_asked(bench: Bench, write: str) -> None:
    """The database may have taken its time: by its clock the lease began later, never earlier."""
    store, backend = bench.start()
    assert store.get_lease_left_s() == float("-inf")
    store.take_lead("one", at())
    assert store.get_lease_left_s() == 0.9 * TERM
    bench.clock.advance(3)
    assert store.get_lease_left_s() == 0.9 * TERM - 3
    backend.slow = 4
    WRITES[write](store)
    assert store.get_lease_left_s() == 0.9 * TERM - 4


def test_a_lease_that_is_not_over_is_only_for_its_holder(bench: Bench) -> None:
    """To the microsecond; each lead has the next number."""
    (one, its), (two, _) = bench.start(), bench.start()
    assert (one.take_lead("one", at()), one.take_lead("one", at(1))) == (1, 2)
    assert its.ended == 2
    bench.clock.advance(TERM - 0.001)
    with pytest.raises(StoreBusy, match="another sentinel leads: one since 2027") as busy:
        two.take_lead("two", at(2))
    assert busy.value.since == at(1).wall
    assert two.get_lease_left_s() == float("-inf")
    bench.clock.advance(0.001)
    assert two.take_lead("two", at(3)) == 3
    with pytest.raises(Fenced, match=r"another sentinel took over \(two since 2027-"):
        one.commit(told("late"))
    assert one.get_lease_left_s() == float("-inf")


def test_a_lock_that_another_has_is_no_lead(bench: Bench) -> None:
    """Even where nobody's lease goes on; nothing is written."""
    store, backend = bench.start()
    backend.is_free = False
    with pytest.raises(StoreBusy, match="another sentinel leads: "):
        store.take_lead("one", at())
    assert (store.read_leader(), backend.ended) == ("", 0)


def test_the_leader_learns_now_and_then_that_others_stand_by(bench: Bench) -> None:
    """It is written at most once an hour."""
    (one, _), (two, _) = bench.start(), bench.start()
    one.take_lead("one", at())

    def note(moment: float) -> object:
        one.renew_lease()
        with pytest.raises(StoreBusy):
            two.take_lead("two", at(moment))
        return one.read_memory(STANDBY_KEY).get("at")

    assert one.read_memory(STANDBY_KEY) == {}
    assert note(1) == at(1).wall
    bench.clock.advance(3600)
    assert note(2) == at(1).wall
    bench.clock.advance(1)
    assert note(3) == at(3).wall


def test_a_note_that_cannot_be_written_hides_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That another leads is the news; it is tried again."""
    (one, _), (two, _) = bench.start(), bench.start()
    one.take_lead("one", at())

    def fail(*_: object) -> None:
        raise StateUnavailable("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(two, "_put_memory", fail)
        with pytest.raises(StoreBusy):
            two.take_lead("two", at(1))
    with pytest.raises(StoreBusy):
        two.take_lead("two", at(2))
    assert one.read_memory(STANDBY_KEY) == {"at": at(2).wall}


def test_who_leads_by_a_lock_of_the_kernel_needs_no_note_and_no_term(bench: Bench) -> None:
    """Nobody may lead while it lives."""
    one, two = bench.plain(), bench.plain()
    assert (one.has_lock, one.term) == (False, 0.0)
    one.take_lead("one", at())
    with pytest.raises(StoreBusy):
        two.take_lead("two", at())
    assert one.read_memory(STANDBY_KEY) == {}
    assert (one.has_lock, two.has_lock) == (True, False)
    assert one.get_lease_left_s() == float("inf")
    one.release_lead()
    assert not one.has_lock
    leased, _ = bench.start()
    leased.take_lead("three", at())
    assert not leased.has_lock, "it ends with its session"


def test_a_lock_that_ended_with_its_session_is_taken_again(bench: Bench) -> None:
    """Once for each session, under the same name; without it nothing is written."""
    store, backend = bench.start()
    store.take_lead("one", at())
    store.take_lead("one", at())
    store.commit(Batch(at=at()))
    assert backend.locked == ["one"]
    store._session.close()
    store.commit(Batch(at=at()))
    store.commit(Batch(at=at()))
    assert backend.locked == ["one", "one"]
    store._session.close()
    backend.is_free = False
    with pytest.raises(StateUnavailable, match="a lost session still holds the lock"):
        store.commit(told("unheard"))
    assert store.read_outbox() == []
    backend.is_free = True
    store.take_lead("one", at())
    assert backend.locked == ["one"] * 3


def test_a_lead_that_is_released_is_over_at_once(bench: Bench) -> None:
    """The lease, the lock and the right to write; a second time changes nothing."""
    (one, its), (two, _) = bench.start(), bench.start()
    one.take_lead("one", at())
    one.release_lead()
    assert (one.read_leader(), its.dropped) == ("", 1)
    assert one.get_lease_left_s() == float("-inf")
    with pytest.raises(Fenced, match="this sentinel does not lead"):
        one.renew_lease()
    assert two.take_lead("two", at()) == 2
    one.release_lead()
    assert two.read_leader().startswith("two since")


@pytest.mark.parametrize("broken", ["get_lease_expiry", "drop_lock"])
def test_a_release_that_fails_ends_the_right_to_write(
    bench: Bench, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop is no place for errors: the lease ends by itself."""
    store, backend = bench.start()
    store.take_lead("one", at())

    def fail(*_: object) -> None:
        raise StateUnavailable("connection lost")

    monkeypatch.setattr(backend, broken, fail)
    store.release_lead()
    assert store.get_lease_left_s() == float("-inf")
    with pytest.raises(Fenced):
        store.commit(Batch(at=at()))
    assert backend.dropped == (broken != "drop_lock")


def test_who_closes_leaves_the_lead_and_the_database(bench: Bench) -> None:
    (one, its), (two, _) = bench.start(), bench.start()
    one.take_lead("one", at())
    one.close()
    assert one._session._connection is None
    assert its.dropped == 1
    assert two.take_lead("two", at()) == 2


def test_what_is_handed_over_is_added_to_what_waits(bench: Bench) -> None:
    """By one who does not lead, in the order of time; part by part."""
    leader, other = bench.plain(), bench.plain()
    leader.take_lead("leader", at())
    first = Handover(alerts=(alert("/a"),), transitions=(transition(1),), ends=(outgoing("a"),))
    second = Handover(alerts=(alert("/b"),), transitions=(transition(2),), ends=(outgoing("b"),))
    for handed in (first, second):
        other.store_handover(handed)
    waits = decode_memory(leader.read_memory(HANDOVER_KEY), Handover)
    assert waits == Handover(
        alerts=(alert("/a"), alert("/b")),
        transitions=(transition(1), transition(2)),
        ends=(outgoing("a"), outgoing("b")),
    )
    leader.commit(Batch(at=at(), memory={HANDOVER_KEY: {"alerts": "of another version"}}))
    other.store_handover(second)
    assert decode_memory(leader.read_memory(HANDOVER_KEY), Handover) == second


def test_a_series_that_another_leader_forgot_begins_again(bench: Bench) -> None:
    """Its number may belong to another series by then."""
    one, two = bench.plain(), bench.plain()
    one.take_lead("one", at())
    one.commit(measured(1.0))
    one.release_lead()
    two.take_lead("two", at())
    two.prune(at(400 * DAY_S))
    two.commit(measured(7.0, at(400 * DAY_S), name="other"))
    two.release_lead()
    one.take_lead("one", at())
    one.commit(measured(2.0, at(401 * DAY_S)))
    assert (values(two), values(two, "other")) == ([2.0], [7.0])


def test_a_series_of_a_write_that_failed_begins_with_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database took its number back."""
    store, other = bench.plain(), bench.plain()
    store.take_lead("one", at())
    write = store._history.write_values

    def fail(*given: object) -> None:
        write(*given)  # type: ignore[arg-type]
        raise StateUnavailable("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(store._history, "write_values", fail)
        with pytest.raises(StateUnavailable):
            store.commit(measured(1.0))
    store.commit(measured(2.0, name="other"))
    store.commit(measured(3.0))
    assert (values(other), values(other, "other")) == ([3.0], [2.0])


def test_notices_are_told_once(bench: Bench) -> None:
    """What was set aside, by the lead that found it."""
    store = bench.plain()
    store.take_lead("one", at())
    store.commit(Batch(at=at(), alerts=(alert(),)))
    with store._session.write_transaction() as connection:
        connection.run(Statement("UPDATE alerts SET body = 'odd'"))
    store.take_lead("one", at())
    store.take_lead("one", at())
    (notice,) = store.take_notices()
    assert "alert" in notice
    assert store.take_notices() == ()


def test_the_newest_hundred_transitions_are_read_where_no_number_is_said(bench: Bench) -> None:
    store = bench.plain()
    store.take_lead("one", at())
    store.commit(Batch(at=at(), transitions=tuple(transition(n) for n in range(101))))
    assert [t.summary for t in store.read_transitions()] == [
        f"number {n}" for n in range(100, 0, -1)
    ]


def test_opening_reads_the_state(bench: Bench) -> None:
    """So a fault is found at the start and not at the first alert."""
    (bench.directory / "sentinel.db").write_text("this was a state once")
    with pytest.raises(StateDamaged):
        bench.plain().open_database()
