"""`sentinel tick`: one pass of the engine over the checks that are due."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Iterable, Mapping
from datetime import timedelta

from sentinel.alerting.state_machine import EARLY_SHARE
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.due import get_interval_s, get_next_run, to_datetime
from sentinel.core.errors import Fenced
from sentinel.core.model import CheckRun
from sentinel.core.settings import CheckConfig
from sentinel.engine.engine import Engine
from sentinel.engine.runtime import RuntimeConfig

DELIVERY_TIMEOUT_S = 60.0
"""Seconds that a tick spends on sending. The rest waits in the outbox for the next tick."""

WHOLE_PASS_NAME = ""
"""Stands for all checks of a pass with their second looks. With a new state, nothing is sent before
their end."""

HOUR_S = 3600

_LOG = logging.getLogger("sentinel")

LAST_MESSAGES_TIMEOUT_S = 10.0
"""Seconds for the messages about sentinel's own channels, which are sent after all others."""


async def send_waiting(engine: Engine) -> bool:
    """Send what waits in the outbox, without running checks. Returns whether all was sent.

    The caller is on a host that can send. So messages that failed on other hosts, even for good,
    are tried once more.
    """
    await engine.review_alerts()
    await engine.end_delivery_waits()
    delivered = await engine.drain_outbox(DELIVERY_TIMEOUT_S)
    await engine.send_heartbeat()
    return delivered


async def run_pass(
    engine: Engine,
    now: Instant,
    *,
    everything: bool = False,
    delivering: bool = True,
    spacing: int = 0,
) -> tuple[list[CheckRun], bool]:
    """Run the due checks (or all), then send.

    Returns the last runs of these checks, and False if messages should have been sent now and some
    are left. It is True also if this pass sends none. If not `delivering`, messages wait in the
    outbox for `send_waiting` on a host that can send. If other hosts make passes too, `spacing` is
    the number of seconds from one pass to the next; see `may_be_told_elsewhere`.
    """
    last, began = {run.check: run for run in await engine.read_runs()}, time.monotonic()
    names = list(engine.world.checks) if everything else find_due_checks(engine.world, last, now)
    await engine.announce_start()
    await engine.poll_external_events()
    engine.expect_first_look([WHOLE_PASS_NAME])
    await _await_all(engine.run_check(name, asked=False) for name in names)
    engine.mark_looked(WHOLE_PASS_NAME)
    await engine.poll_cluster()
    await engine.read_scripts()
    await engine.check_self()
    await engine.report_week()
    await engine.prune_state()
    waits = (
        spacing and engine.is_state_failing and may_be_told_elsewhere(last.values(), now, spacing)
    )
    if delivering and waits:
        _LOG.warning("messages wait for the first pass of an hour: other hosts may have told them")
    elif delivering:
        await engine.drain_outbox(DELIVERY_TIMEOUT_S)
    if engine.asked:
        until = began + await _get_time_left_s(engine, now)
        await _await_all(engine.run_rechecks(name, until) for name in [*engine.asked])
        if delivering and not waits:
            await engine.drain_outbox(DELIVERY_TIMEOUT_S)
    delivered = True
    if delivering and not waits:
        await engine.check_self()  # includes what sending has shown about the channels
        delivered = await engine.drain_outbox(LAST_MESSAGES_TIMEOUT_S)
    if delivering:
        await engine.send_heartbeat()
    return [run for run in await engine.read_runs() if run.check in names], delivered


async def _get_time_left_s(engine: Engine, now: Instant) -> float:
    """Seconds from the beginning of the pass until the next check is due. A second look at one
    training must not delay the checks of others."""
    world, last = engine.world, {run.check: run for run in await engine.read_runs()}
    latest = max((now, *(run.at for run in last.values())), key=lambda at: at.wall)
    times = [
        get_next_run(c, _get_pass_start(last.get(n)), latest, world.zone)
        for n, c in world.checks.items()
    ]
    return (min(times, default=to_datetime(now)) - to_datetime(now)).total_seconds()


def may_be_told_elsewhere(runs: Iterable[CheckRun], now: Instant, spacing: int) -> bool:
    """Whether other hosts may have reported the findings of this pass already.

    Their passes, one every `spacing` seconds by the clock, may be unknown here. So unless this is
    the first pass of an hour, an alert is not sent. Then it is sent once an hour at most, and an
    hour late at most.
    """
    slot = now.wall // SECOND // spacing * spacing
    known = max((run.at.wall // SECOND for run in runs), default=0)
    first_of_hour = slot // HOUR_S != (slot - spacing) // HOUR_S
    return known < slot - spacing and not first_of_hour


async def _await_all(checks: Iterable[Awaitable[None]]) -> None:
    """Wait for all of them. If one fails, the others still finish."""
    for result in await asyncio.gather(*checks, return_exceptions=True):
        if isinstance(result, Fenced) or not isinstance(result, Exception | None):
            raise result
        if result is not None:
            _LOG.error("internal error; the pass goes on", exc_info=result)


def find_due_checks(world: RuntimeConfig, last: Mapping[str, CheckRun], now: Instant) -> list[str]:
    """The checks whose time has come, judged by their last run in the state."""
    return [
        name
        for name, check in world.checks.items()
        if get_next_run(check, _get_pass_start(last.get(name)), now, world.zone)
        <= to_datetime(now) + _get_early_tolerance(check)
    ]


def _get_pass_start(run: CheckRun | None) -> Instant | None:
    """When the first run of the check in the last pass began. The state has only the time at which
    the last run was written. Passes start by the clock."""
    return shift_instant(run.at, -run.duration - run.after) if run else None


def _get_early_tolerance(check: CheckConfig) -> timedelta:
    """How much too early a pass may run a check. Passes are as frequent as the runs of a check, but
    not exact to the second. Without this, every other pass would find the check not yet due."""
    return timedelta(seconds=0.0 if check.common.cron else EARLY_SHARE * get_interval_s(check))
