"""A mirror written back as a whole, where its single writes cannot be repeated."""

from typing import Protocol

from sentinel.alerting.state import Store
from sentinel.core.clock import Instant
from sentinel.core.model import Batch, Outgoing, Receipt
from sentinel.store.memory import RECENT, MemoryStore
from sentinel.store.rows import Outcome, Snapshot


class Snapshotting(Store, Protocol):
    """A store that can tell all a running sentinel needs."""

    def snapshot(self) -> Snapshot: ...


def restore(target: Snapshotting, mirror: MemoryStore, now: Instant, complete: bool) -> None:
    """Make the target say what the mirror says; repeating it is harmless.

    `complete`: the mirror knew all of the target at first, so what it lacks was closed or
    sent since. Otherwise what only the target knows stays open.
    """
    here, there = mirror.snapshot(), target.snapshot()
    target.commit(difference(here, there, mirror, now, complete))
    target.failed(here.outbox)
    for row, outcome in _done_since(here, there, mirror, complete):
        _finish(target, row, outcome, now)


def mark_sent(target: Store, mirror: MemoryStore, there: Snapshot) -> None:
    """What still waits `there` and was sent here."""
    done = {(r.channel, r.notification.key): o for r, o in mirror.finished() if o.sent}
    for row in there.outbox:
        if outcome := done.get((row.channel, row.notification.key)):
            target.sent([row], outcome.at, Receipt(outcome.text))


def difference(
    here: Snapshot, there: Snapshot, mirror: MemoryStore, now: Instant, complete: bool
) -> Batch:
    """The batch that brings `there` to `here`."""
    open_here = {alert.key for alert in here.alerts}
    closed = [a.key for a in there.alerts if a.key not in open_here] if complete else []
    return Batch(
        at=now,
        alerts=here.alerts,
        closed=tuple(closed),
        transitions=tuple(reversed(mirror.history(RECENT))),
        outbox=here.outbox,
        memory=here.memory,
        runs=here.runs,
    )


def _done_since(
    here: Snapshot, there: Snapshot, mirror: MemoryStore, complete: bool
) -> list[tuple[Outgoing, Outcome | None]]:
    waiting, outcomes = {row.seq for row in here.outbox}, mirror.outcomes()
    done = [row for row in there.outbox if row.seq not in waiting]
    return [(r, outcomes.get(r.seq)) for r in done if complete or r.seq in outcomes]


def _finish(target: Store, row: Outgoing, outcome: Outcome | None, now: Instant) -> None:
    if outcome is None:
        target.sent([row], now, Receipt("done while the state could not be written"))
    elif outcome.sent:
        target.sent([row], outcome.at, Receipt(outcome.text))
    else:
        target.dropped([row], outcome.at, outcome.text)
