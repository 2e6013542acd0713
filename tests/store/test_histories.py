"""Random histories give the same answers from memory and from each database, read by read."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.alerting.silences import Ack
from sentinel.alerting.state import Store
from sentinel.core.model import Batch, Receipt, Sample, Status
from tests.store.contract import Place
from tests.store.nouns import alert, at, key, outgoing, run, transition
from tests.store.places import MemoryPlace, PostgresPlace, SqlitePlace

HISTORIES = int(os.environ.get("HISTORIES", "20"))
STEPS = 12
SUBJECTS = ("/scratch", "", "'; DROP TABLE alerts; --", "\x00\ud800 %s :key {}", "/Ü😀")


def test_sqlite_answers_as_memory_does(tmp_path: Path) -> None:
    """HISTORIES=1000 tries as many."""
    for seed in range(HISTORIES):
        place = SqlitePlace(tmp_path / str(seed))
        _compare(seed, place)
        place.close()


@pytest.mark.parametrize("seed", range(max(2, HISTORIES // 100)))
def test_postgresql_answers_as_memory_does(seed: int, postgres_url: str) -> None:
    """In a database of its own."""
    place = PostgresPlace(postgres_url)
    _compare(seed, place)
    place.close()


def _compare(seed: int, place: Place) -> None:
    told, ours = MemoryPlace().open(), place.open()
    drawn = random.Random(seed)
    for store in (told, ours):
        store.take_lead("test", at())
    for step in range(STEPS):
        act = _draw_step(drawn, step)
        for store in (told, ours):
            act(store)
        assert _read_all(ours) == _read_all(told), f"seed {seed}, step {step}"
    for store in (told, ours):
        store.release_lead()
    again = place.open()
    assert _read_all(again) == _read_all(told), f"seed {seed}, opened again"


def _draw_step(drawn: random.Random, step: int) -> Callable[[Store], None]:
    """One write, the same for every store."""
    kind = drawn.choice(("commit", "commit", "commit", "sent", "dropped", "failed", "ack", "prune"))
    moment, which = at(60 * step), drawn.random()
    if kind == "commit":
        batch = _draw_batch(drawn, step)
        return lambda store: store.commit(batch)
    if kind == "ack":
        ack = Ack(alert=f"alert-{drawn.choice(SUBJECTS)}", at=moment, who=drawn.choice(SUBJECTS))
        return lambda store: store.put_ack(ack)
    if kind == "prune":
        later = at(drawn.choice((0, 86_400 * 400)))
        return lambda store: store.prune(later)

    def settle(store: Store) -> None:
        rows = store.read_outbox()
        some = rows[: int(which * (len(rows) + 1))]
        if kind == "sent":
            store.sent(some, moment, Receipt("250 ok"))
        elif kind == "dropped":
            store.dropped(some, moment, "no such user")
        else:
            store.failed([replace(one, attempts=one.attempts + 1, error="late") for one in some])

    return settle


def _draw_batch(drawn: random.Random, step: int) -> Batch:
    about = [one for one in SUBJECTS if drawn.random() < 0.5]
    ended = [one for one in SUBJECTS if one not in about and drawn.random() < 0.3]
    status = drawn.choice((Status.OK, Status.WARNING, Status.CRITICAL, Status.UNKNOWN))
    value = drawn.choice((0.0, -1.5, 1e300, float("inf"), drawn.random()))
    return Batch(
        at=at(60 * step),
        alerts=tuple(
            alert(one, status=status, summary=one * 2, labels={one: one}) for one in about
        ),
        closed=tuple(key(one) for one in ended),
        transitions=tuple(
            replace(transition(step, f"alert-{one}", at(60 * step)), id=f"t-{step}-{one}")
            for one in about
        ),
        outbox=tuple(outgoing(one, about=f"alert-{one}") for one in about),
        memory={"fs": {"text": about}, **({"": {"n": step}} if drawn.random() < 0.3 else {})},
        runs=(replace(run(status=status), at=at(60 * step)),),
        samples={"fs": tuple(Sample(one, "used", value) for one in about)},
    )


def _read_all(store: Store) -> dict[str, Any]:
    """Every answer, in an order of its own only where the store promises none."""
    return {
        "alerts": sorted(store.read_alerts(), key=lambda one: one.id),
        "runs": sorted(store.read_runs(), key=lambda one: one.check),
        "memory": [store.read_memory("fs"), store.read_memory("")],
        "outbox": store.read_outbox(),
        "transitions": store.read_transitions(),
        "of one": [store.read_transitions(3, f"alert-{one}") for one in SUBJECTS],
        "deliveries": [store.read_deliveries(f"alert-{one}") for one in SUBJECTS],
        "sendings": store.read_sendings(0),
        "samples": [store.read_samples("fs", one, "used", 0) for one in SUBJECTS],
        "acks": dict(store.read_orders().acks),
    }
