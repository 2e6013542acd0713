"""What is read only when somebody opens one alert, node, file system or job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Status, Transition
from sentinel.core.ports import Logbook
from sentinel.core.text import visible
from sentinel.status.types import ActionFact
from sentinel.status.view_model import action

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import Entry, GpuEvent, Gpus, Standing

PAST, LATELY = 100, 1000
EVENTS = 5
EARLIER = 20


class Happened(Struct, frozen=True, kw_only=True):
    """A change of an alert, in words."""

    at: float
    reason: str
    status: Status
    alert: str
    check: str
    subject: str
    summary: str

    @property
    def tone(self) -> str:
        """Ends look well, all else as bad as it was."""
        return "ok" if self.reason in ("resolved", "gone") else self.status.value


class Episode(Struct, frozen=True, kw_only=True):
    """An earlier alert about the same subject. `ended` None: that was not seen, or is too long ago."""

    alert: str
    began: float
    ended: float | None
    summary: str


class Delivered(Struct, frozen=True, kw_only=True):
    """A message about an alert, and what became of it. `sent` None: not yet."""

    channel: str
    reason: str
    attempts: int
    sent: float | None
    answer: str


class NodePast(Struct, frozen=True, kw_only=True):
    """A state and reason that a node had."""

    seen: float
    state: str
    reason: str
    user: str


class NodeGpu(Struct, frozen=True, kw_only=True):
    """A GPU (or the node itself) with the newest of what happened to it."""

    subject: str
    model: str = ""
    slot: str = ""
    judged: str = "good"
    score: float = 0.0
    events: tuple[EventPast, ...] = ()


class EventPast(Struct, frozen=True, kw_only=True):
    """Something that happened to a GPU."""

    at: float
    what: str
    text: str


def happened(store: Store, alert: str = "", limit: int = PAST) -> list[Happened]:
    """The newest first."""
    return [_happened(t) for t in store.history(limit, alert)]


def episodes(store: Store, check: str, subject: str, besides: str) -> list[Episode]:
    """The alerts of this check and subject before this one, the newest first."""
    found: dict[str, Episode] = {}
    for t in store.history(LATELY):
        if t.alert == besides or (visible(t.key.check), visible(t.key.subject)) != (check, subject):
            continue
        over = t.reason in ("resolved", "gone")
        known = found.get(t.alert)
        found[t.alert] = Episode(
            alert=t.alert,
            began=t.since.wall / SECOND if known is None or not over else known.began,
            ended=t.at.wall / SECOND if over else known.ended if known else None,
            summary=visible(t.summary) if not over or known is None else known.summary,
        )
    return list(found.values())[:EARLIER]


def delivered(store: Store, alert: str) -> list[Delivered]:
    """All messages about an alert, in their order."""
    return [
        Delivered(
            channel=visible(row.channel),
            reason=row.notification.reason,
            attempts=row.attempts,
            sent=sent.wall / SECOND if sent else None,
            answer=visible(receipt or row.error),
        )
        for row, sent, receipt in store.deliveries(alert)
    ]


def points(
    store: Store, check: str, subject: str, name: str, now: Instant, seconds: float
) -> list[tuple[float, float]]:
    """A number over that time, in seconds UTC."""
    since = now.wall - int(seconds * SECOND)
    told = store.samples(check, subject, name, since)
    return sorted((at.wall / SECOND, value) for at, value in told)


def readings(logbook: Logbook | None, node: str) -> list[NodePast]:
    """The reasons that a node had, the newest first."""
    if logbook is None:
        return []
    return [
        NodePast(
            seen=r.seen.wall / SECOND,
            state=visible(r.state),
            reason=visible(r.reason),
            user=visible(r.user),
        )
        for r in logbook.readings(node, PAST)
    ]


def done(logbook: Logbook | None, target: str) -> list[ActionFact]:
    """What was done to a target, the newest first."""
    return [action(r) for r in logbook.records(target, PAST)] if logbook and target else []


def asked(logbook: Logbook | None, check: str) -> list[ActionFact]:
    """What a check asked for among all that was done lately, the newest first."""
    records = logbook.records(limit=LATELY) if logbook else []
    return [action(r) for r in records if r.by == check][:PAST]


def gpus(ledger: Gpus | None, node: str, now: Instant) -> list[NodeGpu]:
    """What the ledger has of a node's GPUs and of the node itself, the worst first."""
    if ledger is None:
        return []
    from sentinel.core.gpu_ledger import Standing

    standings = ledger.standings(now)
    found: Sequence[Entry] = ledger.entries(node)
    told = [_gpu(entry, standings.get(entry.subject, Standing()), ledger) for entry in found]
    return sorted(told, key=lambda g: (-g.score, g.slot, g.subject))


def _gpu(entry: Entry, standing: Standing, ledger: Gpus) -> NodeGpu:
    return NodeGpu(
        subject=visible(entry.subject),
        model=visible(entry.model),
        slot=visible(entry.slot),
        judged=standing.judged,
        score=round(standing.score, 2),
        events=tuple(_event(e) for e in ledger.events(entry.subject, EVENTS)),
    )


def _event(event: GpuEvent) -> EventPast:
    return EventPast(at=event.at.wall / SECOND, what=visible(event.what), text=visible(event.text))


def _happened(t: Transition) -> Happened:
    return Happened(
        at=t.at.wall / SECOND,
        reason=t.reason,
        status=t.status,
        alert=t.alert,
        check=visible(t.key.check),
        subject=visible(t.key.subject),
        summary=visible(t.summary),
    )
