"""How entries of the GPU ledger change, without any database. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.gpu_ledger import (
    NODE_PREFIX,
    GpuEvent,
    GpuMove,
    GpuSighting,
    GpuStanding,
    LedgerEntry,
    Mark,
    Stay,
)
from sentinel.core.lemon_policy import Class, LemonPolicy
from sentinel.core.text import shortened
from sentinel.core.values import duration_text
from sentinel.gpu.lemon_score import Term, decayed, outages, sum_of

MANY = 50
"""Outages of a node that its entry keeps at most."""

SEVERAL = 3
"""If this many GPUs fail in the same way at the same time, it is no coincidence."""


def first_seen(sighting: GpuSighting, now: Instant) -> LedgerEntry:
    """The entry of a GPU that nobody has seen before."""
    return LedgerEntry(
        subject=sighting.uuid,
        serial=sighting.serial,
        model=sighting.model,
        node=sighting.node,
        slot=sighting.slot,
        first=now,
        seen=now,
    )


def first_heard(event: GpuEvent) -> LedgerEntry:
    """The entry of a subject that is known only by an event: a GPU that was lost before it was ever
    seen."""
    return LedgerEntry(subject=event.subject, node=event.node, first=event.at, seen=event.at)


def settled(entry: LedgerEntry, sighting: GpuSighting) -> bool:
    """Whether the sighting shows only that the GPU is still there."""
    named = ("serial", "model", "slot")
    known = all(getattr(sighting, n) in ("", getattr(entry, n)) for n in named)
    return known and sighting.node == entry.node


def has_moved(entry: LedgerEntry, sighting: GpuSighting) -> bool:
    """Whether the GPU is in another node, or in another slot if both are known."""
    slots = entry.slot and sighting.slot and entry.slot != sighting.slot
    return bool(slots or (entry.node and entry.node != sighting.node))


def placed(entry: LedgerEntry, sighting: GpuSighting, now: Instant) -> LedgerEntry:
    """The entry after the GPU was seen in that place."""
    return replace(
        entry,
        node=sighting.node,
        slot=sighting.slot or entry.slot,
        serial=sighting.serial or entry.serial,
        model=sighting.model or entry.model,
        seen=now,
    )


def move(
    entry: LedgerEntry, sighting: GpuSighting, began: Instant, now: Instant, policy: LemonPolicy
) -> GpuMove:
    """The move of a GPU that is now in another place."""
    was = Stay(node=entry.node, slot=entry.slot, began=began, ended=entry.seen)
    return GpuMove(uuid=entry.subject, was=was, now=sighting, standing=standing(entry, now, policy))


def counted(entry: LedgerEntry, events: Iterable[GpuEvent], policy: LemonPolicy) -> LedgerEntry:
    """The entry with its score computed again, at its last event."""
    known = list(events)
    if not known:
        return replace(entry, heat=0.0, warmed=None, recipe=policy.counting_recipe, outages=())
    last = max((event.at for event in known), key=lambda at: at.wall)
    if entry.is_node:
        began = tuple(at.wall for at in outages(_told(entry, known), policy)[-MANY:])
        heat = float(len(began))
        return replace(entry, heat=heat, warmed=last, recipe=policy.counting_recipe, outages=began)
    heat = sum(term.left for term in terms(entry, known, last.wall, policy))
    return replace(entry, heat=heat, warmed=last, recipe=policy.counting_recipe)


def terms(
    entry: LedgerEntry, events: Iterable[GpuEvent], now: int, policy: LemonPolicy
) -> list[Term]:
    """The terms of a GPU's score; events before somebody cleared it are left out. Empty for a node,
    whose outages are counted."""
    return [] if entry.is_node else sum_of(_told(entry, events), now, policy)


def _told(entry: LedgerEntry, events: Iterable[GpuEvent]) -> list[tuple[str, str, Instant]]:
    return [(e.id, e.what, e.at) for e in events if e.at.wall > entry.cleared]


def recent(entry: LedgerEntry, now: Instant, policy: LemonPolicy) -> list[int]:
    """When each outage of a node that still counts began (µs UTC), the oldest first."""
    since = now.wall - policy.nodes.window * SECOND
    return [began for began in entry.outages if since <= began]


def standing(entry: LedgerEntry, now: Instant, policy: LemonPolicy) -> GpuStanding:
    """The score of an entry now, and its class by that score; a person's mark counts more. A node's
    score is the number of its outages within the policy's span."""
    if entry.is_node:
        score = float(len(recent(entry, now, policy)))
        judged: Class = "suspect" if score >= policy.nodes.times else "good"
        return _standing(entry, score, judged)
    warmed = entry.warmed.wall if entry.warmed else now.wall
    score = decayed(entry.heat, warmed, now.wall, policy)
    return _standing(entry, score, policy.judge_score(score))


