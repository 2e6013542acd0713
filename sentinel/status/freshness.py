"""Decides whether an observation may still be shown as current. Pure.

An observation that is too old is shown as unknown, with its age and the reason.
"""

from __future__ import annotations

from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.due import get_next_pass
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.core.time_text import format_clock
from sentinel.status.collect import StatusInputs

LATE_TOLERANCE_S = 30.0
"""Seconds that a run may be late: others are at work, and the state is read by people meanwhile."""

NODES_FRESH_S = 120.0
"""Seconds for which Slurm's answers about nodes and the queue count as current. The service asks
every 15 seconds. While checks ask for the same, it uses their answers."""


def explain_stale_look(check: CheckConfig, seen: Instant, m: StatusInputs) -> str:
    """Why what this check saw then cannot be shown as current; empty: it can.

    It stands until the next run should have ended, or until a run that came later was blind.
    """
    run = m.runs.get(check.name)
    if run is not None and run.blind and get_elapsed_s(seen, run.at) > 0:
        return visible(run.summary) or "its check cannot see it"
    return explain_overdue_run(check, seen, m)


def explain_overdue_run(check: CheckConfig, last: Instant, m: StatusInputs) -> str:
    """Why the last run cannot be shown as current; empty: the next one need not have ended yet."""
    due = get_next_run_at(check, last, replace(m, now=last))
    allowed = max(0.0, due - last.wall / SECOND) + check.timeout_s + LATE_TOLERANCE_S
    allowed += m.around.pass_every / 2  # a job of the chain may wait in the queue
    if get_elapsed_s(last, m.now) <= allowed:
        return ""
    coming = get_next_run_at(check, last, m)
    later = (
        f"; next check {format_clock(coming, m.around.zone)}"
        if coming > m.now.wall / SECOND
        else ""
    )
    return f"not checked since {format_clock(last.wall / SECOND, m.around.zone)}{later}"


def get_next_run_at(check: CheckConfig, last: Instant | None, m: StatusInputs) -> float:
    """When the check runs next, in seconds since 1970: where passes call it, in the first pass that
    comes when it is due."""
    due = m.around.next_run(check, last, m.now, m.around.zone).timestamp()
    every = m.around.pass_every
    if not every:
        return due
    if last is not None and check.common.cron is None:
        due -= last.wall / SECOND % every  # a pass begins by the clock, and its runs end later
    coming = get_next_pass(last.wall / SECOND if last else None, m.now.wall / SECOND, every)
    return max(coming, -(-due // every) * every)


def explain_stale_nodes(m: StatusInputs) -> str:
    """Why nodes and the queue cannot be shown as current. Empty if they can."""
    if m.nodes is None:
        return ""
    if m.nodes.trouble:
        return visible(m.nodes.trouble)
    late = get_elapsed_s(m.nodes.at, m.now) > NODES_FRESH_S
    return "Slurm has told of no nodes since: is the service at work?" if late else ""
