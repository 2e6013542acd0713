"""Formats moments as short texts for people."""

from datetime import datetime, timezone, tzinfo


def format_clock(epoch: float, zone: tzinfo | None = None, every: float = 60.0) -> str:
    """`03:15 UTC`, or with the zone's own name. With seconds if what it tells of comes `every` so many
    seconds, less than a minute."""
    local = datetime.fromtimestamp(epoch, tz=zone or timezone.utc)
    return local.strftime("%H:%M %Z" if every >= 60 else "%H:%M:%S %Z")
