"""Acknowledge and silence, for the page and the API alike."""

from __future__ import annotations

import logging
import secrets

from sentinel.alerting.silences import Ack, Silence, exactly
from sentinel.core.clock import SECOND
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert
from sentinel.core.text import visible
from sentinel.core.values import Duration
from sentinel.web.auth import Refused
from sentinel.web.snapshot_cache import Live

LONGEST = 7 * 86_400.0
"""Seconds: what is to be quiet for longer belongs into the file."""

NOTE = 400
_LOG = logging.getLogger("sentinel")


async def acknowledge(live: Live, alert_id: str, who: str, note: str = "") -> str:
    """Somebody has it; what was done, in words. Raises Refused and StoreError."""
    alert = await _firing(live, alert_id)
    ack = Ack(alert=alert.id, at=live.clock.now(), who=who, note=visible(note[:NOTE]))
    await live.order(ack)
    _tell("ack", alert, who)
    return "Acknowledged: no repeats and no escalation until it ends."


async def silence(live: Live, alert_id: str, who: str, length: str, reason: str = "") -> Silence:
    """Nobody is told of it for so long. Raises Refused and StoreError."""
    alert, seconds = await _firing(live, alert_id), _length(length)
    now = live.clock.now()
    order = Silence(
        id=secrets.token_hex(4),
        match=exactly(alert.key),
        starts=now.wall,
        ends=now.wall + int(seconds * SECOND),
        who=who,
        reason=visible(reason[:NOTE]),
    )
    await live.order(order)
    _tell("silence", alert, who)
    return order


async def _firing(live: Live, alert_id: str) -> Alert:
    alerts = await live.source.read(lambda store: store.alerts())
    found = next((a for a in alerts if a.id == alert_id), None)
    if found is None or found.over:
        raise Refused("no such alert is there now: it may be over", 404)
    if not found.firing:
        raise Refused("it does not fire yet: there is nothing to answer", 409)
    return found


def _length(text: str) -> float:
    try:
        seconds = float(Duration.parse(text))
    except Invalid as error:
        raise Refused(str(error), 400) from None
    if not 60 <= seconds <= LONGEST:
        raise Refused("from 1m to 7d; longer ones belong into the file: silences", 400)
    return seconds


def _tell(event: str, alert: Alert, who: str) -> None:
    fields = {"event": event, "alert": alert.id, "check": alert.key.check, "who": who}
    fields["subject"] = alert.key.subject
    _LOG.info("alert %s: %s by %s", alert.id, event, visible(who), extra={"fields": fields})
