"""Plays observations of the past through the pipeline and the delivery of a service, by a clock of
its own, and keeps the messages in place of sending them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan
from sentinel.alerting.observations import RunOutcome
from sentinel.alerting.owners import OWNER_LABEL
from sentinel.alerting.silences import Orders, find_silence, window_silences
from sentinel.core.clock import SECOND, Instant
from sentinel.core.holds import HeldKind
from sentinel.core.kinds import Channel
from sentinel.core.model import Alert, Coverage, Finding, Notification, Receipt, Report, Status
from sentinel.core.settings import ChannelCommon, CheckConfig
from sentinel.engine.delivery import Delivery
from sentinel.engine.pipeline import Pipeline
from sentinel.engine.runner import make_outcome
from sentinel.replay.observations import AlertName, PastObservation
from sentinel.store.memory import MemoryStore

REVIEW_S = 300.0
"""Seconds between two looks at alerts that only stay as they are: for repeats, escalation, hours,
and silences that end. A service looks at each run of the check."""

_NO_CHECK_INTERVAL_S = 60.0
"""Seconds between the observations of sentinel's own check."""

_SEEN = Coverage(of="subjects", meant=1)


class ReplayedMessage(Struct, frozen=True):
    """A message that would have been sent, or was. `user`: for whom alone; empty: for the whole
    channel."""

    channel: str  # Name of the channel.
    user: str
    at: int  # When, µs UTC.
    notifications: tuple[Notification, ...]


class ReplayedWorld(Struct, frozen=True, kw_only=True):
    """The parts of a configuration that a replay needs."""

    plan: NotificationPlan
    checks: Mapping[str, CheckConfig]
    channels: Mapping[str, Channel]
    common: Mapping[str, ChannelCommon]
    intervals: Mapping[str, float]  # Seconds between two runs, by check.


class ReplayOutcome(Struct, frozen=True):
    """The messages, and the ids of alerts that each silence of the file held back, by its
    position."""

    messages: tuple[ReplayedMessage, ...]
    silenced: Mapping[int, frozenset[str]]


class _ReplayClock:
    """A clock that stands at the moment that is played."""

    def __init__(self, wall: int) -> None:
        self.wall = wall

    def now(self) -> Instant:
        return Instant(wall=self.wall)


class _ReplayStore(MemoryStore):
    """A state in memory in which people gave the orders that they gave then. `names`: the id that
    the alert of each subject had."""

    def __init__(self, orders: Orders, clock: _ReplayClock, names: Mapping[AlertName, str]) -> None:
        super().__init__()
        self._given, self._clock, self._names = orders, clock, names

    def read_orders(self) -> Orders:
        ids = {
            old: alert.id
            for alert in self.read_alerts()
            if (old := self._names.get((alert.key.check, alert.key.subject)))
        }
        given, now = self._given, self._clock.wall
        return Orders(
            silences=tuple(
                s
                if s.alerts is None
                else replace(s, alerts=frozenset(map(_renamer(ids), s.alerts)))
                for s in given.silences
            ),
            acks={
                ids[old]: replace(ack, alert=ids[old])
                for old, ack in given.acks.items()
                if old in ids and ack.at.wall <= now
            },
            remarks=tuple(
                replace(r, alert=ids.get(r.alert, r.alert))
                for r in given.remarks
                if r.at.wall <= now and r.deed == "split"
            ),
        )


def _renamer(ids: Mapping[str, str]) -> Callable[[str], str]:
    return lambda old: ids.get(old, old)


class _MessageRecorder:
    """Stands in place of a channel: keeps each message and accepts it."""

    messages_at_once, links, pictures = 1, False, False

    def __init__(
        self, name: str, channel: Channel, clock: _ReplayClock, book: list[ReplayedMessage]
    ) -> None:
        self._name, self._clock, self._book = name, clock, book
        self.groups, self.personal, self.per_day = (
            channel.groups,
            channel.personal,
            channel.per_day,
        )

    async def send(self, notifications: Sequence[Notification]) -> Receipt:
        user = notifications[0].labels.get(OWNER_LABEL, "") if self.personal else ""
        message = ReplayedMessage(self._name, user, self._clock.wall, tuple(notifications))
        self._book.append(message)
        return Receipt("replayed")


async def _call_directly(method: Callable[..., Any], *args: Any) -> Any:
    return method(*args)


