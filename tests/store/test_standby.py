"""What a sentinel does that loses the database of a lease: alone it goes on, beside others it stops."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Ack, Remark, Silence
from sentinel.core.errors import Fenced, StoreBusy
from sentinel.core.model import Batch
from sentinel.proc.threads import BoundedWorker
from sentinel.store import failover, lease, sql
from sentinel.store.buffered import BufferedStore
from sentinel.store.errors import StateUnavailable
from sentinel.store.failover import RETRY_SPACING_S
from sentinel.store.memory import MemoryStore
from sentinel.store.retention import DAY_S
from sentinel.store.spare_journals import SpareJournals, make_spare_journals
from sentinel.store.sql import STANDBY_KEY
from sentinel.store.sqlite import SqliteBackend
from tests.store.flaky import Flaky
from tests.store.leased import TERM, LeasedBackend
from tests.store.nouns import alert, at, outgoing, remembered, summaries, told
from tests.store.ticking import Ticking


class Bench:
    """Sentinels on one state, each with a journal of its own: on hosts of their own."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.directory, self.clock, self.patch = directory, Ticking(), patch
        self.opened: list[BufferedStore] = []

    def start(self, host: str, *, leased: bool = True) -> tuple[BufferedStore, Flaky]:
        state = self.directory / "state"
        backend = (
            LeasedBackend(state, self.clock) if leased else SqliteBackend(str(state), local=True)
        )
        primary = Flaky(backend)
        self.patch.setattr(failover, "get_host_name", lambda: host)
        store = BufferedStore(
            primary, MemoryStore(), monotonic=self.clock, spare=self.journals(host)
        )
        self.opened.append(store)
        return store, primary

    def journals(self, host: str) -> SpareJournals:
        folder = self.directory / host
        folder.mkdir(exist_ok=True)
        return make_spare_journals("state", str(folder), beside=None, patience=0)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = Bench(tmp_path, monkeypatch)
    for module in (lease, sql):
        monkeypatch.setattr(module, "read_boot_clock", bench.clock)
    yield bench
    for store in bench.opened:
        store.close()


def lose(primary: Flaky) -> None:
    primary.away = primary.broken = "connection lost"


def test_who_was_alone_for_a_day_goes_on_without_the_server(bench: Bench) -> None:
    """And who was not counts on its lease alone: another may lead by then."""
    one, primary = bench.start("h1")
    one.take_lead("sentinel on host h1", at())
    assert one.get_lease_left_s() == 0.9 * TERM, "while the server answers, the lease counts"
    lose(primary)
    one.commit(told("a"))
    assert one.get_lease_left_s() == float("inf")


@pytest.mark.parametrize(("days", "alone"), [(0, False), (1, False), (1.001, True), (-1.001, True)])
def test_another_is_remembered_for_a_day(bench: Bench, days: float, alone: bool) -> None:
    """One that stood by, as the database has it."""
    one, primary = bench.start("h1")
    one.take_lead("sentinel on host h1", at(2 * DAY_S))
    primary.commit(
        Batch(at=at(), memory={STANDBY_KEY: {"at": at((2 - days) * DAY_S).wall, "node": "h1"}})
    )
    one.renew_lease()
    lose(primary)
    one.commit(Batch(at=at(2 * DAY_S)))
    left = one.get_lease_left_s()
    assert left == (float("inf") if alone else 0.9 * TERM)


def test_a_leader_of_another_host_stands_by_from_then_on(bench: Bench) -> None:
    """It led a moment ago, so it may lead again. Of the same host it is the service that was
    started again."""
    one, _ = bench.start("h1")
    one.take_lead("sentinel on host h1, pid 1", at())
    assert one.read_memory(STANDBY_KEY) == {"at": 0, "node": "h1"}
    one.release_lead()
    again, _ = bench.start("h1")
    again.take_lead("sentinel on host h1, pid 2", at(1))
    assert again.read_memory(STANDBY_KEY) == {"at": 0, "node": "h1"}
    again.release_lead()
    two, primary = bench.start("h2")
    two.take_lead("sentinel on host h2, pid 1", at(5))
    assert two.read_memory(STANDBY_KEY) == {"at": at(5).wall, "node": "h2"}
    lose(primary)
    two.commit(Batch(at=at(5)))
    assert two.get_lease_left_s() == 0.9 * TERM


