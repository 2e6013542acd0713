"""Reads data that are needed only when somebody opens one alert, node, file system or job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.alerting.state import Store
from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import GpuStanding
from sentinel.core.model import Status, Transition
from sentinel.core.ports import Logbook
from sentinel.core.text import visible
from sentinel.status.types import ActionFact
from sentinel.status.view_model import make_action_fact

if TYPE_CHECKING:
    from sentinel.core.gpu_ledger import GpuEvent, GpuLedger, LedgerEntry

PAST, LATELY = 100, 1000
MAX_GPU_EVENTS = 5
MAX_EPISODES = 20


class AlertChange(Struct, frozen=True, kw_only=True):
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


class AlertEpisode(Struct, frozen=True, kw_only=True):
    """An earlier alert about the same subject. `ended` None: that was not seen, or is too long ago."""

    alert: str
    began: float
    ended: float | None
    summary: str


class AlertDelivery(Struct, frozen=True, kw_only=True):
    """A message about an alert, and what became of it. `sent` None: not yet."""

    channel: str
    reason: str
    attempts: int
    sent: float | None
    answer: str


class NodeStateFact(Struct, frozen=True, kw_only=True):
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
    events: tuple[GpuEventFact, ...] = ()


class GpuEventFact(Struct, frozen=True, kw_only=True):
    """Something that happened to a GPU."""

    at: float
    what: str
    text: str


def read_alert_changes(store: Store, alert: str = "", limit: int = PAST) -> list[AlertChange]:
    """The newest first."""
    return [_make_alert_change(t) for t in store.read_transitions(limit, alert)]


def read_episodes(store: Store, check: str, subject: str, besides: str) -> list[AlertEpisode]:
    """The alerts of this check and subject before this one, the newest first."""
    found: dict[str, AlertEpisode] = {}
    for t in store.read_transitions(LATELY):
        if t.alert == besides or (visible(t.key.check), visible(t.key.subject)) != (check, subject):
            continue
        over = t.reason in ("resolved", "gone")
        known = found.get(t.alert)
        found[t.alert] = AlertEpisode(
            alert=t.alert,
            began=t.since.wall / SECOND if known is None or not over else known.began,
            ended=t.at.wall / SECOND if over else known.ended if known else None,
            summary=visible(t.summary) if not over or known is None else known.summary,
        )
    return list(found.values())[:MAX_EPISODES]


def read_alert_deliveries(store: Store, alert: str) -> list[AlertDelivery]:
    """All messages about an alert, in their order."""
    return [
        AlertDelivery(
            channel=visible(row.channel),
            reason=row.notification.reason,
            attempts=row.attempts,
            sent=sent.wall / SECOND if sent else None,
            answer=visible(receipt or row.error),
        )
        for row, sent, receipt in store.read_deliveries(alert)
    ]


def read_sample_points(
    store: Store, check: str, subject: str, name: str, now: Instant, seconds: float
) -> list[tuple[float, float]]:
    """A number over that time, in seconds UTC."""
    since = now.wall - int(seconds * SECOND)
    told = store.read_samples(check, subject, name, since)
    return sorted((at.wall / SECOND, value) for at, value in told)


def read_node_states(logbook: Logbook | None, node: str) -> list[NodeStateFact]:
    """The reasons that a node had, the newest first."""
    if logbook is None:
        return []
    return [
        NodeStateFact(
            seen=r.seen.wall / SECOND,
            state=visible(r.state),
            reason=visible(r.reason),
            user=visible(r.user),
        )
        for r in logbook.readings(node, PAST)
    ]


def read_target_actions(logbook: Logbook | None, target: str) -> list[ActionFact]:
    """The actions on a target, newest first."""
    return (
        [make_action_fact(r) for r in logbook.records(target, PAST)] if logbook and target else []
    )


def read_check_actions(logbook: Logbook | None, check: str) -> list[ActionFact]:
    """The recent actions that a check requested, newest first."""
    records = logbook.records(limit=LATELY) if logbook else []
    return [make_action_fact(r) for r in records if r.by == check][:PAST]


def read_node_gpus(ledger: GpuLedger | None, node: str, now: Instant) -> list[NodeGpu]:
    """What the ledger has of a node's GPUs and of the node itself, the worst first."""
    if ledger is None:
        return []
    standings = ledger.read_standings(now)
    found: Sequence[LedgerEntry] = ledger.read_entries(node)
    told = [
        _make_node_gpu(entry, standings.get(entry.subject, GpuStanding()), ledger)
        for entry in found
    ]
    return sorted(told, key=lambda g: (-g.score, g.slot, g.subject))


def _make_node_gpu(entry: LedgerEntry, standing: GpuStanding, ledger: GpuLedger) -> NodeGpu:
    return NodeGpu(
        subject=visible(entry.subject),
        model=visible(entry.model),
        slot=visible(entry.slot),
        judged=standing.judged,
        score=round(standing.score, 2),
        events=tuple(_make_gpu_event(e) for e in ledger.read_events(entry.subject, MAX_GPU_EVENTS)),
    )


def _make_gpu_event(event: GpuEvent) -> GpuEventFact:
    return GpuEventFact(
        at=event.at.wall / SECOND, what=visible(event.what), text=visible(event.text)
    )


def _make_alert_change(t: Transition) -> AlertChange:
    return AlertChange(
        at=t.at.wall / SECOND,
        reason=t.reason,
        status=t.status,
        alert=t.alert,
        check=visible(t.key.check),
        subject=visible(t.key.subject),
        summary=visible(t.summary),
    )
