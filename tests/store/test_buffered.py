"""What Buffered does while its primary fails; each failure is told by a primary that can."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.core.errors import Fenced
from sentinel.core.model import Batch, Receipt
from sentinel.store.buffered import BufferedStore
from sentinel.store.errors import StateUnavailable, Unstorable
from sentinel.store.failover import RETRY_SPACING_S
from sentinel.store.memory import MemoryStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.flaky import Flaky
from tests.store.nouns import (
    alert,
    at,
    key,
    measured,
    outgoing,
    remembered,
    summaries,
    told,
    transition,
)
from tests.store.places import SqlitePlace
from tests.store.ticking import Ticking

OK = Receipt("250 ok")


class Bench:
    """A Buffered, its flaky primary, its clock, and the state as others read it."""

    def __init__(self, directory: Path, limit: int = 1000) -> None:
        self.place = SqlitePlace(directory)
        self.primary = Flaky(SqliteBackend(str(directory)))
        self.clock = Ticking()
        self.mirror = MemoryStore()
        self.store = BufferedStore(self.primary, self.mirror, limit=limit, monotonic=self.clock)
        self.store.take_lead("test", at())

    def break_(self, why: str = "no space left") -> None:
        self.primary.broken = why

    def mend(self) -> None:
        self.primary.broken = ""
        self.clock.advance(RETRY_SPACING_S)

    def close(self) -> None:
        self.store.close()
        self.place.close()


@pytest.fixture
def bench(tmp_path: Path):  # type: ignore[no-untyped-def]
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def test_trouble_says_since_when_and_why(bench: Bench) -> None:
    """The first failure dates it, the last one explains it, each write counts."""
    assert bench.store.trouble is None
    bench.break_("no space left")
    bench.store.commit(Batch(at=at(10)))
    bench.clock.advance(RETRY_SPACING_S)
    bench.break_("disk I/O error")
    bench.store.commit(Batch(at=at(20)))
    trouble = bench.store.trouble
    assert trouble
    assert (trouble.since, trouble.why) == (at(10), "disk I/O error")
    assert (trouble.waiting, trouble.lost_detail) == (2, False)


def test_reads_come_from_the_mirror_meanwhile(bench: Bench) -> None:
    """Old and new; nothing of the old state is forgotten because the primary is silent."""
    bench.store.commit(Batch(at=at(), alerts=(alert("/old"),), memory={"m": {"x": 1}}))
    bench.store.commit(Batch(at=at(), outbox=(outgoing("old"),), transitions=(transition(1),)))
    bench.break_()
    bench.store.commit(Batch(at=at(), alerts=(alert("/new"),), transitions=(transition(2),)))
    assert [a.key.subject for a in bench.store.read_alerts()] == ["/old", "/new"]
    assert bench.store.read_memory("m") == {"x": 1}
    assert summaries(bench.store.read_outbox()) == ["old"]
    assert [t.id for t in bench.store.read_transitions()] == ["transition-2", "transition-1"]


def test_a_read_that_fails_is_answered_by_the_mirror(bench: Bench) -> None:
    """A leader keeps its view where the primary cannot be read."""
    bench.store.commit(Batch(at=at(5), alerts=(alert(),)))
    bench.break_("connection lost")
    assert bench.store.read_alerts() == [alert()]
    assert bench.store.trouble
    assert bench.store.trouble.since == at(5)


def test_who_does_not_lead_has_no_mirror_to_read(tmp_path: Path) -> None:
    """A failed query is never an empty result."""
    primary = Flaky(SqliteBackend(str(tmp_path)))
    store = BufferedStore(primary, MemoryStore())
    primary.broken = "connection lost"
    with pytest.raises(StateUnavailable, match="connection lost"):
        store.read_alerts()
    store.close()


def test_writes_are_repeated_in_order(bench: Bench) -> None:
    """The last one wins, as if nothing had happened."""
    bench.break_()
    for number in range(5):
        bench.store.commit(remembered(number))
        bench.store.commit(told(str(number)))
    bench.mend()
    bench.store.commit(told("after"))
    assert bench.store.trouble is None
    other = bench.place.open()
    assert other.read_memory("fs") == {"value": 4}
    assert summaries(other.read_outbox()) == ["0", "1", "2", "3", "4", "after"]


def test_attempts_are_spaced(bench: Bench) -> None:
    """Each may cost a connect timeout: not one of them per write."""
    bench.break_()
    bench.store.commit(told("a"))
    bench.primary.broken = ""
    bench.clock.advance(RETRY_SPACING_S - 0.1)
    bench.store.commit(told("b"))
    assert bench.store.trouble
    bench.clock.advance(0.1)
    assert bench.store.write_pending()
    assert summaries(bench.place.open().read_outbox()) == ["a", "b"]


def test_a_failure_in_the_middle_of_repeating_costs_nothing(bench: Bench) -> None:
    """What was repeated is not repeated again, the rest waits on."""
    bench.break_()
    for number in range(4):
        bench.store.commit(Batch(at=at(number), outbox=(outgoing(str(number)),)))
        bench.store.commit(measured(float(number), at(number)))
    bench.primary.after = 5
    bench.clock.advance(RETRY_SPACING_S)
    assert not bench.store.write_pending()
    assert bench.store.trouble
    assert bench.store.trouble.waiting == 3
    assert summaries(bench.store.read_outbox()) == ["0", "1", "2", "3"]
    bench.mend()
    assert bench.store.write_pending()
    assert summaries(bench.place.open().read_outbox()) == ["0", "1", "2", "3"]
    assert [v for _, v in bench.store.read_samples("fs", "/scratch", "used", 0)] == [0, 1, 2, 3]


def test_a_commit_whose_answer_was_lost_is_not_doubled(bench: Bench) -> None:
    """Written or not: nobody knows, and the second time changes nothing."""
    bench.break_("connection lost")
    bench.primary.late = True
    bench.store.commit(
        Batch(at=at(), outbox=(outgoing("once"),), transitions=(transition(),), alerts=(alert(),))
    )
    bench.primary.late = False
    assert bench.store.trouble
    bench.mend()
    bench.store.commit(told("after"))
    other = bench.place.open()
    assert summaries(other.read_outbox()) == ["once", "after"]
    assert other.read_transitions() == [transition()]


def test_what_was_sent_meanwhile_is_not_sent_again(bench: Bench) -> None:
    """Rows of before and of meanwhile; their receipts are written later."""
    bench.store.commit(told("before"))
    bench.break_()
    bench.store.commit(told("during"))
    rows = bench.store.read_outbox()
    bench.store.sent(rows, at(5), OK)
    assert bench.store.read_outbox() == []
    bench.mend()
    assert bench.store.write_pending()
    other = bench.place.open()
    assert other.read_outbox() == []
    assert [(when, text) for _, when, text in other.read_deliveries("alert-/scratch")] == [
        (at(5), "250 ok"),
        (at(5), "250 ok"),
    ]


def test_samples_of_before_and_meanwhile_are_one_history(bench: Bench) -> None:
    """A disk that fills up is when its history counts."""
    bench.store.commit(measured(1.0, at(1)))
    bench.break_()
    bench.store.commit(measured(2.0, at(2)))
    assert bench.store.read_samples("fs", "/scratch", "used", 0) == [(at(2), 2.0)]
    bench.store.commit(measured(3.0, at(3)))
    bench.mend()
    assert bench.store.write_pending()
    assert [v for _, v in bench.store.read_samples("fs", "/scratch", "used", 0)] == [1.0, 2.0, 3.0]
    assert bench.mirror.read_samples("fs", "/scratch", "used", 0) == []


def test_a_primary_that_cannot_be_read_is_asked_once(bench: Bench) -> None:
    """Each attempt may cost a connect timeout, and each check reads its history."""
    bench.store.read_samples("fs", "/scratch", "used", 0)
    assert bench.primary.asked == 1  # nor one that can be read twice
    bench.break_("connection lost")
    bench.store.commit(Batch(at=at()))
    for _ in range(3):
        bench.store.read_samples("fs", "/scratch", "used", 0)
    assert bench.primary.asked == 2


def test_samples_of_before_are_read_where_only_writing_fails(bench: Bench) -> None:
    """A full disk can be read."""
    bench.store.commit(measured(1.0, at(1)))
    bench.break_()
    bench.store.commit(measured(2.0, at(2)))
    bench.primary.broken = ""
    assert [v for _, v in bench.store.read_samples("fs", "/scratch", "used", 0)] == [1.0, 2.0]
    assert bench.store.trouble
    bench.mend()
    bench.store.commit(Batch(at=at(3)))
    assert not bench.store.trouble
    before = bench.primary.asked
    bench.store.read_samples("fs", "/scratch", "used", 0)
    assert bench.primary.asked == before + 1  # after the outage once again


def test_too_many_writes_keep_what_matters(tmp_path: Path) -> None:
    """Past its bound the backlog goes, and the state itself is written in the end."""
    bench = Bench(tmp_path, limit=50)
    bench.store.commit(Batch(at=at(), alerts=(alert("/gone"), alert("/stays"))))
    bench.store.commit(told("sent", "dropped", "waiting"))
    bench.break_()
    sent, dropped, _ = bench.store.read_outbox()
    bench.store.sent([sent], at(1), OK)
    bench.store.dropped([dropped], at(2), "no such user")
    bench.store.commit(Batch(at=at(), closed=(key("/gone"),), transitions=(transition(),)))
    for number in range(100):
        bench.store.commit(remembered(number))
    bench.store.commit(Batch(at=at(), alerts=(alert("/new"),), outbox=(outgoing("new"),)))
    assert bench.store.trouble
    assert bench.store.trouble.lost_detail
    bench.mend()
    assert bench.store.write_pending()
    other = bench.place.open()
    assert sorted(a.key.subject for a in other.read_alerts()) == ["/new", "/stays"]
    assert summaries(other.read_outbox()) == ["waiting", "new"]
    assert other.read_memory("fs") == {"value": 99}
    assert other.read_transitions() == [transition()]
    told_of = [(when, text) for _, when, text in other.read_deliveries("alert-/scratch")]
    assert told_of == [(at(1), "250 ok"), (None, "no such user"), (None, ""), (None, "")]
    bench.close()


@pytest.mark.parametrize(("writes", "overflowed"), [(25, False), (26, True)])
def test_the_bound_of_the_backlog(tmp_path: Path, writes: int, overflowed: bool) -> None:
    """Counted in rows and samples: a batch is one, and what it holds."""
    bench = Bench(tmp_path, limit=50)
    bench.break_()
    for number in range(writes):
        bench.store.commit(remembered(number))
    assert bench.store.trouble
    assert bench.store.trouble.lost_detail is overflowed
    bench.mend()
    bench.close()


def test_what_was_repeated_makes_room(tmp_path: Path) -> None:
    """A backlog that was worked off in part holds as much again."""
    bench = Bench(tmp_path, limit=20)
    bench.break_()
    for number in range(10):
        bench.store.commit(remembered(number))
    bench.primary.after = 9
    bench.clock.advance(RETRY_SPACING_S)
    assert not bench.store.write_pending()
    for number in range(9):
        bench.store.commit(remembered(number))
    assert bench.store.trouble
    assert (bench.store.trouble.waiting, bench.store.trouble.lost_detail) == (10, False)
    bench.mend()
    bench.close()


def test_fenced_is_never_buffered(bench: Bench) -> None:
    """Neither at the write nor when it is repeated: who was overtaken stops."""
    bench.break_()
    bench.store.commit(told("a"))
    bench.place.usurp()
    bench.mend()
    with pytest.raises(Fenced):
        bench.store.commit(told("b"))
    assert bench.place.open().read_outbox() == []


def test_what_cannot_be_stored_is_refused_at_once(bench: Bench) -> None:
    """Else it would stand in the way of all that waits behind it."""
    bench.break_()
    with pytest.raises(Unstorable):
        bench.store.commit(remembered(object()))
    bench.store.commit(told("good"))
    bench.mend()
    assert bench.store.write_pending()
    assert summaries(bench.place.open().read_outbox()) == ["good"]


def test_what_became_of_a_row_is_refused_at_once_too(bench: Bench) -> None:
    """A channel's words of another type must not hold up all that waits behind them."""
    bench.store.commit(told("a"))
    bench.break_()
    (row,) = bench.store.read_outbox()
    with pytest.raises(Unstorable):
        bench.store.failed([replace(row, error=5)])
    with pytest.raises(Unstorable):
        bench.store.dropped([row], at(), 5)  # type: ignore[arg-type]
    bench.store.commit(told("good"))
    bench.mend()
    assert bench.store.write_pending()
    assert summaries(bench.place.open().read_outbox()) == ["a", "good"]


