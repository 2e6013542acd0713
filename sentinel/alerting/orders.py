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
from sentinel.alerting.silences import Ack, Remark, RemarkKind, Silence, match_exactly
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.model import Alert
from sentinel.core.text import visible
from sentinel.core.values import Duration

MIN_SILENCE_S = 60 * SECOND
MAX_SILENCE_S = 90 * 86_400 * SECOND
"""Microseconds: what is to be quiet for longer belongs into the file."""

NAME, NOTE = 100, 400
"""Characters of who it is and of what they write; more is cut off."""


class WrongOrder(SentinelError):
    """The order makes no sense; in words for whoever gave it."""

    exit_code = 64


class NoSuchAlert(WrongOrder):
    """No such alert now."""


class AlertPending(WrongOrder):
    """The alert is pending."""


class Author(Struct, frozen=True):
    """`who` says it, and `how`: page, api, link, cli, top, or the name of a channel."""

    who: str
    how: str
    note: str = ""


def acknowledge_alert(alerts: Iterable[Alert], name: str, said: Author, now: Instant) -> Ack:
    """Somebody has the alert of this id; raises NoSuchAlert and AlertPending."""
    alert = find_alert(alerts, name)
    if not alert.firing:
        raise AlertPending("it does not fire yet: there is nothing to acknowledge")
    return Ack(
        alert=alert.id, at=now, who=_author_name(said), how=said.how, note=_author_note(said)
    )


def make_silence(match: Match, ends: int, said: Author, now: Instant, name: str = "") -> Silence:
    """Nobody is told of what matches until `ends` (µs UTC). `name`: in place of an earlier one of
    that name. Raises WrongOrder."""
    if ends <= now.wall:
        raise WrongOrder("the end of the silence lies in the past")
    if not MIN_SILENCE_S <= ends - now.wall <= MAX_SILENCE_S:
        raise WrongOrder("a silence is from 1m to 90d; longer ones belong into the file: silences")
    return Silence(
        id=name or os.urandom(4).hex(),
        match=match,
        starts=now.wall,
        ends=ends,
        who=_author_name(said),
        how=said.how,
        reason=_author_note(said),
    )


def silence_alert(
    alerts: Iterable[Alert], alert: str, length: str, said: Author, now: Instant, name: str = ""
) -> Silence:
    """The same for so long, of the alert of this id; raises WrongOrder."""
    return make_silence(
        match_exactly(find_alert(alerts, alert).key), silence_end(length, now), said, now, name
    )


def make_remark(
    incident: str, deed: RemarkKind, said: Author, now: Instant, text: str = "", alert: str = ""
) -> Remark:
    """What somebody says of an incident; raises WrongOrder where nothing is said. `said.note` is not part of it."""
    text = visible(text.strip()[:NOTE])
    if deed != "split" and not text:
        raise WrongOrder(f"{deed}: {'name somebody' if deed == 'assign' else 'say what'}")
    return Remark(
        incident=incident,
        deed=deed,
        at=now,
        who=_author_name(said),
        how=said.how,
        text=text,
        alert=alert,
    )


def silence_alerts(alerts: Iterable[Alert], ends: int, said: Author, now: Instant) -> Silence:
    """Nobody is told of these until `ends`; what comes later, also of the same subjects, is told."""
    quiet = make_silence(Match(), ends, said, now)
    return replace(quiet, alerts=frozenset(alert.id for alert in alerts))


def find_alert(alerts: Iterable[Alert], name: str) -> Alert:
    """The alert of this id, pending or firing; raises NoSuchAlert."""
    found = next((a for a in alerts if a.id == name and not a.over), None)
    if found is None:
        raise NoSuchAlert("no such alert is there now: it may be over")
    return found


def silence_end(length: str, now: Instant) -> int:
    """When a silence ends that lasts so long (2h, 3d), µs UTC; raises WrongOrder."""
    try:
        return now.wall + int(Duration.parse(length) * SECOND)
    except Invalid as error:
        raise WrongOrder(str(error)) from None


def _author_name(said: Author) -> str:
    return visible(said.who.strip()[:NAME])


def _author_note(said: Author) -> str:
    return visible(said.note.strip()[:NOTE])
