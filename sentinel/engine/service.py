"""`sentinel run`: the scheduler calling the engine until it is told to stop."""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from sentinel.core.errors import Fenced, SentinelError
from sentinel.engine.engine import Engine, World
from sentinel.engine.schedule import Schedule
from sentinel.engine.sdnotify import notify, watchdog_interval
from sentinel.proc import threads

FAREWELL = 10.0
"""Seconds that a stopping service goes on sending."""

HOUSEKEEPING = 15.0
HEARING = 60.0
FIRST_BEAT = 10.0
"""Seconds in which the first runs are expected to have ended."""

AFTER_ERROR = 5.0
JUMP = 2.0
"""Seconds by which the wall clock must leave the monotonic one to count as a jump."""

_LOG = logging.getLogger("sentinel")
Reload = Callable[[], World]


class Service:
    """Runs until SIGTERM or SIGINT; SIGHUP asks `reload` for another world."""

    def __init__(self, engine: Engine, reload: Reload) -> None:
        self._engine, self._reload = engine, reload
        self._schedule = Schedule(self._due)
        self._stop, self._reloading = asyncio.Event(), asyncio.Lock()
        self._turned = asyncio.Event()  # the world is another, or the end has come
        self._watching = False
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> None:
        """Returns after a clean stop; raises what made going on impossible (Fenced)."""
        self._plan()
        self._engine.first_look(self._engine.world.checks)
        self._schedule.start()
        self._watching = True
        self._offset = time.time() - time.monotonic()
        for step in (
            self._deliver,
            self._keep_house,
            self._hear,
            self._look_around,
            self._beat,
            self._watch_clock,
            self._keep_alive,
        ):
            self._spawn(self._forever(step))
        self._spawn(self._engine.lost_lead())
        self._ready()
        await self._stop.wait()
        lost = self._failure  # a run that ends after the state was let go has lost nothing
        await self._farewell()
        if lost is not None:
            raise lost

    async def stopped_within(self, seconds: float) -> bool:
        """Whether it was told to stop, waiting so long for that."""
        await self._pause(seconds)
        return self._stop.is_set()

    def stop(self) -> None:
        """End soon; what is pending is delivered first, within a bound."""
        self._stop.set()
        self._turned.set()

    def listen(self) -> None:
        """Obey signals from now on; before the engine starts, so that none finds it half way."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: self._spawn(self._switch()))

    def _plan(self) -> None:
        self._schedule.replace(self._engine.world.checks, self._engine.world.zone)

    def _ready(self) -> None:
        doing = "watching" if self._watching else "standing by"
        notify(f"READY=1\nSTATUS={doing}, {len(self._engine.world.checks)} checks")

    async def _due(self, name: str) -> None:
        self._spawn(self._engine.check(name))

    async def _forever(self, step: Callable[[], Awaitable[None]]) -> None:
        while not self._stop.is_set():
            try:
                await step()
            except Fenced:
                raise
            except Exception:
                _LOG.exception("internal error; the service goes on")
                await asyncio.sleep(AFTER_ERROR)

    async def _deliver(self) -> None:
        wait = await self._engine.begin_delivery()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._engine.committed.wait(), wait)

    async def _keep_house(self) -> None:
        await self._engine.look_at_self()
        await self._engine.review()
        await self._engine.tidy()
        firing = sum(a.firing for a in await self._engine.alerts())
        notify(f"STATUS={len(self._engine.world.checks)} checks, {firing} alerts firing")
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._engine.troubled.wait(), HOUSEKEEPING)

    async def _hear(self) -> None:
        await self._engine.hear()
        await asyncio.sleep(HEARING)

    async def _look_around(self) -> None:
        await self._engine.look_around()
        await asyncio.sleep(HOUSEKEEPING)

    async def _beat(self) -> None:
        """The signs of one world: what a reload brings waits for no interval of the one before."""
        self._turned.clear()
        await self._engine.begin()
        wait = min(self._engine.world.pulse_every, FIRST_BEAT)
        while not self._stop.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._turned.wait(), wait)
                return
            await self._engine.beat()
            wait = self._engine.world.pulse_every

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    async def _watch_clock(self) -> None:
        await asyncio.sleep(1)
        drift = time.time() - time.monotonic() - self._offset
        if abs(drift) > JUMP:
            _LOG.warning("the clock jumped by %+.0f s: schedule re-armed", drift)
            self._offset += drift
            self._plan()

    async def _keep_alive(self) -> None:
        interval = watchdog_interval()
        if interval is None:
            await self._stop.wait()
            return
        await self._engine.runs()
        notify("WATCHDOG=1")
        await asyncio.sleep(interval)

    async def _switch(self) -> None:
        """One after the other: of two files in quick succession the later one counts."""
        async with self._reloading:
            notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
            try:
                world = await asyncio.wrap_future(threads.start("reload", self._reload))
            except SentinelError as error:
                _LOG.error("configuration not reloaded, the old one stays in force:\n%s", error)
            else:
                await self._engine.switch(world)
                self._engine.troubled.set()  # what is wrong with the file, or is no more
                if world.invalid:
                    _LOG.error(
                        "configuration not reloaded, the old one stays in force without "
                        "actions:\n%s",
                        world.invalid,
                    )
                    return
                self._plan()
                self._turned.set()
                _LOG.info("configuration reloaded: %d checks", len(world.checks))
            finally:
                self._ready()

    async def _farewell(self) -> None:
        notify("STOPPING=1")
        self._schedule.stop()
        self._engine.stop_acting()
        try:
            if self._failure is None:
                await self._last_words()
        finally:
            await self._engine.close()
            for task in self._tasks:
                task.cancel()

    async def _last_words(self) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._engine.commit(), FAREWELL)
        self._engine.committed.set()
        if not await self._engine.drain(FAREWELL):
            _LOG.warning("stopped with unsent notifications; the next start sends them")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Fenced as error:
            self._failure = error
            self.stop()
        except Exception:
            _LOG.exception("internal error; the service goes on")
