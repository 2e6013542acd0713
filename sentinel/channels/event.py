"""Maps an alert's message to what services with their own incidents need."""

from typing import Literal

from sentinel.alerting.outbox import is_ending
from sentinel.core.model import Notification, Status
from sentinel.core.text import shorten_to_line

IncidentMove = Literal["open", "acknowledge", "close", "note"]


def incident_move(n: Notification) -> IncidentMove:
    """What happens to the incident: it opens (or stays open), is acknowledged, or is over.

    A note neither opens nor ends an incident, for example about an action of sentinel, and the weekly report.
    """
    if n.reason in ("action", "digest"):
        return "note"
    if is_ending(n):
        return "close"
    return "acknowledge" if n.reason == "ack" else "open"


def severity_word(n: Notification) -> str:
    """critical, warning, unknown, or info if there is no problem."""
    if n.reason in ("test", "action", "digest"):
        return "info"
    return (n.status if n.status is Status.UNKNOWN else n.severity).value


def incident_key(n: Notification) -> str:
    """The key that all messages about one alert share: its id."""
    return shorten_to_line(n.alert or n.key, 200)
