"""What is kept of the past is read in both databases, as it was written, and without writing."""

from pathlib import Path

import pytest

from sentinel.core.errors import StoreError
from sentinel.core.model import Batch, Outgoing, Receipt, Sample
from sentinel.store.kept_history import open_kept_history
from sentinel.store.opening import open_store
from tests.store.nouns import alert, at, notification, transition


@pytest.fixture(params=["sqlite", "postgresql"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path)
    return str(request.getfixturevalue("postgres_url"))


def test_alerts_messages_and_samples(state: str) -> None:
    store = open_store(state, at()).store
    store.take_lead("test", at())
    told = [Outgoing(channel=name, notification=notification(), created=at(2)) for name in "ab"]
    numbers = (Sample("/scratch", "used", 5.0), Sample("/scratch", "free", 6.0))
    memory = {"sentinel/cluster": {"name": "h100"}}
    for moment in (1, 2):
        store.commit(
            Batch(
                at=at(moment), alerts=(alert(),), transitions=(transition(moment, moment=at(moment)),),
                samples={"fs": numbers[: 3 - moment], "other": numbers}, memory=memory,
                outbox=tuple(told) if moment == 2 else (),
            )
        )  # fmt: skip
    store.sent([row for row in store.read_outbox() if row.channel == "a"], at(3), Receipt("taken"))
    store.close()
    with open_kept_history(state) as reader:
        found = reader.read_history("sentinel/cluster")
        samples = reader.read_check_samples("fs", ("used", "free"), 0)
        none = reader.read_check_samples("fs", ("free", "used"), at(2).wall)
    assert (found.cluster, found.first) == ("h100", at(1).wall)
    assert [t.id for t in found.transitions] == ["transition-1", "transition-2"]
    assert [a.id for a in found.alerts] == ["alert-/scratch"]
    assert [(m.channel, m.at) for m in found.sent] == [("a", at(3))]
    assert [row.channel for row in found.waiting] == ["b"]
    assert samples == {"/scratch": [(at(1), {"used": 5.0, "free": 6.0}), (at(2), {"used": 5.0})]}
    assert none == {"/scratch": []}


def test_a_state_that_no_sentinel_has_made(state: str) -> None:
    with pytest.raises(StoreError), open_kept_history(state):
        pass
