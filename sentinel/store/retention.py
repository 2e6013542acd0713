"""How long the state keeps each kind of data."""

from msgspec import Struct

from sentinel.core.clock import SECOND

DAY_S = 86_400
HOUR_US = 3600 * SECOND
"""An hour in µs."""


class Retention(Struct, frozen=True, kw_only=True):
    """Seconds after which a thing is forgotten by `prune`; unsent rows never are.

    `fine`: of samples older than that the last one of each hour (UTC) is kept.
    """

    sent: int = 90 * DAY_S  # Seconds for which sent messages are kept.
    transitions: int = 90 * DAY_S  # Seconds for which changes of alerts are kept.
    samples: int = 180 * DAY_S  # Seconds for which numbers are kept.
    ledger: int = 2 * 365 * DAY_S  # Seconds for which the ledger of runs is kept.
    actions: int = 400 * DAY_S  # Seconds for which records of actions are kept.
    fine: int = 7 * DAY_S


DEFAULT_RETENTION = Retention()
