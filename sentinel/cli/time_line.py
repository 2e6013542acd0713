"""The history of an alert: events and messages side by side, with ages and local times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from sentinel.core.values import age_text
from sentinel.status.silences import explain_unheard


def render_time_line(facts: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """A line for each event and each message, the oldest first; `facts` as in the JSON of `explain`."""
    rows = [*_list_events(facts), *_list_messages(facts)]
    if not rows:
        return
    yield "time line:"
    days = {at.date() for at, _, _ in rows}
    form = "%H:%M:%S" if days == {now.date()} else "%a %m-%d %H:%M:%S"
    ages = [f"{age_text((now - at).total_seconds())} ago" for at, _, _ in rows]
    width = max(map(len, ages))
    order = sorted(range(len(rows)), key=lambda number: (rows[number][0], rows[number][1]))
    for number in order:
        at, kind, text = rows[number]
        lead = "" if kind == EVENT else "  "
        yield f"  {ages[number]:>{width}}  {at.strftime(form)}  {lead}{text}"
    if not facts["deliveries"]:
        yield f"told: nobody, {explain_silence(facts)}"


EVENT, MESSAGE = 0, 1
"""The order of an event and a message at the same moment."""

_Row = tuple[datetime, int, str]


def _list_events(facts: Mapping[str, Any]) -> Iterator[_Row]:
    for event in facts["timeline"]:
        degree = f" ({event['severity']})" if event["severity"] else f" by {event['about']}"
        text = f"{event['reason']}{degree}: {event['summary']}"
        yield datetime.fromisoformat(event["at"]), EVENT, text


def _list_messages(facts: Mapping[str, Any]) -> Iterator[_Row]:
    for one in facts["deliveries"]:
        answer = f": {one['answer']}" if one["answer"] else ""
        what = f"{one['channel']} ({one['reason']})"
        if one["sent"]:
            yield datetime.fromisoformat(one["sent"]), MESSAGE, f"told {what}{answer}"
        else:
            tried = f", {one['attempts']} attempts" if one["attempts"] else ", not tried yet"
            text = f"NOT told {what}{tried}{answer}"
            yield datetime.fromisoformat(one["committed"]), MESSAGE, text


def explain_silence(facts: Mapping[str, Any]) -> str:
    """Why nobody was notified of an alert."""
    now = facts["now"] or {}
    return explain_unheard(
        held=now.get("held_back", ""),
        pending=now.get("state") == "pending",
        fired=any(t["reason"] == "firing" for t in facts["transitions"]),
        muted=bool(now.get("owner_muted")),
    )
