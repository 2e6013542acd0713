"""Whether what was seen last may still be shown as what is so now. Pure.

What nobody could see since is no answer: it is shown as unknown, with its age and the reason.
"""

from __future__ import annotations

from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.core.when import clock_text
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
    due = next_look(check, last, replace(m, now=last))
    allowed = max(0.0, due - last.wall / SECOND) + check.limit + TOLERANCE
    allowed += m.around.pass_every / 2  # a link may wait in the queue
    if elapsed(last, m.now) <= allowed:
        return ""
    coming = next_look(check, last, m)
    later = (
        f"; next check {clock_text(coming, m.around.zone)}" if coming > m.now.wall / SECOND else ""
    )
    return f"not checked since {clock_text(last.wall / SECOND, m.around.zone)}{later}"


def next_look(check: CheckConfig, last: Instant | None, m: Material) -> float:
    """When the check runs next, in seconds since 1970: where passes call it, in the first pass that
    comes when it is due."""
    due = m.around.next_run(check, last, m.now, m.around.zone).timestamp()
    every = m.around.pass_every
    if not every:
        return due
    return -(-max(due, m.now.wall / SECOND) // every) * every


def nodes_trouble(m: Material) -> str:
    """Why nodes and queue cannot be shown as current; empty: they can."""
    if m.nodes is None:
        return ""
    if m.nodes.trouble:
        return visible(m.nodes.trouble)
    late = elapsed(m.nodes.at, m.now) > NODES_EVERY
    return "Slurm has told of no nodes since: is the service at work?" if late else ""
