"""Acknowledge and silence: one deed each for the page, the API, links, the command line, `top` and
what services like PagerDuty say. Pure.

Everyone makes their order here and writes it to the state; whoever leads on that state logs it
(engine.order_log), whichever way it came.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.settings import Match
from sentinel.alerting.silences import Ack, Deed, Remark, Silence, exactly
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.model import Alert
from sentinel.core.text import visible
from sentinel.core.values import Duration

SHORTEST = 60 * SECOND
LONGEST = 90 * 86_400 * SECOND
"""Microseconds: what is to be quiet for longer belongs into the file."""

NAME, NOTE = 100, 400
"""Characters of who it is and of what they write; more is cut off."""


class Wrong(SentinelError):
    """The order makes no sense; in words for whoever gave it."""

    exit_code = 64


class NotThere(Wrong):
    """No such alert now."""


class NotYet(Wrong):
    """The alert is pending."""


class Said(Struct, frozen=True):
    """`who` says it, and `how`: page, api, link, cli, top, or the name of a channel."""

    who: str
    how: str
    note: str = ""


def acknowledge(alerts: Iterable[Alert], name: str, said: Said, now: Instant) -> Ack:
    """Somebody has the alert of this id; raises NotThere and NotYet."""
    alert = find(alerts, name)
    if not alert.firing:
        raise NotYet("it does not fire yet: there is nothing to acknowledge")
    return Ack(alert=alert.id, at=now, who=_who(said), how=said.how, note=_note(said))


def silence(match: Match, ends: int, said: Said, now: Instant, name: str = "") -> Silence:
    """Nobody is told of what matches until `ends` (µs UTC). `name`: in place of an earlier one of
    that name. Raises Wrong."""
    if ends <= now.wall:
        raise Wrong("the end of the silence lies in the past")
    if not SHORTEST <= ends - now.wall <= LONGEST:
        raise Wrong("a silence is from 1m to 90d; longer ones belong into the file: silences")
    return Silence(
        id=name or os.urandom(4).hex(),
        match=match,
        starts=now.wall,
        ends=ends,
        who=_who(said),
        how=said.how,
        reason=_note(said),
    )


def silence_alert(
    alerts: Iterable[Alert], alert: str, length: str, said: Said, now: Instant, name: str = ""
) -> Silence:
    """The same for so long, of the alert of this id; raises Wrong."""
    return silence(exactly(find(alerts, alert).key), end(length, now), said, now, name)


def remark(
    incident: str, deed: Deed, said: Said, now: Instant, text: str = "", alert: str = ""
) -> Remark:
    """What somebody says of an incident; raises Wrong where nothing is said. `said.note` is not part of it."""
    text = visible(text.strip()[:NOTE])
    if deed != "split" and not text:
        raise Wrong(f"{deed}: {'name somebody' if deed == 'assign' else 'say what'}")
    return Remark(
        incident=incident, deed=deed, at=now, who=_who(said), how=said.how, text=text, alert=alert
    )


def silence_alerts(alerts: Iterable[Alert], ends: int, said: Said, now: Instant) -> Silence:
    """Nobody is told of these until `ends`; what comes later, also of the same subjects, is told."""
    quiet = silence(Match(), ends, said, now)
    return replace(quiet, alerts=frozenset(alert.id for alert in alerts))


def find(alerts: Iterable[Alert], name: str) -> Alert:
    """The alert of this id, pending or firing; raises NotThere."""
    found = next((a for a in alerts if a.id == name and not a.over), None)
    if found is None:
        raise NotThere("no such alert is there now: it may be over")
    return found


def end(length: str, now: Instant) -> int:
    """When a silence ends that lasts so long (2h, 3d), µs UTC; raises Wrong."""
    try:
        return now.wall + int(Duration.parse(length) * SECOND)
    except Invalid as error:
        raise Wrong(str(error)) from None


def _who(said: Said) -> str:
    return visible(said.who.strip()[:NAME])


def _note(said: Said) -> str:
    return visible(said.note.strip()[:NOTE])
