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
"""Seconds a tick spends on sending; what is left waits in the outbox for the next."""

WHOLE_PASS_NAME = ""
"""Stands for all checks of a pass, with their second looks: nothing is sent before their end."""

HOUR_S = 3600

_LOG = logging.getLogger("sentinel")

LAST_MESSAGES_TIMEOUT_S = 10.0
"""Seconds for what sentinel has to say about its channels after that."""


async def send_waiting(engine: Engine) -> bool:
    """Send what waits in the outbox, and look at nothing; whether nothing is left unsent."""
    await engine.review_alerts()
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
    """Run what is due (or all), deliver; the runs made and whether nothing is left unsent.

    Not `delivering`: what is to be told waits in the outbox for `send_waiting`, from where there is a
    way out. `spacing`: seconds between passes that other hosts make too; see `may_be_told_elsewhere`.
    """
    last, began = {run.check: run for run in await engine.read_runs()}, time.monotonic()
    names = list(engine.world.checks) if everything else find_due_checks(engine.world, last, now)
    await engine.announce_start()
    await engine.poll_external_events()
    engine.expect_first_look([WHOLE_PASS_NAME])
    await _await_all(engine.run_check(name, asked=False) for name in names)
    engine.mark_looked(WHOLE_PASS_NAME)
    await engine.poll_cluster()
    await engine.check_self()
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
        await engine.check_self()  # what sending has shown about the channels
        delivered = await engine.drain_outbox(LAST_MESSAGES_TIMEOUT_S)
    if delivering:
        await engine.send_heartbeat()
    return [run for run in await engine.read_runs() if run.check in names], delivered


async def _get_time_left_s(engine: Engine, now: Instant) -> float:
    """Seconds from the beginning of the pass until the next check is due: what was seen of one
    training does not hold back the others."""
    world, last = engine.world, {run.check: run for run in await engine.read_runs()}
    latest = max((now, *(run.at for run in last.values())), key=lambda at: at.wall)
    times = [
        get_next_run(c, _get_pass_start(last.get(n)), latest, world.zone)
        for n, c in world.checks.items()
    ]
    return (min(times, default=to_datetime(now)) - to_datetime(now)).total_seconds()


def may_be_told_elsewhere(runs: Iterable[CheckRun], now: Instant, spacing: int) -> bool:
    """Whether other hosts may have told what this one finds, and tell it again within the hour: their
    passes, one every `spacing` seconds by the clock, are missing from what is known here, and this
    is not the first pass of an hour. So an alert is told once an hour at most, and an hour late."""
    slot = now.wall // SECOND // spacing * spacing
    known = max((run.at.wall // SECOND for run in runs), default=0)
    first_of_hour = slot // HOUR_S != (slot - spacing) // HOUR_S
    return known < slot - spacing and not first_of_hour


async def _await_all(checks: Iterable[Awaitable[None]]) -> None:
    """To the end of each: one that fails inside must not keep the others from being told."""
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
    """When the first run of the last pass began: the state has when the last one was written, at its
    end. Passes come by the clock."""
    return shift_instant(run.at, -run.duration - run.after) if run else None


def _get_early_tolerance(check: CheckConfig) -> timedelta:
    """Passes come as often as checks are to run, but never to the second: without this every
    other one would find them not yet due."""
    return timedelta(seconds=0.0 if check.common.cron else EARLY_SHARE * get_interval_s(check))
