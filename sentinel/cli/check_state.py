"""Reads the state of a service for a check by hand, which stores nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

from sentinel.alerting.observations import RunOutcome
from sentinel.cli.state import OpenState
from sentinel.config.settings import Settings
from sentinel.core.errors import SentinelError
from sentinel.core.guidance import quote_command
from sentinel.core.model import CheckRun, get_worst_status
from sentinel.core.ports import AuditLog
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.core.time_text import format_clock
from sentinel.proc import threads
from sentinel.wiring import app, one_shot
from sentinel.wiring.audit_log import open_audit_log


def has_readable_state(settings: Settings) -> bool:
    """Whether there is a state whose disk answers in time; a check by hand works without one."""
    with suppress(SentinelError, TimeoutError):
        return threads.run_within(
            app.STATE_LOOK_TIMEOUT_S, "state", lambda: app.has_state(settings)
        )
    return False


@contextmanager
def _open_node_history(settings: Settings) -> Iterator[AuditLog | None]:
    """The history of nodes (why they were drained, and actions on them); None if it cannot be
    read."""
    log = None
    with suppress(SentinelError):
        log = open_audit_log(settings, dry_run=True)
    try:
        yield log
    finally:
        if log is not None:
            log.close()


def run_with_history(
    checks: Sequence[CheckConfig], settings: Settings, *, has_state: bool
) -> list[RunOutcome]:
    """Run each check once, with the history of nodes if there is a state."""
    with _open_node_history(settings) if has_state else nullcontext() as log:
        return [one_shot.run_check_once(check, settings, log) for check in checks]


def say_last_run(outcome: RunOutcome, config: str | None) -> None:
    """Print on stderr what the service found, if it differs: the service remembers earlier looks,
    and a check by hand does not."""
    with suppress(SentinelError), OpenState(config, telling=False) as state:
        ours = next((r for r in state.store.read_runs() if r.check == outcome.check), None)
        here = get_worst_status(f.status for f in outcome.findings)
        waits = any(
            a.key.check == outcome.check and not a.firing for a in state.store.read_alerts()
        )
        if ours is not None and (waits or ours.status is not here):
            print(_describe_last_run(ours, state, waits=waits), file=sys.stderr)


def _describe_last_run(run: CheckRun, state: OpenState, *, waits: bool) -> str:
    """`waits`: an alert of it is pending."""
    at = format_clock(run.at.wall / 1e6, state.zone)
    said = "has told nobody yet" if waits else f"said {run.status.value}"
    return (
        f"sentinel: this is one look; the pass of {at}, which knows the looks before it, {said}:"
        f" {visible(run.summary)} ({state.name_config(quote_command('sentinel', 'explain', run.check))})"
    )
