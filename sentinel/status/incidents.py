"""What there is to tell of an incident: whom it hurts, who has it, what happened when, and how the same
ended before. Pure; all text inert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from msgspec import Struct, to_builtins

from sentinel.alerting.incidents import stands_still, weight
from sentinel.alerting.processor import iso
from sentinel.alerting.silences import Orders, Remark, Silence
from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.model import Alert, Status, Transition, worst
from sentinel.core.text import visible, visible_lines
from sentinel.core.values import duration_text
from sentinel.status.types import IncidentFact

AGAIN = 14 * 86_400
"""Seconds in which the same trouble has come before: two weeks hold every weekday twice."""

_BEGINS, _ENDS = ("firing", "flapping"), ("resolved", "gone", "settled")
Story = Mapping[str, Any]


class Known(Struct, frozen=True, kw_only=True):
    """What the state knows of alerts; `history` from the oldest on."""

    alerts: Sequence[Alert]
    history: Sequence[Transition]
    orders: Orders
    now: Instant
    zone: tzinfo


def opened(known: Known) -> list[tuple[str, list[Alert]]]:
    """Incidents with their firing alerts, the cause first; the most important incident first."""
    found: dict[str, list[Alert]] = {}
    for alert in known.alerts:
        if alert.firing and not alert.over:
            found.setdefault(alert.incident or alert.id, []).append(alert)
    for incident, members in found.items():
        members.sort(key=lambda a: (a.id != incident, weight(a, known.now), a.key))
    return sorted(found.items(), key=lambda i: min(weight(a, known.now) for a in i[1]))


def fact(incident: str, members: Sequence[Alert], known: Known) -> IncidentFact:
    """One that is not over."""
    cause, acks = members[0], known.orders.acks
    trainings = [a for a in members if stands_still(a.kind, a.key.subject, a.severity)]
    users = dict.fromkeys(a.labels["user"] for a in members if a.labels.get("user"))
    have = dict.fromkeys(acks[a.id].said for a in members if a.id in acks)
    return IncidentFact(
        incident=incident,
        severity=worst(a.severity for a in members),
        title=_title(incident, cause, known),
        since=min(a.since.wall for a in members) / SECOND,
        for_s=round(max(elapsed(a.since, known.now) for a in members), 1),
        alerts=len(members),
        trainings=tuple(visible(a.key.subject) for a in trainings),
        gpus=sum(_gpus(a) for a in trainings),
        users=tuple(visible(u) for u in users),
        acknowledged_by=tuple(visible(h) for h in have),
        **_said(incident, known.orders),
    )


def row(incident: str, members: Sequence[Alert], known: Known) -> dict[str, Any]:
    """The same with times as people read them."""
    told = to_builtins(fact(incident, members, known))
    lasted = told.pop("for_s")
    since = iso(Instant(wall=int(told["since"] * SECOND)), known.zone)
    return {**told, "since": since, "for": duration_text(lasted)}


def story(incident: str, known: Known) -> dict[str, Any]:
    """All of one, over or not."""
    members = dict(opened(known)).get(incident, [])
    past = [t for t in known.history if (t.incident or t.alert) == incident]
    remarks = [r for r in known.orders.remarks if r.incident == incident]
    first = next((t for t in past if t.alert == incident), past[0] if past else None)
    about = members[0] if members else first
    return {
        **(row(incident, members, known) if members else _over(incident, past, known)),
        "members": [_member(a) for a in members],
        "timeline": timeline(past, remarks, known, known.orders.planned(incident)),
        "before": _before(about, incident, known) if about is not None else [],
    }


def timeline(
    past: Iterable[Transition],
    remarks: Iterable[Remark],
    known: Known,
    planned: Silence | None = None,
) -> list[dict[str, str]]:
    """What happened and what people said of it, in the order of time."""
    alerts = dict[str, str]()
    rows: list[tuple[int, dict[str, str]]] = []
    for t in past:
        alerts[t.alert] = visible(named(t))
        told = {"severity": t.severity.value, "summary": visible(t.summary)}
        rows.append((t.at.wall, {"reason": t.reason, "about": alerts[t.alert], **told}))
    for r in remarks:
        text = r.text or alerts.get(r.alert, r.alert)
        told = {"severity": "", "summary": visible(text)}
        rows.append((r.at.wall, {"reason": r.deed, "about": visible(r.who), **told}))
    for alert, ack in known.orders.acks.items():
        if alert in alerts:
            told = {"severity": "", "summary": visible(f"{alerts[alert]} {ack.note}".strip())}
            rows.append((ack.at.wall, {"reason": "ack", "about": visible(ack.who), **told}))
    for at, what in [(planned.starts, "begins"), (planned.ends, "ends")] if planned else []:
        told = {"severity": "", "summary": visible(planned.reason if planned else "")}
        rows.append((at, {"reason": what, "about": "Slurm", **told}))
    rows.sort(key=lambda one: one[0])
    return [{"at": iso(Instant(wall=at), known.zone), **told} for at, told in rows]


def named(of: Alert | Transition) -> str:
    """Check and subject, as people call it."""
    return f"{of.key.check} {of.key.subject}".strip()


def again(story: Story) -> str:
    """`third time in 14 days`; empty where it is the first."""
    times = len(story["before"]) + 1
    words = {2: "second", 3: "third"}
    return f"{words.get(times, f'{times}th')} time in 14 days" if times > 1 else ""


def _title(incident: str, about: Alert | Transition, known: Known) -> str:
    planned = known.orders.planned(incident)
    return visible(planned.reason if planned else f"{named(about)}: {about.summary}")


def _gpus(alert: Alert) -> float:
    found = alert.values.get("gpus")
    return found if isinstance(found, int | float) else 0


def _said(incident: str, orders: Orders) -> dict[str, Any]:
    comment = orders.comment(incident)
    return {
        "assigned_to": visible(orders.assigned(incident)),
        "comment": visible(f"{comment.who}: {comment.text}") if comment else "",
    }


def _member(a: Alert) -> dict[str, Any]:
    return {
        "alert": a.id,
        "check": a.key.check,
        "subject": visible(a.key.subject),
        "severity": a.severity.value,
        "summary": visible(a.summary),
        "details": visible_lines(a.details),
        "commands": [visible(c) for c in a.commands],
        "told": sorted(a.told),
        "held_back": visible(a.held),
    }


def _over(incident: str, past: Sequence[Transition], known: Known) -> dict[str, Any]:
    first = next((t for t in past if t.alert == incident), past[0])
    bad = {t.key: t for t in past if t.reason in _BEGINS}
    trainings = [t for t in bad.values() if stands_still(t.kind, t.key.subject, t.severity)]
    return {
        "incident": incident,
        "severity": worst(t.severity for t in past).value,
        "title": _title(incident, first, known),
        "since": iso(first.since, known.zone),
        "for": duration_text(elapsed(first.since, past[-1].at)),
        "alerts": 0,
        "trainings": [visible(t.key.subject) for t in trainings],
        "gpus": 0,
        "users": [],
        "acknowledged_by": [],
        **_said(incident, known.orders),
    }


def _before(about: Alert | Transition, incident: str, known: Known) -> list[dict[str, str]]:
    """The same trouble within AGAIN before this one, the newest first, with what ended each."""
    since = about.since.wall
    mine = [t for t in known.history if t.key == about.key]
    begun = {
        t.alert: t
        for t in reversed(mine)
        if t.reason in _BEGINS and since - AGAIN * SECOND <= t.since.wall < since
    }
    begun.pop(incident, None)
    return [_episode(t, mine, known) for t in begun.values()]


def _episode(begun: Transition, mine: Iterable[Transition], known: Known) -> dict[str, str]:
    incident = begun.incident or begun.alert
    ended = [t for t in mine if t.alert == begun.alert and t.reason in _ENDS]
    over = ended[-1] if ended and ended[-1].status is Status.OK else None
    deeds = [t.summary for t in mine if t.alert == begun.alert and t.reason == "action"]
    causes = (r for r in known.orders.remarks if (r.incident, r.deed) == (incident, "close"))
    closed = [f"{r.who}: {r.text}" for r in causes]
    how = "; ".join([*closed, *deeds, *([over.summary] if over else [])])
    return {
        "incident": incident,
        "at": iso(begun.since, known.zone),
        "for": duration_text(elapsed(begun.since, over.at)) if over else "",
        "summary": visible(begun.summary),
        "ended_by": visible(how),
    }
