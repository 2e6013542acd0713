"""Acknowledge and silence. The page, the API, links, the command line, `top`, and services like
PagerDuty all use these functions. Pure.

Each of them makes its order here and writes it to the state. The leader on that state logs it
(engine.order_log).
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
"""The longest silence, in microseconds. A longer one belongs into the configuration."""

NAME, NOTE = 100, 400
"""The longest name and note of a person, in characters. The rest is cut off."""


class WrongOrder(SentinelError):
    """The order makes no sense. The text tells its author why."""

    exit_code = 64


class NoSuchAlert(WrongOrder):
    """There is no open alert with this id."""


class AlertPending(WrongOrder):
    """The alert is pending, so it cannot be acknowledged yet."""


class Author(Struct, frozen=True):
    """The person who gives an order."""

    who: str  # Who gives it.
    how: str  # The way: page, api, link, cli, top, or the name of a channel.
    note: str = ""  # What the person wrote with the order.


def acknowledge_alert(alerts: Iterable[Alert], name: str, said: Author, now: Instant) -> Ack:
    """Acknowledge the alert with this id. Raises NoSuchAlert and AlertPending."""
    alert = find_alert(alerts, name)
    if not alert.firing:
        raise AlertPending("it does not fire yet: there is nothing to acknowledge")
    return Ack(
        alert=alert.id, at=now, who=_author_name(said), how=said.how, note=_author_note(said)
    )


def make_silence(match: Match, ends: int, said: Author, now: Instant, name: str = "") -> Silence:
    """Make a silence for matching alerts until `ends` (µs UTC). It replaces an earlier one with the
    same `name`. Raises WrongOrder."""
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
    """Make a silence for the alert with this id, for the given time. Raises WrongOrder."""
    return make_silence(
        match_exactly(find_alert(alerts, alert).key), silence_end(length, now), said, now, name
    )


def make_remark(
    incident: str, deed: RemarkKind, said: Author, now: Instant, text: str = "", alert: str = ""
) -> Remark:
    """Make a person's remark about an incident. Raises WrongOrder if it is empty. `said.note` is
    ignored."""
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
    """Make a silence for these alerts until `ends`. Later alerts are sent, even if they are about
    the same subjects."""
    quiet = make_silence(Match(), ends, said, now)
    return replace(quiet, alerts=frozenset(alert.id for alert in alerts))


def find_alert(alerts: Iterable[Alert], name: str) -> Alert:
    """The pending or firing alert with this id. Raises NoSuchAlert."""
    found = next((a for a in alerts if a.id == name and not a.over), None)
    if found is None:
        raise NoSuchAlert("no such alert is there now: it may be over")
    return found


def silence_end(length: str, now: Instant) -> int:
    """The end (µs UTC) of a silence of this length (2h, 3d). Raises WrongOrder."""
    try:
        return now.wall + int(Duration.parse(length) * SECOND)
    except Invalid as error:
        raise WrongOrder(str(error)) from None


def _author_name(said: Author) -> str:
    return visible(said.who.strip()[:NAME])


def _author_note(said: Author) -> str:
    return visible(said.note.strip()[:NOTE])
