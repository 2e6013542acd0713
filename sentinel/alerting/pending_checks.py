"""The checks that a batch still waits for."""

from collections.abc import Mapping

from msgspec import Struct


class PendingChecks(Struct, frozen=True, kw_only=True):
    """The checks of the pass that are still running, with their kinds. `first`: this is the first
    pass of a new state, and its findings go into one message. `set_up`: of which checks a job
    ran when `init` looked, by name, and when that was (microseconds UTC)."""

    checks: Mapping[str, str] = {}  # Kinds of the running checks, by name.
    first: bool = False
    set_up: Mapping[str, int] = {}
