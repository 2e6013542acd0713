"""Who leads, and what reaches the state in the end, when the state fails and comes back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.alerting.handover import HANDOVER_KEY
from sentinel.core.clock import Instant
from sentinel.core.errors import Fenced, StoreBusy
from sentinel.core.model import Batch, Receipt
from sentinel.store.buffered import BufferedStore
from sentinel.store.errors import StateUnavailable
from sentinel.store.failover import RETRY_SPACING_S
from sentinel.store.lease import Lease
from sentinel.store.memory import MemoryStore
from sentinel.store.spare_journals import SpareJournals, make_spare_journals
from sentinel.store.sqlite import SqliteBackend
from tests.store.flaky import Flaky
from tests.store.nouns import alert, at, outgoing, remembered, summaries, told
from tests.store.places import SqlitePlace
from tests.store.ticking import Ticking


class Sentinel:
    """One process: its store, and the primary that can fail."""

    def __init__(self, state: Path) -> None:
        self.primary = Flaky(SqliteBackend(str(state)))
        self.clock = Ticking()
        self.spare = spare_places(state)
        self.store = BufferedStore(
            self.primary, MemoryStore(), monotonic=self.clock, spare=self.spare
        )

    def lose_state(self) -> None:
        """Neither the database nor the lock beside it can be reached."""
        self.primary.away = self.primary.broken = "the disk is gone"

    def mend(self) -> None:
        self.primary.away = self.primary.broken = ""
        self.clock.advance(RETRY_SPACING_S)


def spare_places(state: Path) -> SpareJournals:
    """Those of this host that are not on the disk of the state."""
    return make_spare_journals(str(state), beside=None, patience=0)


Start = Callable[[], Sentinel]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "state"


@pytest.fixture
def start(state: Path) -> Iterator[Start]:
    """Starts another sentinel on the same state and the same host."""
    started: list[Sentinel] = []

    def start() -> Sentinel:
        started.append(Sentinel(state))
        return started[-1]

    yield start
    for sentinel in started:
        sentinel.store.close()


@pytest.fixture
def recorded(state: Path) -> Iterator[SqlitePlace]:
    """The state as another process reads it."""
    place = SqlitePlace(state)
    yield place
    place.close()


def test_renewing_writes_what_waits(start: Start, recorded: SqlitePlace) -> None:
    """Between two passes nothing else may try to write again for a long time."""
    one = start()
    one.store.take_lead("one", at())
    one.primary.broken = "no space left"
    one.store.commit(Batch(at=at(), alerts=(alert(),), outbox=(outgoing("waits"),)))
    one.mend()
    one.store.renew_lease()
    assert one.store.trouble is None
    other = recorded.open()
    assert (other.read_alerts(), summaries(other.read_outbox())) == ([alert()], ["waits"])


def test_renewing_leaves_a_state_alone_that_has_just_failed(start: Start) -> None:
    """Each attempt may cost a connect time-out; the trouble is known, so it is no error again."""
    one = start()
    one.store.take_lead("one", at())
    one.primary.broken = "connection lost"
    one.store.commit(told("waits"))
    asked = one.primary.renewals
    one.store.renew_lease()
    assert one.primary.renewals == asked
    assert one.store.trouble


def test_who_keeps_a_journal_is_the_only_leader(start: Start, state: Path) -> None:
    """A second sentinel that does not see the lock of the state must not lead beside it."""
    one, two = start(), start()
    one.store.take_lead("one", at())
    one.primary.broken = "no space left"
    one.store.commit(told("kept"))
    two.lose_state()
    with pytest.raises(StoreBusy, match="another sentinel leads: one since"):
        two.store.take_lead("two", at())
    one.store.close()
    assert two.store.take_lead("two", at()) == 0


def test_a_leader_stops_where_another_keeps_the_journal(start: Start) -> None:
    """It has the lock of the state that came back; the other did not hear of that yet."""
    one, two = start(), start()
    one.lose_state()
    one.store.take_lead("one", at())
    one.store.commit(told("from one"))
    two.store.take_lead("two", at())
    two.primary.broken = "no space left"
    with pytest.raises(Fenced, match="another sentinel leads: one since"):
        two.store.commit(told("from two"))


@pytest.mark.parametrize("at_work", [True, False])
def test_a_journal_that_is_still_written_is_not_handed_over(
    start: Start, state: Path, recorded: SqlitePlace, at_work: bool
) -> None:
    """Its writer is at work: who cannot lead either leaves it and what it holds alone. Of a dead one
    it is handed over once, and the lock is free again."""
    one, leader, late = start(), start(), start()
    one.store.take_lead("one", at())
    one.primary.broken = "no space left"
    one.store.commit(told("kept"))
    one.primary.release_lead()
    if not at_work:
        one.spare.unlock_spare()
    for _ in range(2):  # nobody's journal follows the second number
        leader.primary.take_lead("leader", at())
    with pytest.raises(StoreBusy, match="another sentinel leads: leader since"):
        late.store.take_lead("late", at())
    assert (recorded.open().read_memory(HANDOVER_KEY) == {}) is at_work
    kept = spare_places(state).read_newest()
    assert (kept is not None and not kept.begin.shadow) is at_work
    if not at_work:
        one.spare.lock_spare(Lease("one", at().wall))


def test_a_copy_is_not_merged_into_a_state_that_is_well(
    start: Start, recorded: SqlitePlace
) -> None:
    """It is of an earlier time: what ended since stays ended. Nor does anybody write who let go."""
    one, other = start(), start()
    one.store.take_lead("one", at())
    one.store.commit(Batch(at=at(), alerts=(alert(),)))
    one.store.release_lead()
    other.primary.take_lead("other", at(1))
    other.primary.commit(Batch(at=at(1), closed=(alert().key,)))
    other.primary.release_lead()
    one.primary.broken = "no space left"
    with pytest.raises(Fenced, match="this sentinel does not lead"):
        one.store.commit(told("late"))
    one.mend()
    one.store.take_lead("one", at(2))
    there = recorded.open()
    assert (there.read_alerts(), there.read_memory(HANDOVER_KEY)) == ([], {})


def test_a_journal_that_replaced_a_full_one_brings_all_that_was_known(
    start: Start, tmp_path: Path, recorded: SqlitePlace
) -> None:
    """Its records begin in the middle, so the state is written as a whole, not by them alone."""
    one, two = start(), start()
    one.store.take_lead("one", at())
    one.primary.broken = "no space left"
    one.store.commit(Batch(at=at(), alerts=(alert(),), outbox=(outgoing("early"),)))
    for check in ("a", "b"):
        one.store.commit(remembered("x" * (5 << 20), check))
    one.store.commit(told("late"))
    journal = one.store.trouble
    assert journal
    assert str(tmp_path / "run") not in journal.kept_in  # that one is full
    one.primary.release_lead()  # a killed process lets go of both locks
    one.spare.unlock_spare()
    two.store.take_lead("two", at(1))
    other = recorded.open()
    assert other.read_alerts() == [alert()]
    assert summaries(other.read_outbox()) == ["early", "late"]


def dies(one: Sentinel) -> None:
    """A killed process lets go of both locks."""
    one.primary.release_lead()
    one.spare.unlock_spare()


def test_the_next_leader_knows_what_the_state_has_when_it_fails(start: Start) -> None:
    """It has read it at its start; so a state that fails then hides no alert."""
    one, two = start(), start()
    assert one.store.take_lead("one", at()) == 1
    one.store.commit(Batch(at=at(), alerts=(alert(),)))
    dies(one)
    assert two.store.take_lead("two", at(1)) == 2
    two.lose_state()
    two.store.commit(told("late"))
    assert two.store.read_alerts() == [alert()]


def test_a_damaged_state_is_made_anew_with_the_alerts_of_its_copy(
    start: Start, state: Path
) -> None:
    """They keep their ids, so their ends are told."""
    one = start()
    one.store.take_lead("one", at())
    one.store.commit(Batch(at=at(), alerts=(alert(),), outbox=(outgoing("waits"),)))
    one.store.close()
    for path in state.glob("*.db*"):
        path.write_bytes(b"damaged" * 1000)
    two = start()
    two.store.take_lead("two", at(1))
    assert two.primary.read_alerts() == [alert()]
    assert summaries(two.primary.read_outbox()) == ["waits"]


def test_what_others_led_since_gets_the_alerts_and_not_the_messages(
    start: Start, state: Path, recorded: SqlitePlace
) -> None:
    """They have seen the rest. What was sent during the outage is not sent again."""
    one, leader, two = start(), start(), start()
    one.store.take_lead("one", at())
    rows = [outgoing("early"), outgoing("stays")]
    rows[1] = replace(rows[1], notification=replace(rows[1].notification, key="another"))
    one.store.commit(Batch(at=at(), outbox=tuple(rows)))
    one.primary.broken = "no space left"
    one.store.commit(Batch(at=at(), alerts=(alert(),), outbox=(outgoing("late"),)))
    early = one.store.read_outbox()[0]
    one.store.sent([early], at(), Receipt("250 ok"))
    dies(one)
    for _ in range(2):
        leader.primary.take_lead("leader", at(1))
    leader.primary.release_lead()
    two.store.take_lead("two", at(2))
    other = recorded.open()
    assert other.read_memory(HANDOVER_KEY) != {}
    assert summaries(other.read_outbox()) == ["stays"]
    kept = spare_places(state).read_newest()
    assert kept is not None
    assert kept.begin.shadow  # the journal is gone


@pytest.mark.parametrize("is_copy", [True, False])
def test_who_begins_alone_writes_a_journal_of_its_own(start: Start, is_copy: bool) -> None:
    """Not into the copy of an earlier process, nor into a journal that others led after: it would be
    lost with them."""
    one, other, two, three = start(), start(), start(), start()
    one.store.take_lead("one", at())
    one.store.commit(Batch(at=at(), alerts=(alert(),)))
    if is_copy:
        one.store.close()
    else:
        one.primary.broken = "the disk is full"
        one.store.commit(told("kept"))
        dies(one)
        for _ in range(2):
            other.primary.take_lead("other", at(1))
        other.primary.release_lead()

    def refuse(*_: object) -> int:
        raise StateUnavailable("the disk is full")

    two.primary.take_lead = refuse  # type: ignore[method-assign]
    two.primary.broken = "the disk is full"
    assert two.store.take_lead("two", at(1)) == 0
    two.store.commit(told("late"))
    dies(two)
    three.store.take_lead("three", at(2))
    assert summaries(three.primary.read_outbox()) == ["late"]
    assert three.primary.read_alerts() == [alert()]


class Killed(BaseException):
    """Nothing of ours runs after it."""


def test_who_was_killed_right_after_it_led_did_not_lead_as_another(start: Start) -> None:
    """The number is in the journal before: so the next one still writes what waits there."""
    earlier, one, two, three = start(), start(), start(), start()
    for _ in range(2):
        earlier.primary.take_lead("earlier", at())
    earlier.primary.release_lead()
    one.store.take_lead("one", at())
    one.primary.broken = "no space left"
    one.store.commit(told("kept"))
    dies(one)
    lead = two.primary.take_lead

    def lead_and_die(holder: str, now: Instant) -> int:
        lead(holder, now)
        raise Killed

    two.primary.take_lead = lead_and_die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        two.store.take_lead("two", at(1))
    dies(two)
    three.store.take_lead("three", at(2))
    assert summaries(three.primary.read_outbox()) == ["kept"]


def test_what_waits_is_not_added_to_a_journal_that_the_state_has(start: Start) -> None:
    """Its writer was killed before it removed it. The next one would pass over what is added."""
    one, two, three = start(), start(), start()
    one.store.take_lead("one", at())
    one.primary.broken = "no space left"
    one.store.commit(told("early"))
    one.mend()

    def die() -> None:
        raise Killed

    one.spare.remove_journals = die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        one.store.renew_lease()
    dies(one)
    two.store.take_lead("two", at(1))
    two.primary.broken = "no space left"
    two.store.commit(told("late"))
    dies(two)
    three.store.take_lead("three", at(2))
    assert summaries(three.primary.read_outbox()) == ["early", "late"]


def test_what_began_from_a_copy_alone_is_kept_unless_others_ran_since(start: Start) -> None:
    """The number in the copy may be an old one, so the runs decide."""
    earlier, one, two, three = start(), start(), start(), start()
    for _ in range(20):
        earlier.primary.take_lead("earlier", at())
    earlier.primary.release_lead()
    one.store.take_lead("one", at())
    one.store.commit(Batch(at=at(), alerts=(alert(),)))
    one.store.close()
    two.lose_state()
    assert two.store.take_lead("two", at(1)) == 0
    two.store.commit(told("late"))
    dies(two)
    three.store.take_lead("three", at(2))
    assert summaries(three.primary.read_outbox()) == ["late"]


def test_at_the_end_a_copy_is_written_again_only_after_a_change(start: Start, state: Path) -> None:
    def written() -> list[int]:
        files = [path for path in (state.parent / "run").rglob("*") if path.is_file()]
        return [path.stat().st_mtime_ns for path in files if not path.name.endswith(".lock")]

    for is_changed in (False, True):
        one = start()
        one.store.take_lead("one", at())
        before = written()
        if is_changed:
            one.store.commit(told("a"))
        one.store.release_lead()
        assert (written() != before) is is_changed
        assert before
