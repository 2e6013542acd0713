"""A lease on a PostgreSQL state: who leads, for how long, and what an old leader may do."""

import time
from collections.abc import Iterator

import pytest

from sentinel.core.errors import Fenced, StoreBusy, StoreError
from sentinel.core.model import Batch
from sentinel.store.memory import MemoryStore
from sentinel.store.opening import open_store
from sentinel.store.postgres import PostgresBackend
from sentinel.store.sql import SqlStore
from tests.lab.postgres import Postgres
from tests.lab.waiting import wait_until
from tests.store.nouns import at, summaries, told

TERM = 2.0


@pytest.fixture
def pair(postgres_url: str) -> Iterator[tuple[SqlStore, SqlStore]]:
    """Two sentinels on one database, the first of them leading."""
    one, two = (SqlStore(PostgresBackend(postgres_url, TERM)) for _ in range(2))
    one.take_lead("one", at())
    yield one, two
    one.close()
    two.close()


def test_a_lease_that_is_renewed_never_ends(pair: tuple[SqlStore, SqlStore]) -> None:
    """Longer than its term, nobody else comes in."""
    one, two = pair
    until = time.monotonic() + 1.5 * TERM
    while time.monotonic() < until:
        one.renew_lease()
        assert 0 < one.get_lease_left_s() <= TERM
        with pytest.raises(StoreBusy, match="another sentinel leads: one since"):
            two.take_lead("two", at())
        time.sleep(TERM / 5)


def test_a_lease_that_is_not_renewed_is_taken_over(pair: tuple[SqlStore, SqlStore]) -> None:
    """Not before its holder stopped counting on it; what he had written is there, and he writes
    nothing more."""
    one, two = pair
    one.commit(told("before"))
    wait_until(lambda: _leads(two), "the end of the lease", 10)
    assert one.get_lease_left_s() <= 0
    assert summaries(two.read_outbox()) == ["before"]
    for write in (lambda: one.commit(told("late")), one.renew_lease, lambda: one.prune(at())):
        with pytest.raises(Fenced, match=r"took over \(two since"):
            write()
    assert (one.get_lease_left_s(), one.read_leader()) == (float("-inf"), two.read_leader())
    one.close()
    two.commit(told("after"))
    assert summaries(two.read_outbox()) == ["before", "after"]


def test_writing_renews(pair: tuple[SqlStore, SqlStore]) -> None:
    """Whatever the leader writes proves that it lives."""
    one, _ = pair
    time.sleep(TERM / 2)
    one.commit(Batch(at=at()))
    assert one.get_lease_left_s() > TERM * 0.6


def test_who_writes_longer_than_a_term_goes_on_leading(pair: tuple[SqlStore, SqlStore]) -> None:
    """Each write prolongs the lease in the database too, where the others look."""
    one, two = pair
    until = time.monotonic() + 1.5 * TERM
    while time.monotonic() < until:
        one.commit(told("at work"))
        with pytest.raises(StoreBusy, match="another sentinel leads: one since"):
            two.take_lead("two", at())
        time.sleep(TERM / 5)


def test_a_stop_in_good_order_frees_the_lead_at_once(pair: tuple[SqlStore, SqlStore]) -> None:
    """The next need not wait for a term."""
    one, two = pair
    one.release_lead()
    assert one.read_leader() == ""
    assert two.take_lead("two", at()) == 2


@pytest.mark.long
def test_a_server_that_is_away_does_not_keep_a_lease_alive(
    postgres: Postgres, postgres_url: str
) -> None:
    """Where others stand by, watching goes on and the right to send ends by this host's own clock:
    they may lead by then."""
    store = open_store(f"{postgres_url}&lease=2s", at()).store
    store.take_lead("one", at())
    other = open_store(f"{postgres_url}&lease=2s", at()).store
    with pytest.raises(StoreBusy):
        other.take_lead("two", at())
    other.close()
    store.renew_lease()
    postgres.stop()
    try:
        store.commit(told("during"))
        wait_until(lambda: store.get_lease_left_s() <= 0, "the end of the lease", 5)
    finally:
        postgres.start()
    time.sleep(5)
    store.commit(told("after"))
    assert store.get_lease_left_s() > 0
    assert summaries(store.read_outbox()) == ["during", "after"]
    store.close()


@pytest.mark.parametrize(("said", "term"), [("", 30.0), ("&lease=10s", 10.0), ("&lease=1ms", 2.0)])
def test_the_url_says_how_long(postgres_url: str, said: str, term: float) -> None:
    """30 s where it says nothing; never less than can be renewed in time."""
    assert PostgresBackend(postgres_url + said).term == term


def test_a_lease_that_is_no_time(postgres_url: str) -> None:
    """An error that names the word."""
    with pytest.raises(StoreError, match="state: lease: 'soon' is no duration"):
        PostgresBackend(f"{postgres_url}&lease=soon")


def test_what_a_kernel_guards_needs_no_renewing() -> None:
    """Its lock ends with its process."""
    store = MemoryStore()
    store.take_lead("one", at())
    store.renew_lease()
    assert (store.term, store.get_lease_left_s()) == (0.0, float("inf"))


def _leads(store: SqlStore) -> bool:
    try:
        store.take_lead("two", at())
    except StoreBusy:
        return False
    return True
