"""A PostgreSQL server that goes away and comes back, and URLs that lead nowhere."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

import psycopg
import pytest

from sentinel.core.errors import StoreBusy, StoreError
from sentinel.core.model import Batch
from sentinel.store.buffered import BufferedStore
from sentinel.store.errors import StateUnavailable
from sentinel.store.failover import RETRY_SPACING_S
from sentinel.store.memory import MemoryStore
from sentinel.store.opening import open_store
from sentinel.store.postgres import PostgresBackend
from sentinel.store.sql import SqlStore
from tests.lab.postgres import Postgres
from tests.lab.waiting import wait_until
from tests.store.nouns import alert, at, outgoing, summaries, told
from tests.store.other_roles import HERS, make_roles, url_of
from tests.store.ticking import Ticking

if TYPE_CHECKING:
    from typing_extensions import LiteralString

    Say = Callable[[LiteralString], None]


@pytest.fixture
def server(postgres: Postgres) -> Iterator["Say"]:
    """Runs a statement on the server as its owner."""
    with postgres.database() as url:

        def say(statement: "LiteralString") -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(statement)

        yield say


KILL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'sentinel' AND pid <> pg_backend_pid()"
)


@pytest.mark.long
def test_a_server_that_is_away_delays_nothing_and_loses_nothing(
    postgres: Postgres, postgres_url: str
) -> None:
    """Writes wait in memory while it is down; afterwards they are there in order."""
    clock = Ticking()
    store = BufferedStore(SqlStore(PostgresBackend(postgres_url)), MemoryStore(), monotonic=clock)
    store.take_lead("test", at())
    store.commit(Batch(at=at(), alerts=(alert(),), outbox=(outgoing("before"),)))
    postgres.stop()
    try:
        store.commit(told("during"))
        assert store.trouble
        assert summaries(store.read_outbox()) == ["before", "during"]
    finally:
        postgres.start()
    clock.advance(RETRY_SPACING_S)
    store.commit(told("after"))
    assert store.trouble is None
    assert summaries(open_store(postgres_url, at()).store.read_outbox()) == [
        "before",
        "during",
        "after",
    ]
    store.close()


def test_a_lost_session_leads_again_when_nobody_else_did(postgres_url: str, server: "Say") -> None:
    """With its token and its lock: another is still refused."""
    store = SqlStore(PostgresBackend(postgres_url))
    store.take_lead("test", at())
    server(KILL)
    with pytest.raises(StateUnavailable):
        store.commit(told("lost"))
    store.commit(told("kept"))
    other = SqlStore(PostgresBackend(postgres_url))
    with pytest.raises(StoreError, match="another sentinel leads: test since"):
        other.take_lead("other", at())
    assert summaries(other.read_outbox()) == ["kept"]
    other.close()
    store.close()


def test_a_leader_that_was_stopped_between_rows_that_it_writes_together_makes_way(
    postgres_url: str,
) -> None:
    """To the server it was at work, for as long as its host was up: the next waited for its lock,
    and nobody watched."""
    store, other = (SqlStore(PostgresBackend(f"{postgres_url}&lease=2s")) for _ in range(2))
    store.take_lead("test", at())
    begun, go_on = Event(), Event()

    def rows() -> Iterator[tuple[int]]:
        yield (1,)
        yield (1,)
        begun.set()
        go_on.wait(60)

    def write() -> None:
        with suppress(psycopg.Error), psycopg.connect(postgres_url) as stopped:
            stopped.execute("SET idle_in_transaction_session_timeout = 2000")
            stopped.commit()
            stopped.cursor().executemany("UPDATE leader SET thinned = 0 WHERE id = %s", rows())

    writer = Thread(target=write)
    writer.start()
    try:
        assert begun.wait(10)
        wait_until(lambda: _led(other), "another that leads", 15)
    finally:
        go_on.set()
        writer.join()
    other.close()
    store.close()


def _led(store: SqlStore) -> bool:
    with suppress(StoreBusy, StateUnavailable):
        return store.take_lead("other", at()) > 0
    return False


@pytest.mark.parametrize("lost", ["tables", "session and tables"])
def test_tables_that_were_dropped_lose_no_alert(
    postgres_url: str, server: "Say", lost: str
) -> None:
    """What must not be lost is written to new tables, and a person is told."""
    clock = Ticking()
    store = BufferedStore(SqlStore(PostgresBackend(postgres_url)), MemoryStore(), monotonic=clock)
    store.take_lead("test", at())
    store.commit(Batch(at=at(), alerts=(alert(),), outbox=(outgoing("a"),)))
    if lost == "session and tables":
        server(KILL)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    store.commit(told("b"))
    for _ in range(2):
        clock.advance(RETRY_SPACING_S)
        store.write_pending()
    assert store.trouble is None
    assert [n.split(" was ", 1)[1] for n in store.take_notices()] == [
        "removed; a new one was begun"
    ]
    other = open_store(postgres_url, at()).store
    assert (other.read_alerts(), summaries(other.read_outbox())) == ([alert()], ["a", "b"])
    store.close()


def test_two_schemas_of_one_database_are_two_states(postgres_url: str, server: "Say") -> None:
    """The lock is the table's, not the database's."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA other")
    here = open_store(postgres_url, at()).store
    there = open_store(f"{postgres_url}&options=-csearch_path%3Dother", at()).store
    here.take_lead("here", at())
    there.take_lead("there", at())
    here.commit(told("here"))
    assert there.read_outbox() == []
    here.close()
    there.close()