def test_a_state_without_a_lease_has_no_note_of_others(bench: Bench) -> None:
    one, primary = bench.start("h1", leased=False)
    one.take_lead("sentinel on host h1", at())
    one.renew_lease()
    assert one.read_memory(STANDBY_KEY) == {}
    assert one.get_lease_left_s() == float("inf")
    lose(primary)
    one.commit(told("a"))
    assert summaries(one.read_outbox()) == ["a"]


def test_nobody_begins_without_the_server_where_others_may_lead(bench: Bench) -> None:
    """Unless its own journal says that it was alone."""
    one, primary = bench.start("h1")
    lose(primary)
    with pytest.raises(StateUnavailable, match="connection lost"):
        one.take_lead("sentinel on host h1", at())
    with pytest.raises(Fenced, match="this sentinel does not lead"):
        one.commit(told("unheard"))
    two, primary = bench.start("h2")
    two.take_lead("sentinel on host h2", at())
    lose(primary)
    two.commit(told("kept"))
    two.close()
    again, primary = bench.start("h2")
    lose(primary)
    assert again.take_lead("sentinel on host h2", at(1)) == 0
    assert summaries(again.read_outbox()) == ["kept"]


def test_who_has_no_lock_beside_its_journal_does_not_begin(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of the state is out of reach, and nothing else shows that nobody leads."""
    store, primary = bench.start("h1", leased=False)
    lose(primary)

    def refuse(*_: object) -> None:
        raise StateUnavailable("this file system has no locks")

    with monkeypatch.context() as patched:
        patched.setattr(SpareJournals, "lock_spare", refuse)
        with pytest.raises(StateUnavailable, match="connection lost; this file system has no"):
            store.take_lead("sentinel on host h1", at())
    other = bench.journals("h1")
    other.lock_spare(lease.Lease("other", at().wall))
    with pytest.raises(StoreBusy, match="another sentinel leads: other since"):
        store.take_lead("sentinel on host h1", at())
    other.unlock_spare()
    assert store.take_lead("sentinel on host h1", at()) == 0


def test_a_renewal_that_fails_is_an_error_once_and_a_trouble_from_then_on(bench: Bench) -> None:
    """The lease was not prolonged, and whoever counts on it must know."""
    one, primary = bench.start("h1")
    with pytest.raises(Fenced):
        one.renew_lease()
    one.take_lead("sentinel on host h1", at())
    lose(primary)
    with pytest.raises(StateUnavailable, match="connection lost"):
        one.renew_lease()
    assert one.trouble
    one.renew_lease()
    assert primary.renewals == 1
    primary.away = primary.broken = ""
    bench.clock.advance(RETRY_SPACING_S)
    one.renew_lease()
    assert primary.renewals == 2
    assert not one.trouble


def test_what_hangs_is_a_trouble_and_no_standstill(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = bench.start("h1")
    one.take_lead("sentinel on host h1", at())

    def hang(*_: object) -> None:
        raise TimeoutError(110, "no answer for 20 s")

    monkeypatch.setattr(BoundedWorker, "do_within", hang)
    one.commit(told("a"))
    assert one.trouble
    assert one.trouble.why == "the state hangs: no answer for 20 s"
    assert summaries(one.read_outbox()) == ["a"]
    monkeypatch.undo()


def test_a_write_is_durable_in_the_state_or_in_a_journal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without either it is known to this process alone, and that is said."""
    one, primary = bench.start("h1", leased=False)
    one.take_lead("sentinel on host h1", at())
    assert (one.trouble, one.is_durable) == (None, True)
    primary.broken = "no space left"
    with pytest.raises(StateUnavailable, match="no space left"):
        one.renew_lease()
    assert one.trouble
    assert (one.is_durable, one.trouble.kept_in) == (True, "")  # nothing waits yet
    with monkeypatch.context() as patched:
        patched.setattr(SpareJournals, "begin_journal", lambda *_: False)
        one.commit(told("a"))
        assert one.trouble
        assert (one.is_durable, one.trouble.kept_in) == (False, "")
    one.commit(told("b"))
    assert one.is_durable
    assert one.trouble.kept_in.startswith(str(bench.directory / "h1"))


def test_a_copy_for_the_next_is_made_at_the_start_and_after_a_change(bench: Bench) -> None:
    """Not for what no message is about: it would be written with every pass."""

    def copied() -> list[str]:
        kept = bench.journals("h1").read_newest()
        assert kept is not None
        assert kept.begin.shadow
        return [a.summary for a in kept.begin.snapshot.alerts]

    one, _ = bench.start("h1", leased=False)
    one.take_lead("sentinel on host h1", at())
    assert copied() == []
    one.commit(remembered(1))
    one.release_lead()
    one.take_lead("sentinel on host h1", at())
    one.commit(Batch(at=at(), alerts=(alert(),)))
    assert copied() == []
    one.release_lead()
    assert copied() == [alert().summary]
    one.take_lead("sentinel on host h1", at())
    one.commit(Batch(at=at(), closed=(alert().key,)))
    one.release_lead()
    assert copied() == []
    one.take_lead("sentinel on host h1", at())
    one.commit(Batch(at=at(), outbox=(outgoing("x"),)))
    (row,) = one.read_outbox()
    one.release_lead()
    kept = bench.journals("h1").read_newest()
    assert kept is not None
    assert summaries(list(kept.begin.snapshot.outbox)) == ["x"]
    one.take_lead("sentinel on host h1", at())
    one.dropped([row], at(), "no such user")
    one.release_lead()
    kept = bench.journals("h1").read_newest()
    assert kept is not None
    assert kept.begin.snapshot.outbox == ()


@pytest.mark.parametrize("limit", [100, 1])
def test_a_journal_that_began_late_brings_what_came_before_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Its first writes had no place, or were more than are kept; the state at its beginning has them."""
    one, primary = bench.start("h1", leased=False)
    one._pair._limit = limit
    one.take_lead("sentinel on host h1", at())
    primary.broken = "no space left"
    with monkeypatch.context() as patched:
        patched.setattr(SpareJournals, "begin_journal", lambda *_: False)
        one.commit(told("early"))
        one.commit(told("then"))
    one.commit(told("late"))
    primary.release_lead()  # a killed process lets go of both locks
    one._pair._spare.unlock_spare()
    two, _ = bench.start("h1", leased=False)
    two.take_lead("sentinel on host h1", at(1))
    assert two.trouble is None
    assert summaries(two.read_outbox()) == ["early", "then", "late"]


def test_nothing_is_lost_of_too_many_writes_that_a_journal_has(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, primary = bench.start("h1", leased=False)
    one._pair._limit = 3
    one.take_lead("sentinel on host h1", at())
    primary.broken = "no space left"
    for number in range(5):
        one.commit(remembered(number))
    assert one.trouble
    assert (one.trouble.lost_detail, one.trouble.waiting) == (False, 0)


def test_orders_of_people_are_known_where_the_state_is_gone(bench: Bench) -> None:
    """As the journal has them: a silence goes on through an outage and a restart in it."""
    silence = Silence(id="s1", match=Match(), starts=0, ends=at(100).wall)
    ack, remark = Ack(alert="a", at=at()), Remark(incident="i", deed="comment", at=at(), who="bob")
    one, primary = bench.start("h1", leased=False)
    one.take_lead("sentinel on host h1", at())
    one.put_silence(silence)
    one.put_ack(ack)
    one.put_remark(remark)
    known = one.read_orders()
    lose(primary)
    one.commit(told("a"))
    one.close()
    two, primary = bench.start("h1", leased=False)
    lose(primary)
    assert two.take_lead("sentinel on host h1", at(1)) == 0
    assert two.read_orders() == known
    assert (known.silences, known.acks, known.remarks) == ((silence,), {"a": ack}, (remark,))
