"""How long the state remembers."""

from msgspec import Struct

DAY = 86_400


class Keep(Struct, frozen=True, kw_only=True):
    """Seconds after which a thing is forgotten by `prune`; unsent rows never are."""

    sent: int = 90 * DAY
    transitions: int = 90 * DAY
    samples: int = 35 * DAY
    actions: int = 400 * DAY


USUAL = Keep()
