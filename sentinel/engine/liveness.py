"""Whether the watcher may look alive, and whether its peer does. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.model import CheckRun

MAX_LATENESS_S = 60.0
"""Seconds a check may be late beyond twice its interval before the watcher counts as stuck."""


class LifeSign(Struct, frozen=True):
    """What was last read in a peer's file, and when it was seen first."""

    path: str
    mark: str
    since: Instant


def update_life_sign(before: LifeSign | None, path: str, mark: str, now: Instant) -> LifeSign:
    """After one more look. What could not be read (an empty mark) is no change; the first look
    begins the wait."""
    if before is not None and mark in ("", before.mark):
        return before
    return LifeSign(path, mark, now)


def get_silence_s(sign: LifeSign, now: Instant) -> float:
    """Seconds without a change."""
    return get_elapsed_s(sign.since, now)


def find_unhealthy_checks(
    runs: Sequence[CheckRun], intervals: Mapping[str, float | None], now: Instant
) -> list[str]:
    """Why the watcher must not look healthy, one line each; empty when it may.

    `intervals`: seconds between the runs of each check, None where a calendar rules it and a
    late run cannot be told from a quiet night.
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
