"""Whether the watcher may look alive: only when all checks ran lately and could see. Pure."""

from collections.abc import Mapping, Sequence

from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Run

SLACK = 60.0
"""Seconds a check may be late beyond twice its interval before the watcher counts as stuck."""


def troubles(runs: Sequence[Run], intervals: Mapping[str, float | None], now: Instant) -> list[str]:
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
        elif interval is not None and elapsed(run.at, now) > 2 * interval + SLACK:
            found.append(f"{name} has not run for {elapsed(run.at, now):.0f} s")
        elif run.blind:
            found.append(f"{name} is blind: {run.summary}")
    return found