@pytest.mark.parametrize("hers", HERS)
def test_no_operator_of_another_role_runs_as_sentinel(
    postgres_url: str, hers: "LiteralString"
) -> None:
    """https://wiki.postgresql.org/wiki/A_Guide_to_CVE-2018-1058: an operator whose types fit better than
    those of the server's own is taken, in whatever schema of the search path it lies."""
    make_roles(postgres_url)
    store = SqlStore(PostgresBackend(url_of("watch", postgres_url)))
    store.take_lead("test", at())
    mallory = url_of("mallory", postgres_url)
    with psycopg.connect(mallory, autocommit=True) as connection:
        connection.execute(hers)
        known = Batch(
            at=at(), alerts=(alert(),), outbox=(outgoing("kept"),), memory={"x": {"a": 1}}
        )
        store.commit(known)
        store.close()
        store.take_lead("again", at(1))  # a session that begins when her operator is there
        assert store.read_memory("x") == {"a": 1}
        assert (store.read_alerts(), summaries(store.read_outbox())) == ([alert()], ["kept"])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT body FROM alerts")
    store.close()


@pytest.mark.parametrize(("owner", "serves"), [("mallory", False), ("postgres", True)])
def test_tables_of_another_role_are_no_state(postgres_url: str, owner: str, serves: bool) -> None:
    """Who came first owns them, and may have triggers run as sentinel. A superuser may do all anyway."""
    make_roles(postgres_url)
    other = SqlStore(PostgresBackend(url_of(owner, postgres_url)))
    other.take_lead("test", at())
    other.close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC")
    store = SqlStore(PostgresBackend(url_of("watch", postgres_url)))
    if serves:
        assert store.take_lead("test", at()) == 2
    else:
        with pytest.raises(StateUnavailable, match="tables in schema public belong to mallory"):
            store.take_lead("test", at())
    store.close()


def test_nobody_leads_without_a_server() -> None:
    """Opening is put off, leading is not possible: exclusivity cannot be had elsewhere."""
    opened = open_store("postgresql://u:secret@127.0.0.1:1/none", at())
    with pytest.raises(
        StateUnavailable, match=r"postgresql://u:\*\*\*@127\.0\.0\.1:1/none: "
    ) as info:
        opened.store.take_lead("test", at())
    assert "secret" not in str(info.value)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("postgresql://[::1", "state: not a URL like postgresql://user@host:5432/database"),
        ("mysql://root@localhost/x", "mysql:// is not supported; use a directory or postgresql://"),
    ],
)
def test_urls_that_are_none(state: str, message: str) -> None:
    """One line that says what would be one."""
    with pytest.raises(StoreError, match=message.replace("?", r"\?")):
        open_store(state, at())


def test_a_database_that_cannot_hold_every_text_is_refused(
    postgres: Postgres, server: "Say"
) -> None:
    """LATIN1 has no emoji; the remedy is in the message."""
    server("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with postgres.database() as url:
        latin = url.replace(url.split("/")[3].split("?")[0], "latin", 1)
        with pytest.raises(StoreError, match=r"encoding LATIN1 .*ENCODING 'UTF8'"):
            open_store(latin, at())
    server("DROP DATABASE latin")
