"""Whether what was seen last may still be shown as what is so now. Pure.

What nobody could see since is no answer: it is shown as unknown, with its age and the reason.
"""

from __future__ import annotations

from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.status.collect import Material

TOLERANCE = 30.0
"""Seconds that a run may be late: others are at work, and the state is read by people meanwhile."""

NODES_EVERY = 120.0
"""Seconds for which nodes and queue stand as Slurm told them: the service looks every 15 seconds,
and for as long as checks ask for the same, at what they were told."""


def unseen(check: CheckConfig, seen: Instant, m: Material) -> str:
    """Why what this check saw then cannot be shown as current; empty: it can.

    It stands until the next run should have ended, or until a run that came later was blind.
    """
    run = m.runs.get(check.name)
    if run is not None and run.blind and elapsed(seen, run.at) > 0:
        return visible(run.summary) or "its check cannot see it"
    return overdue(check, seen, m)


def overdue(check: CheckConfig, last: Instant, m: Material) -> str:
    """Why the last run cannot be shown as current; empty: the next one need not have ended yet."""
    due = m.around.next_run(check, last, m.now, m.around.zone).timestamp()
    allowed = max(0.0, due - last.wall / SECOND) + check.limit + TOLERANCE
    return "its check has not run since, and should have" if elapsed(last, m.now) > allowed else ""


def nodes_trouble(m: Material) -> str:
    """Why nodes and queue cannot be shown as current; empty: they can."""
    if m.nodes is None:
        return ""
    if m.nodes.trouble:
        return visible(m.nodes.trouble)
    late = elapsed(m.nodes.at, m.now) > NODES_EVERY
    return "Slurm has told of no nodes since: is the service at work?" if late else ""
