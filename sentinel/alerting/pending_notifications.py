"""What each channel is owed about an alert, from what it knows and what is so. Pure.

Nothing depends on the moment at which something changed: a silence that ends, hours that
begin, a channel that is new or an escalation all come out as somebody not knowing yet.
"""

from collections.abc import Mapping

from sentinel.alerting.routing import Listener
from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Alert, Told


def owed(
    alert: Alert, heard: Mapping[str, Listener], now: Instant, *, acked: bool = False
) -> dict[str, list[str]]:
    """Channels by reason (firing, flapping, worse, repeat); nothing while it does not fire, or is
    clear and only kept firing. What flaps is told to those who do not know, and when it gets
    worse; it is not repeated."""
    due: dict[str, list[str]] = {}
    if not alert.firing or alert.clear_since is not None:
        return due
    for name, listener in heard.items():
        reason = _reason(alert, alert.told.get(name), listener, now, acked)
        if reason:
            due.setdefault(reason, []).append(name)
    return due


def _reason(alert: Alert, told: Told | None, listener: Listener, now: Instant, acked: bool) -> str:
    if told is None:
        return "flapping" if alert.flapping else "firing"
    if alert.severity.rank > told.severity.rank:
        return "worse"
    if not (acked or alert.flapping) and elapsed(told.at, now) >= listener.repeat:
        return "repeat"
    return ""