def outages_text(entry: LedgerEntry, now: Instant, policy: LemonPolicy) -> str:
    """The reason for a node's score, in a sentence."""
    found, span = recent(entry, now, policy), duration_text(policy.nodes.window)
    if not found:
        return f"no outage in the last {span}"
    last = duration_text(max(0, now.wall - found[-1]) // SECOND)
    times = "1 outage" if len(found) == 1 else f"{len(found)} outages"
    return (
        f"{times} in the last {span}, the newest {last} ago; a suspect from {policy.nodes.times} on"
    )


def _standing(entry: LedgerEntry, score: float, judged: Class) -> GpuStanding:
    if entry.mark:
        judged = "lemon" if entry.mark == "lemon" else "good"
    return GpuStanding(score=score, judged=judged, marked=bool(entry.mark))


def blamed(events: Sequence[GpuEvent], node: str, gpus: int) -> list[GpuEvent]:
    """The events, where an event that befell half of a node's `gpus` (at least three) at once
    becomes one event of the node: its switch, riser or power is to blame, and no GPU becomes a
    lemon by it."""
    struck: dict[str, dict[str, GpuEvent]] = {}
    for event in events:
        if not event.subject.startswith(NODE_PREFIX):
            struck.setdefault(event.what, {})[event.subject] = event
    shared = {w: found for w, found in struck.items() if len(found) >= max(SEVERAL, gpus / 2)}
    own = [e for e in events if e.what not in shared or e.subject.startswith(NODE_PREFIX)]
    return [*own, *(_of_node(found, node) for found in shared.values())]


def _of_node(found: Mapping[str, GpuEvent], node: str) -> GpuEvent:
    """The event of the node. Its id is made from the first GPU's event, so it is the same however
    often it is reported."""
    first = found[min(found)]
    subject, what = f"{NODE_PREFIX}{node}", f"{len(found)} GPUs at once"
    return replace(
        first,
        id=first.id.replace(first.subject, subject),
        subject=subject,
        text=shortened(f"{what}: {first.text}" if first.text else what, 300),
    )


def marked(entry: LedgerEntry, mark: Mark, reason: str, by: str, now: Instant) -> LedgerEntry:
    """The entry with a person's mark; with an empty mark, without mark and score."""
    if mark:
        return replace(entry, mark=mark, reason=reason, by=by)
    return replace(
        entry, mark="", reason=reason, by=by, cleared=now.wall, heat=0.0, warmed=None, outages=()
    )


def marking(entry: LedgerEntry, mark: Mark, reason: str, by: str, now: Instant) -> GpuEvent:
    """A person's mark as an event, for the history."""
    what = f"marked {mark}" if mark else "cleared"
    return GpuEvent(
        id=f"{entry.subject} {what} {now.wall}",
        subject=entry.subject,
        what=what,
        at=now,
        node=entry.node,
        text=reason,
        by=by,
    )


FORGOT = "forgot "
"""The beginning of the name of an event that stands for removed events of a kind."""


def mistaken(events: Iterable[GpuEvent], kinds: Collection[str], since: int) -> list[GpuEvent]:
    """The events of these kinds from `since` (µs UTC) on, which are to be removed."""
    return [event for event in events if event.what in kinds and event.at.wall >= since]


def forgetting(
    entry: LedgerEntry, removed: Sequence[GpuEvent], reason: str, by: str, now: Instant
) -> list[GpuEvent]:
    """One event for each kind of the removed events: how many, who said so, and why."""
    counts = Counter(event.what for event in removed)
    return [
        GpuEvent(
            id=f"{entry.subject} {FORGOT}{kind} {now.wall}",
            subject=entry.subject,
            what=f"{FORGOT}{kind}",
            at=now,
            node=entry.node,
            text=reason,
            count=count,
            by=by,
        )
        for kind, count in counts.items()
    ]


def is_unfounded(
    entry: LedgerEntry, events: Collection[GpuEvent], stays: Collection[object]
) -> bool:
    """Whether only removed events ever mentioned the subject: no driver showed it, and nobody
    marked it."""
    return not (events or stays or entry.mark)
