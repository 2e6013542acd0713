"""`sentinel tick`: one pass of the engine over the checks that are due."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Iterable, Mapping
from datetime import timedelta

from sentinel.alerting.state_machine import EARLY
from sentinel.core.clock import SECOND, Instant, shifted
from sentinel.core.due import every, moment, next_run
from sentinel.core.errors import Fenced
from sentinel.core.model import Run
from sentinel.core.settings import CheckConfig
from sentinel.engine.engine import Engine
from sentinel.engine.runtime import World

DELIVERY_LIMIT = 60.0
"""Seconds a tick spends on sending; what is left waits in the outbox for the next."""

PASS = ""
"""Stands for all checks of a pass, with their second looks: nothing is sent before their end."""

HOUR = 3600

_LOG = logging.getLogger("sentinel")

LAST_WORD_LIMIT = 10.0
"""Seconds for what sentinel has to say about its channels after that."""


async def deliver(engine: Engine) -> bool:
    """Send what waits in the outbox, and look at nothing; whether nothing is left unsent."""
    await engine.review()
    delivered = await engine.drain(DELIVERY_LIMIT)
    await engine.beat()
    return delivered


async def tick(
    engine: Engine,
    now: Instant,
    *,
    everything: bool = False,
    delivering: bool = True,
    spacing: int = 0,
) -> tuple[list[Run], bool]:
    """Run what is due (or all), deliver; the runs made and whether nothing is left unsent.

    Not `delivering`: what is to be told waits in the outbox for `deliver`, from where there is a
    way out. `spacing`: seconds between passes that other hosts make too; see `told_elsewhere`.
    """
    last, began = {run.check: run for run in await engine.runs()}, time.monotonic()
    names = list(engine.world.checks) if everything else due(engine.world, last, now)
    await engine.begin()
    await engine.hear()
    engine.first_look([PASS])
    await _all(engine.check(name, asked=False) for name in names)
    engine.looked(PASS)
    await engine.look_around()
    await engine.look_at_self()
    await engine.tidy()
    waits = spacing and engine.troubled_state and told_elsewhere(last.values(), now, spacing)
    if delivering and waits:
        _LOG.warning("messages wait for the first pass of an hour: other hosts may have told them")
    elif delivering:
        await engine.drain(DELIVERY_LIMIT)
    if engine.asked:
        until = began + await _left(engine, now)
        await _all(engine.check_again(name, until) for name in [*engine.asked])
        if delivering and not waits:
            await engine.drain(DELIVERY_LIMIT)
    delivered = True
    if delivering and not waits:
        await engine.look_at_self()  # what sending has shown about the channels
        delivered = await engine.drain(LAST_WORD_LIMIT)
    if delivering:
        await engine.beat()
    return [run for run in await engine.runs() if run.check in names], delivered


async def _left(engine: Engine, now: Instant) -> float:
    """Seconds from the beginning of the pass until the next check is due: what was seen of one
    training does not hold back the others."""
    world, last = engine.world, {run.check: run for run in await engine.runs()}
    latest = max((now, *(run.at for run in last.values())), key=lambda at: at.wall)
    times = [next_run(c, _began(last.get(n)), latest, world.zone) for n, c in world.checks.items()]
    return (min(times, default=moment(now)) - moment(now)).total_seconds()


def told_elsewhere(runs: Iterable[Run], now: Instant, spacing: int) -> bool:
    """Whether other hosts may have told what this one finds, and tell it again within the hour: their
    passes, one every `spacing` seconds by the clock, are missing from what is known here, and this
    is not the first pass of an hour. So an alert is told once an hour at most, and an hour late."""
    slot = now.wall // SECOND // spacing * spacing
    known = max((run.at.wall // SECOND for run in runs), default=0)
    first_of_hour = slot // HOUR != (slot - spacing) // HOUR
    return known < slot - spacing and not first_of_hour


async def _all(checks: Iterable[Awaitable[None]]) -> None:
    """To the end of each: one that fails inside must not keep the others from being told."""
    for result in await asyncio.gather(*checks, return_exceptions=True):
        if isinstance(result, Fenced) or not isinstance(result, Exception | None):
            raise result
        if result is not None:
            _LOG.error("internal error; the pass goes on", exc_info=result)


def due(world: World, last: Mapping[str, Run], now: Instant) -> list[str]:
    """The checks whose time has come, judged by their last run in the state."""
    return [
        name
        for name, check in world.checks.items()
        if next_run(check, _began(last.get(name)), now, world.zone) <= moment(now) + _early(check)
    ]


def _began(run: Run | None) -> Instant | None:
    """When the first run of the last pass began: the state has when the last one was written, at its
    end. Passes come by the clock."""
    return shifted(run.at, -run.duration - run.after) if run else None


def _early(check: CheckConfig) -> timedelta:
    """Passes come as often as checks are to run, but never to the second: without this every
    other one would find them not yet due."""
    return timedelta(seconds=0.0 if check.common.cron else EARLY * every(check))
