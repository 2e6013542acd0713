"""How long the state remembers."""

from msgspec import Struct

from sentinel.core.clock import SECOND

DAY = 86_400
HOUR = 3600 * SECOND
"""Seconds; µs."""


class Keep(Struct, frozen=True, kw_only=True):
    """Seconds after which a thing is forgotten by `prune`; unsent rows never are.

    `fine`: of samples older than that the last one of each hour (UTC) is kept.
    """

    sent: int = 90 * DAY
    transitions: int = 90 * DAY
    samples: int = 180 * DAY
    actions: int = 400 * DAY
    fine: int = 7 * DAY


USUAL = Keep()
