"""Moments as short texts for people."""

from datetime import datetime, timezone, tzinfo


def format_clock(epoch: float, zone: tzinfo | None = None) -> str:
    """`03:15 UTC`, or the zone's own name for itself."""
    local = datetime.fromtimestamp(epoch, tz=zone or timezone.utc)
    return local.strftime("%H:%M %Z")
