"""`sentinel tick`: one pass of the engine over the checks that are due."""

import asyncio

from sentinel.core.clock import Instant
from sentinel.core.model import Run
from sentinel.engine.engine import Engine, World
from sentinel.engine.schedule import moment, next_run

DELIVERY_LIMIT = 60.0
"""Seconds a tick spends on sending; what is left waits in the outbox for the next."""

LAST_WORD_LIMIT = 10.0
"""Seconds for what sentinel has to say about its channels after that."""


async def deliver(engine: Engine) -> bool:
    """Send what waits in the outbox, and look at nothing; whether nothing is left unsent."""
    await engine.review()
    delivered = await engine.drain(DELIVERY_LIMIT)
    await engine.beat()
    return delivered


async def tick(
    engine: Engine, now: Instant, *, everything: bool = False, delivering: bool = True
) -> tuple[list[Run], bool]:
    """Run what is due (or all), deliver; the runs made and whether nothing is left unsent.

    Not `delivering`: what is to be told waits in the outbox for `deliver`, from where there is a
    way out.
    """
    last = {run.check: run for run in await engine.runs()}
    names = list(engine.world.checks) if everything else due(engine.world, last, now)
    await engine.begin()
    await engine.hear()
    await asyncio.gather(*(engine.check(name) for name in names))
    await engine.look_around()
    await engine.look_at_self()
    await engine.prune_daily()
    if not delivering:
        return [run for run in await engine.runs() if run.check in names], True
    await engine.drain(DELIVERY_LIMIT)
    await engine.look_at_self()  # what sending has shown about the channels
    delivered = await engine.drain(LAST_WORD_LIMIT)
    await engine.beat()
    return [run for run in await engine.runs() if run.check in names], delivered


def due(world: World, last: dict[str, Run], now: Instant) -> list[str]:
    """The checks whose time has come, judged by their last run in the state."""
    return [
        name
        for name, check in world.checks.items()
        if next_run(check, _at(last.get(name)), now, world.zone) <= moment(now)
    ]


def _at(run: Run | None) -> Instant | None:
    return run.at if run else None
