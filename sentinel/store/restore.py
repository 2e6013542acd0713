"""Writes a whole mirror back, if its single writes cannot be repeated."""

from typing import Protocol

from sentinel.alerting.state import Store
from sentinel.core.clock import Instant
from sentinel.core.model import Batch, Outgoing, Receipt
from sentinel.store.memory import MAX_RECENT_ROWS, MemoryStore
from sentinel.store.rows import DeliveryOutcome, StateSnapshot


class SnapshotStore(Store, Protocol):
    """A store that can read its whole state at one moment."""

    def read_snapshot(self) -> StateSnapshot: ...


def restore_mirror(
    target: SnapshotStore, mirror: MemoryStore, now: Instant, complete: bool
) -> None:
    """Make the target equal to the mirror; repeating this is harmless.

    `complete`: the mirror once knew everything in the target, so what the mirror lacks was closed
    or sent since. Otherwise what only the target knows stays open."""
    here, there = mirror.read_snapshot(), target.read_snapshot()
    target.commit(diff_snapshots(here, there, mirror, now, complete))
    target.failed(here.outbox)
    for row, outcome in _find_done_rows(here, there, mirror, complete):
        _finish_row(target, row, outcome, now)


def mark_sent_rows(target: Store, mirror: MemoryStore, there: StateSnapshot) -> None:
    """Mark messages as sent that still wait in the target and that the mirror has sent."""
    done = {(r.channel, r.notification.key): o for r, o in mirror.get_finished_rows() if o.sent}
    for row in there.outbox:
        if outcome := done.get((row.channel, row.notification.key)):
            target.sent([row], outcome.at, Receipt(outcome.text))


def diff_snapshots(
    here: StateSnapshot, there: StateSnapshot, mirror: MemoryStore, now: Instant, complete: bool
) -> Batch:
    """The batch that changes `there` to `here`."""
    open_here = {alert.key for alert in here.alerts}
    closed = [a.key for a in there.alerts if a.key not in open_here] if complete else []
    return Batch(
        at=now,
        alerts=here.alerts,
        closed=tuple(closed),
        transitions=tuple(reversed(mirror.read_transitions(MAX_RECENT_ROWS))),
        outbox=here.outbox,
        memory=here.memory,
        runs=here.runs,
    )


def _find_done_rows(
    here: StateSnapshot, there: StateSnapshot, mirror: MemoryStore, complete: bool
) -> list[tuple[Outgoing, DeliveryOutcome | None]]:
    waiting, outcomes = {row.seq for row in here.outbox}, mirror.get_outcomes()
    done = [row for row in there.outbox if row.seq not in waiting]
    return [(r, outcomes.get(r.seq)) for r in done if complete or r.seq in outcomes]


def _finish_row(
    target: Store, row: Outgoing, outcome: DeliveryOutcome | None, now: Instant
) -> None:
    if outcome is None:
        target.sent([row], now, Receipt("done while the state could not be written"))
    elif outcome.sent:
        target.sent([row], outcome.at, Receipt(outcome.text))
    else:
        target.dropped([row], outcome.at, outcome.text)
