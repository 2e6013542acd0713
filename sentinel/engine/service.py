"""`sentinel run`: calls the engine by a schedule until it has to stop."""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from sentinel.core.errors import Fenced, SentinelError
from sentinel.engine.engine import Engine, RuntimeConfig
from sentinel.engine.package_watch import PackageWatch
from sentinel.engine.schedule import CheckSchedule
from sentinel.engine.sdnotify import get_watchdog_interval, notify_systemd
from sentinel.proc import threads

FAREWELL_TIMEOUT_S = 10.0
"""How many seconds a service that stops continues to send."""

HOUSEKEEPING_INTERVAL_S = 15.0
HEARING_INTERVAL_S = 60.0
FIRST_BEAT_AFTER_S = 10.0
"""After this many seconds, the first runs are expected to have ended."""

ERROR_PAUSE_S = 5.0
CLOCK_JUMP_S = 2.0
"""If the wall clock differs by more than this many seconds from the monotonic clock, it has
jumped."""

_LOG = logging.getLogger("sentinel")
Reload = Callable[[], RuntimeConfig]


class SentinelService:
    """Runs until SIGTERM or SIGINT. At SIGHUP it calls `reload` for a new configuration."""

    def __init__(self, engine: Engine, reload: Reload, package: PackageWatch | None = None) -> None:
        self._engine, self._reload, self._package = engine, reload, package
        self.is_outdated = False
        """Whether it has ended so that its supervisor starts a new version."""
        self._schedule = CheckSchedule(self._start_due_check)
        self._stop, self._reloading = asyncio.Event(), asyncio.Lock()
        # set if the configuration has changed or the service must end
        self._turned = asyncio.Event()
        self._watching = False
        self._package_trouble = ""
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> None:
        """Run the service. Returns after a clean stop. Raises the error that made it stop
        (Fenced)."""
        self._plan_checks()
        self._engine.expect_first_look(self._engine.world.checks)
        self._schedule.start_scheduler()
        self._watching = True
        self._offset = time.time() - time.monotonic()
        await self._engine.retry_refused_messages()
        for step in (
            self._deliver_and_wait,
            self._check_and_prune,
            self._poll_external_events,
            self._poll_cluster,
            self._read_scripts,
            self._send_heartbeats,
            self._watch_clock,
            self._notify_watchdog,
            *([self._watch_package] if self._package else []),
        ):
            self._spawn_task(self._repeat_forever(step))
        self._spawn_task(self._engine.wait_for_lost_lead())
        self._notify_ready()
        await self._stop.wait()
        lost = self._failure  # a run that ends after the state was released has lost nothing
        await self._shut_down()
        if lost is not None:
            raise lost

    async def is_stopped_within(self, seconds: float) -> bool:
        """Wait this many seconds. Returns whether a stop was requested meanwhile."""
        await self._pause_until_stop(seconds)
        return self._stop.is_set()

    def request_stop(self) -> None:
        """Ask for a stop. Pending messages are delivered first, within a time limit."""
        self._stop.set()
        self._turned.set()

    def install_signal_handlers(self) -> None:
        """Handle signals from now on. It is called before the engine starts, so that no signal
        comes before its handler."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request_stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: self._spawn_task(self._reload_config()))

    def _plan_checks(self) -> None:
        self._schedule.replace_checks(self._engine.world.checks, self._engine.world.zone)

    def _notify_ready(self) -> None:
        doing = "watching" if self._watching else "standing by"
        notify_systemd(f"READY=1\nSTATUS={doing}, {len(self._engine.world.checks)} checks")

    async def _start_due_check(self, name: str) -> None:
        self._spawn_task(self._engine.run_check(name))

    async def _repeat_forever(self, step: Callable[[], Awaitable[None]]) -> None:
        while not self._stop.is_set():
            try:
                await step()
            except Fenced:
                raise
            except Exception:
                _LOG.exception("internal error; the service goes on")
                await asyncio.sleep(ERROR_PAUSE_S)

    async def _deliver_and_wait(self) -> None:
        wait = await self._engine.begin_delivery()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._engine.committed.wait(), wait)

    async def _check_and_prune(self) -> None:
        await self._engine.check_self()
        await self._engine.review_alerts()
        await self._engine.report_week()
        await self._engine.prune_state()
        firing = sum(a.firing for a in await self._engine.alerts())
        notify_systemd(f"STATUS={len(self._engine.world.checks)} checks, {firing} alerts firing")
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._engine.troubled.wait(), HOUSEKEEPING_INTERVAL_S)

    async def _poll_external_events(self) -> None:
        await self._engine.poll_external_events()
        await asyncio.sleep(HEARING_INTERVAL_S)

    async def _poll_cluster(self) -> None:
        await self._engine.poll_cluster()
        await asyncio.sleep(HOUSEKEEPING_INTERVAL_S)

    async def _read_scripts(self) -> None:
        await self._engine.read_scripts()
        await asyncio.sleep(HOUSEKEEPING_INTERVAL_S)

    async def _send_heartbeats(self) -> None:
        """Send the heartbeats of one configuration. After a reload, the new one does not wait for
        an interval of the old one."""
        self._turned.clear()
        await self._engine.announce_start()
        wait = min(self._engine.world.pulse_every, FIRST_BEAT_AFTER_S)
        while not self._stop.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._turned.wait(), wait)
                return
            await self._engine.send_heartbeat()
            wait = self._engine.world.pulse_every

    async def _pause_until_stop(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    async def _watch_clock(self) -> None:
        await asyncio.sleep(1)
        drift = time.time() - time.monotonic() - self._offset
        if abs(drift) > CLOCK_JUMP_S:
            _LOG.warning("the clock jumped by %+.0f s: schedule re-armed", drift)
            self._offset += drift
            self._plan_checks()

    async def _watch_package(self) -> None:
        """End the service for a new version that has proven itself. Work under way ends first."""
        assert self._package is not None
        seen = await asyncio.wrap_future(threads.run_in_thread("package", self._package.look))
        if seen.restart:
            _LOG.warning("another version is installed and has proven itself: ending to begin anew")
            self.is_outdated = True
            self.request_stop()
        if seen.news:
            _LOG.warning("%s", seen.news)
        if seen.trouble != self._package_trouble:
            self._package_trouble = seen.trouble
            self._engine.note_package(seen.trouble)
        await asyncio.sleep(HOUSEKEEPING_INTERVAL_S)

    async def _notify_watchdog(self) -> None:
        interval = get_watchdog_interval()
        if interval is None:
            await self._stop.wait()
            return
        await self._engine.read_runs()
        notify_systemd("WATCHDOG=1")
        await asyncio.sleep(interval)

    async def _reload_config(self) -> None:
        """Reload one at a time. If the file changes twice quickly, the later content counts."""
        async with self._reloading:
            notify_systemd(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
            try:
                world = await asyncio.wrap_future(threads.run_in_thread("reload", self._reload))
            except SentinelError as error:
                _LOG.error("configuration not reloaded, the old one stays in force:\n%s", error)
            else:
                await self._engine.switch_config(world)
                # the configuration has a new problem, or an old one is gone
                self._engine.troubled.set()
                if world.invalid:
                    _LOG.error(
                        "configuration not reloaded, the old one stays in force without "
                        "actions:\n%s",
                        world.invalid,
                    )
                    return
                self._plan_checks()
                self._turned.set()
                _LOG.info("configuration reloaded: %d checks", len(world.checks))
            finally:
                self._notify_ready()

    async def _shut_down(self) -> None:
        notify_systemd("STOPPING=1")
        self._schedule.stop_scheduler()
        self._engine.stop_acting()
        try:
            if self._failure is None:
                await self._send_last_messages()
        finally:
            await self._engine.close()
            for task in self._tasks:
                task.cancel()

    async def _send_last_messages(self) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._engine.commit_finished(), FAREWELL_TIMEOUT_S)
        self._engine.committed.set()
        if not await self._engine.drain_outbox(FAREWELL_TIMEOUT_S):
            _LOG.warning("stopped with unsent notifications; the next start sends them")

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(self._stop_on_fenced(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop_on_fenced(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Fenced as error:
            self._failure = error
            self.request_stop()
        except Exception:
            _LOG.exception("internal error; the service goes on")
