"""Decides whether the watcher may report that it works, and whether its peer works. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.model import CheckRun

MAX_LATENESS_S = 60.0
"""Seconds by which a check may be late beyond twice its interval. After that the watcher counts as
stuck."""


class LifeSign(Struct, frozen=True):
    """The last text in a peer's file, and when it was first seen."""

    path: str  # The peer's file.
    mark: str  # The content of the file.
    since: Instant  # When this content was first seen.


def update_life_sign(before: LifeSign | None, path: str, mark: str, now: Instant) -> LifeSign:
    """The sign after one more look. A file that could not be read (an empty mark) is no change. The
    first look begins the wait."""
    if before is not None and mark in ("", before.mark):
        return before
    return LifeSign(path, mark, now)


def get_silence_s(sign: LifeSign, now: Instant) -> float:
    """Seconds without a change."""
    return get_elapsed_s(sign.since, now)


def find_unhealthy_checks(
    runs: Sequence[CheckRun], intervals: Mapping[str, float | None], now: Instant
) -> list[str]:
    """Why the heartbeat must not be sent, one line each. Empty if it may be.

    `intervals` are the seconds between the runs of each check. It is None if the check has a
    calendar, because then a late run cannot be recognised.
    """
    known = {run.check: run for run in runs}
    found = []
    for name, interval in intervals.items():
        run = known.get(name)
        if run is None:
            found.append(f"{name} has not run yet")
        elif interval is not None and get_elapsed_s(run.at, now) > 2 * interval + MAX_LATENESS_S:
            found.append(f"{name} has not run for {get_elapsed_s(run.at, now):.0f} s")
        elif run.blind:
            found.append(f"{name} is blind: {run.summary}")
    return found