def test_closing_writes_what_waits(tmp_path: Path) -> None:
    """A stop right after the trouble ended loses nothing, whatever the spacing."""
    bench = Bench(tmp_path)
    bench.break_()
    bench.store.commit(told("a"))
    bench.primary.broken = ""
    bench.close()
    assert summaries(SqlitePlace(tmp_path).open().read_outbox()) == ["a"]


@pytest.mark.parametrize("limit", [1000, 3], ids=["repeated", "restored"])
def test_a_start_without_a_readable_state_hides_nothing(tmp_path: Path, limit: int) -> None:
    """What only the state knew is there again beside what came meanwhile, each row its own."""
    earlier = Bench(tmp_path)
    earlier.store.commit(
        Batch(at=at(), alerts=(alert("/old"),), outbox=(outgoing("a"), outgoing("b")))
    )
    earlier.close()
    (tmp_path / "sentinel.db").rename(tmp_path / "elsewhere")
    (tmp_path / "sentinel.db").mkdir()
    bench = Bench(tmp_path, limit)
    assert bench.store.trouble
    bench.store.commit(Batch(at=at(), alerts=(alert("/new"),), outbox=(outgoing("c"),)))
    bench.store.commit(Batch(at=at(), outbox=(outgoing("d"),)))
    bench.store.sent(bench.store.read_outbox()[:1], at(1), OK)
    (tmp_path / "sentinel.db").rmdir()
    (tmp_path / "elsewhere").rename(tmp_path / "sentinel.db")
    bench.mend()
    assert bench.store.write_pending()
    assert sorted(a.key.subject for a in bench.store.read_alerts()) == ["/new", "/old"]
    assert summaries(bench.store.read_outbox()) == ["a", "b", "d"]
    bench.close()
