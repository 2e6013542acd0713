"""The facts about an incident: whom it affects, who owns it, its history, and how similar ones
ended. Pure; texts have no control characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from msgspec import Struct, to_builtins

from sentinel.alerting.incidents import is_standstill, rank_alert
from sentinel.alerting.notifications import describe_hold, format_iso
from sentinel.alerting.silences import Orders, Remark, Silence
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.model import Alert, Status, Transition, get_worst_status
from sentinel.core.text import visible, visible_lines
from sentinel.status.types import IncidentFact

REPEAT_WINDOW_S = 14 * 86_400
"""Seconds in which the same trouble has come before: two weeks hold every weekday twice."""

_BEGINS, _ENDS = ("firing", "flapping"), ("resolved", "gone", "settled")
Story = Mapping[str, Any]


class IncidentInputs(Struct, frozen=True, kw_only=True):
    """What the state knows of alerts; `history` from the oldest on."""

    alerts: Sequence[Alert]
    history: Sequence[Transition]
    orders: Orders
    now: Instant
    zone: tzinfo


def group_open_incidents(known: IncidentInputs) -> list[tuple[str, list[Alert]]]:
    """Incidents with their firing alerts, the cause first; the most important incident first."""
    found: dict[str, list[Alert]] = {}
    for alert in known.alerts:
        if alert.firing and not alert.over:
            found.setdefault(alert.incident or alert.id, []).append(alert)
    for incident, members in found.items():
        members.sort(key=lambda a: (a.id != incident, rank_alert(a, known.now), a.key))
    return sorted(found.items(), key=lambda i: min(rank_alert(a, known.now) for a in i[1]))


def make_incident_fact(
    incident: str, members: Sequence[Alert], known: IncidentInputs
) -> IncidentFact:
    """The fact about an incident that is not over."""
    cause, acks = members[0], known.orders.acks
    trainings = [a for a in members if is_standstill(a.kind, a.key.subject, a.severity)]
    users = dict.fromkeys(a.labels["user"] for a in members if a.labels.get("user"))
    have = dict.fromkeys(acks[a.id].author_text for a in members if a.id in acks)
    return IncidentFact(
        incident=incident,
        severity=get_worst_status(a.severity for a in members),
        title=_make_title(incident, cause, known),
        since=min(a.since.wall for a in members) / SECOND,
        for_s=round(max(get_elapsed_s(a.since, known.now) for a in members), 1),
        alerts=len(members),
        trainings=tuple(visible(a.key.subject) for a in trainings),
        gpus=sum(_count_gpus(a) for a in trainings),
        users=tuple(visible(u) for u in users),
        acknowledged_by=tuple(visible(h) for h in have),
        **_describe_orders(incident, known.orders),
    )


def make_incident_row(
    incident: str, members: Sequence[Alert], known: IncidentInputs
) -> dict[str, Any]:
    """The same with times as people read them."""
    told = to_builtins(make_incident_fact(incident, members, known))
    since = format_iso(Instant(wall=int(told["since"] * SECOND)), known.zone)
    return {**told, "since": since, "for_s": int(told["for_s"])}


def describe_incident(incident: str, known: IncidentInputs) -> dict[str, Any]:
    """All of one, over or not."""
    members = dict(group_open_incidents(known)).get(incident, [])
    past = [t for t in known.history if (t.incident or t.alert) == incident]
    remarks = [r for r in known.orders.remarks if r.incident == incident]
    first = next((t for t in past if t.alert == incident), past[0] if past else None)
    about = members[0] if members else first
    return {
        **(
            make_incident_row(incident, members, known)
            if members
            else _describe_ended(incident, past, known)
        ),
        "members": [_describe_member(a, known.zone) for a in members],
        "timeline": build_timeline(past, remarks, known, known.orders.find_maintenance(incident)),
        "before": _find_earlier(about, incident, known) if about is not None else [],
    }


def build_timeline(
    past: Iterable[Transition],
    remarks: Iterable[Remark],
    known: IncidentInputs,
    planned: Silence | None = None,
) -> list[dict[str, str]]:
    """What happened and what people said of it, in the order of time."""
    alerts = dict[str, str]()
    rows: list[tuple[int, dict[str, str]]] = []
    for t in past:
        alerts[t.alert] = visible(name_alert(t))
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
    return [{"at": format_iso(Instant(wall=at), known.zone), **told} for at, told in rows]


def name_alert(of: Alert | Transition) -> str:
    """Check and subject, as people call it; one word if both are the same."""
    check, subject = of.key.check, of.key.subject
    return check if subject in ("", check) else f"{check} {subject}"


def describe_repeats(story: Story) -> str:
    """For example `third time in 14 days`. Empty for the first time."""
    times = len(story["before"]) + 1
    words = {2: "second", 3: "third"}
    return f"{words.get(times, f'{times}th')} time in 14 days" if times > 1 else ""


def _make_title(incident: str, about: Alert | Transition, known: IncidentInputs) -> str:
    planned = known.orders.find_maintenance(incident)
    return visible(planned.reason if planned else f"{name_alert(about)}: {about.summary}")


def _count_gpus(alert: Alert) -> float:
    found = alert.values.get("gpus")
    return found if isinstance(found, int | float) else 0


def _describe_orders(incident: str, orders: Orders) -> dict[str, Any]:
    comment = orders.last_comment(incident)
    return {
        "assigned_to": visible(orders.find_assignee(incident)),
        "comment": visible(f"{comment.who}: {comment.text}") if comment else "",
    }


def _describe_member(a: Alert, zone: tzinfo) -> dict[str, Any]:
    return {
        "alert": a.id,
        "check": a.key.check,
        "subject": visible(a.key.subject),
        "severity": a.severity.value,
        "summary": visible(a.summary),
        "details": visible_lines(a.details),
        "commands": [visible(c) for c in a.commands],
        "acts": [visible(c) for c in a.acts],
        "told": sorted(a.told),
        "held_back": visible(describe_hold(a.on_hold, zone)),
    }


def _describe_ended(
    incident: str, past: Sequence[Transition], known: IncidentInputs
) -> dict[str, Any]:
    first = next((t for t in past if t.alert == incident), past[0])
    bad = {t.key: t for t in past if t.reason in _BEGINS}
    trainings = [t for t in bad.values() if is_standstill(t.kind, t.key.subject, t.severity)]
    return {
        "incident": incident,
        "severity": get_worst_status(t.severity for t in past).value,
        "title": _make_title(incident, first, known),
        "since": format_iso(first.since, known.zone),
        "for_s": round(get_elapsed_s(first.since, past[-1].at)),
        "alerts": 0,
        "trainings": [visible(t.key.subject) for t in trainings],
        "gpus": 0,
        "users": [],
        "acknowledged_by": [],
        **_describe_orders(incident, known.orders),
    }


def _find_earlier(
    about: Alert | Transition, incident: str, known: IncidentInputs
) -> list[dict[str, Any]]:
    """The same trouble within AGAIN before this one, the newest first, with what ended each."""
    since = about.since.wall
    mine = [t for t in known.history if t.key == about.key]
    begun = {
        t.alert: t
        for t in reversed(mine)
        if t.reason in _BEGINS and since - REPEAT_WINDOW_S * SECOND <= t.since.wall < since
    }
    begun.pop(incident, None)
    return [_describe_episode(t, mine, known) for t in begun.values()]


def _describe_episode(
    begun: Transition, mine: Iterable[Transition], known: IncidentInputs
) -> dict[str, Any]:
    incident = begun.incident or begun.alert
    ended = [t for t in mine if t.alert == begun.alert and t.reason in _ENDS]
    over = ended[-1] if ended and ended[-1].status is Status.OK else None
    acted = [t.summary for t in mine if t.alert == begun.alert and t.reason == "action"]
    causes = (r for r in known.orders.remarks if (r.incident, r.deed) == (incident, "close"))
    closed = [f"{r.who}: {r.text}" for r in causes]
    how = "; ".join([*closed, *acted, *([over.summary] if over else [])])
    return {
        "incident": incident,
        "at": format_iso(begun.since, known.zone),
        "for_s": round(get_elapsed_s(begun.since, over.at)) if over else None,
        "summary": visible(begun.summary),
        "ended_by": visible(how),
    }