class ReplayPlayer:
    """One replay of one configuration."""

    def __init__(
        self, world: ReplayedWorld, observations: Iterable[PastObservation], orders: Orders
    ) -> None:
        known = (o for o in observations if o.name[0] in world.plan.policies)
        self._todo = sorted(known, key=lambda one: one.at)
        self._world = world
        self._clock = _ReplayClock(self._todo[0].at if self._todo else 0)
        self._names = dict[AlertName, str]()
        self._seen = dict[AlertName, dict[str, Finding]]()
        self._fed = dict[str, int]()
        self._book = list[ReplayedMessage]()
        self._silenced = dict[int, set[str]]()
        store = _ReplayStore(orders, self._clock, self._names)
        store.take_lead("replay", self._clock.now())
        self._pipeline = Pipeline(store, world.plan, self._clock)
        recorders = {
            name: cast("Channel", _MessageRecorder(name, channel, self._clock, self._book))
            for name, channel in world.channels.items()
        }
        self._delivery = Delivery(store, recorders, self._clock, _call_directly, lambda: None)
        self._delivery.common = world.common

    async def play(self, until: int) -> ReplayOutcome:
        """Play everything up to `until` (µs UTC)."""
        at: int | None = self._clock.wall if self._todo else None
        while at is not None and at <= until:
            self._clock.wall = max(at, self._clock.wall)
            self._take_observations()
            due = self._find_due_checks()
            if due:
                self._pipeline.absorb_outcomes([self._make_outcome(check) for check in due])
            else:
                self._pipeline.review_alerts()
            self._note_silences()
            wait = await self._delivery.send_due()
            at = self._find_next_step(wait)
        return ReplayOutcome(
            tuple(self._book), {n: frozenset(ids) for n, ids in self._silenced.items()}
        )

    def _take_observations(self) -> None:
        """Apply what is seen now. The checks that saw it are due."""
        count = 0
        for one in self._todo:
            if one.at > self._clock.wall:
                break
            count += 1
            sources = self._seen.setdefault(one.name, {})
            sources.pop(one.source, None)
            if one.finding is not None:
                sources[one.source] = one.finding
            if one.alert:
                self._names[one.name] = one.alert
            self._fed.pop(one.name[0], None)
        del self._todo[:count]

    def _find_due_checks(self) -> list[str]:
        """Checks that have seen something now, or with an alert that waits for its next run."""
        waiting = {a.key.check for a in self._pipeline.active_alerts if _waits_for_run(a)}
        fresh = {check for check, _ in self._seen if check not in self._fed}
        return [c for c in {*waiting, *fresh} if self._next_run(c) <= self._clock.wall]

    def _next_run(self, check: str) -> int:
        last = self._fed.get(check)
        if last is None:
            return self._clock.wall
        return last + int(self._world.intervals.get(check, _NO_CHECK_INTERVAL_S) * SECOND)

    def _make_outcome(self, check: str) -> RunOutcome:
        self._fed[check] = self._clock.wall
        config = self._world.checks.get(check)
        findings, itself = [], Finding(subject="", status=Status.OK, summary="sees")
        for (name, subject), sources in self._seen.items():
            if name != check or not sources:
                continue
            worst = max(sources.values(), key=lambda f: f.status.rank)
            if subject:
                findings.append(worst)
            else:
                itself = worst
        for key in [key for key in self._seen if key[0] == check]:
            if all(f.status is Status.OK for f in self._seen[key].values()):
                del self._seen[key]  # its end was reported
        report = Report(findings=tuple(findings), coverage=_SEEN)
        if config is not None:
            return replace(make_outcome(config, report, "", 0.0), itself=itself)
        kind = self._world.plan.policies[check].kind
        return RunOutcome(check=check, kind=kind, itself=itself, report=report, seconds=0.0)

    def _note_silences(self) -> None:
        plan, now = self._world.plan, self._clock.now()
        if not plan.windows:
            return
        for alert in self._pipeline.active_alerts:
            if alert.on_hold is not None and alert.on_hold.kind is HeldKind.SILENCED:
                for number, window in enumerate(plan.windows):
                    if find_silence(alert, window_silences([window], now, plan.zone), now):
                        self._silenced.setdefault(number, set()).add(alert.id)

    def _find_next_step(self, wait: float | None) -> int | None:
        """When something may happen next, µs UTC. None: nothing is left."""
        now = self._clock.wall
        steps = [one.at for one in self._todo[:1]]
        if wait is not None:
            steps.append(now + int(max(wait, 1.0) * SECOND))
        for alert in self._pipeline.active_alerts:
            waits = _waits_for_run(alert)
            steps.append(self._next_run(alert.key.check) if waits else now + int(REVIEW_S * SECOND))
        return max(now + 1, min(steps)) if steps else None


def _waits_for_run(alert: Alert) -> bool:
    """Whether the next run of its check may change it."""
    return not alert.firing or alert.clear_since is not None or alert.flapping


def play_observations(
    world: ReplayedWorld, observations: Iterable[PastObservation], orders: Orders, until: int
) -> ReplayOutcome:
    """What this configuration would have sent up to `until` (µs UTC)."""
    return asyncio.run(ReplayPlayer(world, observations, orders).play(until))
