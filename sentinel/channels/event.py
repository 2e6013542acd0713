"""What an alert's message means to services that keep incidents themselves."""

from typing import Literal

from sentinel.alerting.outbox import is_ending
from sentinel.core.model import Notification, Status
from sentinel.core.text import shorten_to_line

IncidentMove = Literal["open", "acknowledge", "close", "note"]


def incident_move(n: Notification) -> IncidentMove:
    """Open (or still open), taken up by somebody, or over; or a note, such as what sentinel
    itself did, which neither opens an incident nor ends one."""
    if n.reason == "action":
        return "note"
    if is_ending(n):
        return "close"
    return "acknowledge" if n.reason == "ack" else "open"


def severity_word(n: Notification) -> str:
    """critical, warning, unknown, or info for what is no trouble."""
    if n.reason in ("test", "action", "digest"):
        return "info"
    return (n.status if n.status is Status.UNKNOWN else n.severity).value


def incident_key(n: Notification) -> str:
    """What all messages about one alert have in common: its id."""
    return shorten_to_line(n.alert or n.key, 200)
