"""A disk that is really full: watching goes on and nothing is lost."""

import subprocess
from pathlib import Path

import pytest

from sentinel.core.model import Batch, Receipt
from sentinel.store.buffered import BufferedStore
from sentinel.store.errors import StateUnavailable
from sentinel.store.failover import RETRY_SPACING_S
from sentinel.store.memory import MemoryStore
from sentinel.store.opening import open_store
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.store.disk import Disk
from tests.store.nouns import alert, at, key, measured, outgoing, remembered, summaries, told
from tests.store.ticking import Ticking

OK = Receipt("250 ok")


def buffered(state: Path, clock: Ticking) -> BufferedStore:
    return BufferedStore(SqlStore(SqliteBackend(str(state))), MemoryStore(), monotonic=clock)


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def state(disk: Disk) -> Path:
    disk.state.mkdir()
    return disk.state


def test_the_database_says_that_the_disk_is_full(disk: Disk, state: Path) -> None:
    """Unavailable, with the place and the reason; what is stored can still be read."""
    store = SqlStore(SqliteBackend(str(state)))
    store.take_lead("test", at())
    store.commit(told("before"))
    disk.fill()
    with pytest.raises(StateUnavailable, match=r"sentinel\.db: .*(full|I/O)"):
        store.commit(remembered("x" * 100_000))
    assert summaries(store.read_outbox()) == ["before"]
    store.close()


def test_watching_goes_on_and_is_written_when_there_is_room(
    disk: Disk, state: Path, clock: Ticking
) -> None:
    """All that was written meanwhile is read at once, and is on disk in the end."""
    store = buffered(state, clock)
    store.take_lead("test", at())
    store.commit(Batch(at=at(), alerts=(alert("/old"),), outbox=(outgoing("before"),)))
    disk.fill()
    store.commit(Batch(at=at(1), memory={"big": {"x": "y" * 100_000}}, closed=(key("/old"),)))
    store.commit(Batch(at=at(2), alerts=(alert("/new"),), outbox=(outgoing("during"),)))
    store.sent(store.read_outbox()[:1], at(3), OK)
    store.commit(measured(1.0, at(4)))
    assert store.trouble
    assert store.trouble.since == at(1)
    assert store.trouble.waiting == 4
    assert [a.key.subject for a in store.read_alerts()] == ["/new"]
    assert summaries(store.read_outbox()) == ["during"]

    disk.free()
    clock.advance(RETRY_SPACING_S)
    store.commit(remembered("after"))
    assert store.trouble is None
    store.close()
    again = open_store(str(state), at()).store
    assert [a.key.subject for a in again.read_alerts()] == ["/new"]
    assert summaries(again.read_outbox()) == ["during"]
    assert [text for _, _, text in again.read_deliveries("alert-/scratch")] == ["250 ok", ""]
    assert again.read_samples("fs", "/scratch", "used", 0) == [(at(4), 1.0)]
    assert again.read_memory("fs") == {"value": "after"}


def test_a_start_on_a_full_disk_knows_what_was(disk: Disk, state: Path, clock: Ticking) -> None:
    """The state is read, the lock is held, and later rows come after earlier ones."""
    before = open_store(str(state), at()).store
    before.take_lead("before", at())
    before.commit(Batch(at=at(), alerts=(alert("/old"),), outbox=(outgoing("before"),)))
    before.close()
    disk.fill()
    store = buffered(state, clock)
    store.take_lead("test", at(1))
    assert store.trouble
    assert [a.key.subject for a in store.read_alerts()] == ["/old"]
    store.commit(Batch(at=at(2), closed=(key("/old"),), outbox=(outgoing("during"),)))
    assert summaries(store.read_outbox()) == ["before", "during"]
    disk.free()
    clock.advance(RETRY_SPACING_S)
    assert store.write_pending()
    store.close()
    again = open_store(str(state), at()).store
    assert again.read_alerts() == []
    assert summaries(again.read_outbox()) == ["before", "during"]


def test_a_disk_that_is_full_for_long(disk: Disk, state: Path) -> None:
    """More than the journal beside the state has room for: the next one begins elsewhere, and what
    was kept before is kept until then. No room that sentinel frees tempts the database."""
    subprocess.run(["mount", "-o", "remount,size=24M", str(disk.point)], check=True)
    for number in range(12):
        if number == 1:
            disk.fill()
        store = open_store(str(state), at(number)).store
        store.take_lead("test", at(number))
        if number:
            (before,) = store.read_alerts()
            assert before == alert(values={"pass": number - 1})
        store.commit(Batch(at=at(number), alerts=(alert(values={"pass": number}),)))
        for step in range(60):
            store.commit(remembered([number, step]))
        assert (store.trouble is None, store.is_durable) == (number == 0, True)
        store.close()
    disk.free()
    again = open_store(str(state), at(20)).store
    again.take_lead("test", at(20))
    assert (again.read_alerts(), again.trouble) == ([alert(values={"pass": 11})], None)
    assert again.read_memory("fs") == {"value": [11, 59]}
    again.close()


def test_a_first_start_on_a_full_disk(disk: Disk) -> None:
    """Nothing can be made but an empty directory: alerts are sent, and stored later."""
    disk.state.mkdir()
    disk.fill()
    store = open_store(str(disk.state), at()).store
    store.take_lead("test", at())
    assert store.trouble
    assert "sentinel.db" in store.trouble.why
    store.commit(Batch(at=at(), alerts=(alert(),), outbox=(outgoing("during"),)))
    assert summaries(store.read_outbox()) == ["during"]
    disk.free()
    store.close()
    again = open_store(str(disk.state), at()).store
    assert again.read_alerts() == [alert()]
    assert summaries(again.read_outbox()) == ["during"]
