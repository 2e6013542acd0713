"""An alert that changes too often is told once as flapping and once as settled. Pure.

Counts firings and ends within a window, over episodes: Nagios looks at the share of changes
among the last 21 checks instead (flapping.c), which depends on the interval of the check.
"""

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Alert


class FlapPolicy(Struct, frozen=True, kw_only=True):
    """Flapping from `changes` changes within `window` seconds on, until at most a third of them
    are left in it. 0 changes: never."""

    changes: int = 6
    window: float = 3600.0


def changed(alert: Alert, now: Instant, policy: FlapPolicy) -> Alert:
    """The alert after one more firing or end."""
    return replace(alert, changes=(*recent(alert, now, policy), now.wall))


def recent(alert: Alert, now: Instant, policy: FlapPolicy) -> tuple[int, ...]:
    """The changes within the window. Those of a future that a clock jump has undone count too, if
    it is no farther away: else a clock that was a year ahead would silence the alert for a year."""
    window = int(policy.window * SECOND)
    return tuple(at for at in alert.changes if abs(now.wall - at) < window)[-100:]


def starts(alert: Alert, now: Instant, policy: FlapPolicy) -> bool:
    """Whether it has begun to flap."""
    return 0 < policy.changes <= len(recent(alert, now, policy)) and not alert.flapping


def ends(alert: Alert, now: Instant, policy: FlapPolicy) -> bool:
    """Whether it has settled, one way or the other: at once where nothing is to flap any more."""
    few = len(recent(alert, now, policy)) <= policy.changes // 3
    return alert.flapping and (few or not policy.changes)
