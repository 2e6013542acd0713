"""Several processes and one state: leaders that are killed, and leaders that take turns."""

import random
import time
from pathlib import Path

import pytest

from sentinel.alerting.state import Store
from sentinel.core.errors import StoreBusy
from sentinel.core.model import Batch
from sentinel.store.opening import open_store
from tests.lab.waiting import wait_until
from tests.store.nouns import at, summaries
from tests.store.worker import batch
from tests.store.workers import Workers

ROUNDS = 50


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["", "network:"], ids=["write-ahead log", "rollback journal"])
def test_kill_9_loses_no_batch_and_leaves_no_half_of_one(
    tmp_path: Path, workers: Workers, scheme: str
) -> None:
    """Killed at random moments, what was reported is there, whole; the next leads at once."""
    chance = random.Random(17)
    last = 0
    for _ in range(ROUNDS):
        worker = workers.start("commit", f"{scheme}{tmp_path}")
        for _ in range(chance.randrange(8)):
            worker.lines.readline()
        time.sleep(chance.uniform(0, 0.01))
        reported = worker.kill()
        store = open_store(str(tmp_path), at()).store
        store.take_lead("test", at())
        last = _check_whole(store, max([last, *reported]))
        store.close()
    assert last >= ROUNDS


@pytest.mark.long
def test_kill_9_of_a_client_of_postgresql(postgres_url: str, workers: Workers) -> None:
    """What was reported is there, and the lease of the dead ends by itself."""
    last, state = 0, f"{postgres_url}&lease=2s"
    for _ in range(3):
        worker = workers.start("commit", state)
        worker.lines.readline()
        reported = worker.kill()
        store = open_store(state, at()).store
        _lead_soon(store)
        last = _check_whole(store, max([last, *reported]))
        store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_that_take_turns_lose_nothing(
    kind: str, tmp_path: Path, workers: Workers, request: pytest.FixtureRequest
) -> None:
    """Every increment of either process counts."""
    state = str(tmp_path) if kind == "sqlite" else request.getfixturevalue("postgres_url")
    pair = [workers.start("increment", state, 40) for _ in range(2)]
    values = [value for worker in pair for value in worker.result()]
    assert sorted(values) == list(range(1, 81))
    assert open_store(state, at()).store.read_memory("count") == {"value": 80}


@pytest.mark.parametrize("kind", ["sqlite", "network", "postgresql"])
def test_transactions_at_the_same_time_lose_nothing(
    kind: str, tmp_path: Path, workers: Workers, request: pytest.FixtureRequest
) -> None:
    """What a transaction read is still so when it writes, and none fails for another's sake."""
    states = {"sqlite": str(tmp_path), "network": f"network:{tmp_path}"}
    state = states.get(kind) or request.getfixturevalue("postgres_url")
    several = [workers.start("number", state, 50) for _ in range(3)]
    values = [value for worker in several for value in worker.result()]
    assert sorted(values) == list(range(1, 151))


def _check_whole(store: Store, at_least: int) -> int:
    number = store.read_memory("count").get("value", 0)
    assert number >= at_least
    if number:
        whole = batch(number)
        assert sorted(a.runs for a in store.read_alerts()) == [number] * 20
        assert store.read_transitions(1) == list(whole.transitions)
        assert summaries(store.read_outbox()) == [str(n) for n in range(1, number + 1)]
        assert [len(store.read_samples("count", f"/{p}", "n", 0)) for p in range(20)] == [
            number
        ] * 20
    return int(number)


def _lead_soon(store: Store) -> None:
    wait_until(lambda: _leads(store), "the session of the dead process ends")


def _leads(store: Store) -> bool:
    try:
        store.take_lead("test", at())
    except StoreBusy:
        return False
    store.commit(Batch(at=at()))
    return True
