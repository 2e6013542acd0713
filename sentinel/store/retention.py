"""How long the state remembers."""

from msgspec import Struct

from sentinel.core.clock import SECOND

DAY_S = 86_400
HOUR_US = 3600 * SECOND
"""Seconds; µs."""


class Retention(Struct, frozen=True, kw_only=True):
    """Seconds after which a thing is forgotten by `prune`; unsent rows never are.

    `fine`: of samples older than that the last one of each hour (UTC) is kept.
    """

    sent: int = 90 * DAY_S
    transitions: int = 90 * DAY_S
    samples: int = 180 * DAY_S
    actions: int = 400 * DAY_S
    fine: int = 7 * DAY_S


DEFAULT_RETENTION = Retention()
