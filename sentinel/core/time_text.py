"""Formats moments as short texts for people."""

from datetime import datetime, timezone, tzinfo


def format_clock(epoch: float, zone: tzinfo | None = None) -> str:
    """`03:15 UTC`, or with the zone's own name."""
    local = datetime.fromtimestamp(epoch, tz=zone or timezone.utc)
    return local.strftime("%H:%M %Z")
