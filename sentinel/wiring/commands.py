"""Runs sentinel for one pass, or to send waiting messages; begins what a service begins too."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from sentinel.clock import SystemClock
from sentinel.config.problems import ConfigError
from sentinel.config.settings import Settings
from sentinel.core.errors import Fenced, SentinelError, StoreBusy, StoreError
from sentinel.engine.engine import Engine
from sentinel.engine.pipeline import CLUSTER_KEY
from sentinel.engine.tick import run_pass as one_pass
from sentinel.engine.tick import send_waiting as send
from sentinel.wiring import app, cannot_start, last_good
from sentinel.wiring.runtime import build_runtime_config

if TYPE_CHECKING:
    from sentinel.alerting.state import Store
    from sentinel.core.model import CheckRun


Answer = TypeVar("Answer")


def deliver_outbox(path: str | None) -> bool:
    """Send the messages that wait in the outbox. Returns whether none is left. Raises StoreBusy if
    a service or tick runs, which sends them itself."""
    settings, invalid = load_settings_or_report(path)
    clock = SystemClock()
    store, notices = open_state_or_report(settings, clock)

    async def deliver_once() -> bool:
        engine = make_engine(settings, store, clock, notices, False, invalid)
        await lead_or_report(engine, settings, store)
        try:
            return await send(engine)
        finally:
            await engine.close()

    return asyncio.run(deliver_once())


def run_tick(
    path: str | None,
    *,
    dry_run: bool,
    everything: bool,
    delivering: bool = True,
    spacing: int = 0,
    quiet: bool = False,
) -> tuple[list[CheckRun], bool, str]:
    """Make one pass. Returns the runs, whether all notifications were delivered, and why the
    results could be kept neither in the state nor in a journal (empty if they were).

    `spacing`: of passes that several hosts make; see told_elsewhere. `quiet`: the path of the file
    is not printed."""
    settings, invalid = load_settings_or_report(path, quiet=quiet)
    clock = SystemClock()
    store, notices = open_state_or_report(settings, clock)

    async def run_single_pass() -> tuple[list[CheckRun], bool]:
        engine = make_engine(settings, store, clock, notices, dry_run, invalid)
        await lead_or_report(engine, settings, store, "one pass of sentinel")
        try:
            done = await one_pass(
                engine,
                clock.now(),
                everything=everything,
                delivering=delivering,
                spacing=spacing,
            )
            await _write_metrics_file(engine, settings, clock)
            return done
        finally:
            await engine.close()

    runs, delivered = asyncio.run(run_single_pass())
    return runs, delivered, describe_lost_state(store)


def load_settings_or_report(
    path: str | None, *, default: bool = False, quiet: bool = False
) -> tuple[Settings, str]:
    """The settings that apply, and what is wrong with their file. If none are valid any more, the
    channels of the last valid ones are notified: a new version may refuse what an older one
    accepted."""
    try:
        return last_good.load_or_last_good(path, default=default, quiet=quiet)
    except ConfigError as error:
        known = last_good.find_last_good_channels(path)
        if known is not None:
            refused = SentinelError(f"its configuration is refused: {error.problems[0]}")
            asyncio.run(cannot_start.report_start_failure(known, refused))
        raise


def describe_lost_state(store: Store) -> str:
    """Why the results are lost when this process ends; empty if they are not."""
    trouble = store.trouble
    return "" if trouble is None or store.is_durable else trouble.why


def open_state_or_report(settings: Settings, clock: SystemClock) -> tuple[Store, list[str]]:
    """The store and its notices. If it cannot be opened, people are notified first."""
    try:
        return app.open_state(settings, clock)
    except StoreBusy:
        raise
    except StoreError as error:
        asyncio.run(cannot_start.report_start_failure(settings, error))
        raise


async def start_leading(engine: Engine, settings: Settings, who: str = "sentinel") -> None:
    """Begin to lead as `who`, and end an alert about a failed start."""
    await engine.start_leading(name_lease_holder(who))
    await cannot_start.report_recovery(settings, engine)


async def lead_or_report(
    engine: Engine, settings: Settings, store: Store, who: str = "sentinel"
) -> None:
    """Begin to lead. If that fails, also because of a leader that hangs, people are notified
    first."""

    async def start_or_find_silent() -> None:
        try:
            await start_leading(engine, settings, who)
        except StoreBusy as error:
            raise (
                cannot_start.find_silent_leader(settings, store, error, SystemClock().now())
                or error
            ) from None

    await report_start_errors(settings, start_or_find_silent())


async def report_start_errors(settings: Settings, beginning: Coroutine[Any, Any, Answer]) -> Answer:
    """The result of `beginning`. If it fails, people are notified before the error is raised."""
    try:
        return await beginning
    except (StoreBusy, Fenced):
        raise
    except StoreError as error:
        await cannot_start.report_start_failure(settings, error)
        raise


def name_lease_holder(who: str) -> str:
    """The name of this process for people, and for other processes that want to lead."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return f"{who} on host {os.uname().nodename}, pid {os.getpid()}" + (
        f" of job {job}" if job else ""
    )


def make_engine(
    settings: Settings,
    store: Store,
    clock: SystemClock,
    notices: list[str],
    dry: bool,
    invalid: str,
) -> Engine:
    return Engine(
        build_runtime_config(settings, clock, dry, _read_cluster_name(store), invalid),
        store,
        clock,
        notices,
    )


def _read_cluster_name(store: Store) -> str:
    """The stored name of the cluster; empty if it is not known."""
    try:
        return str(store.read_memory(CLUSTER_KEY).get("name", ""))
    except StoreError:
        return ""


async def _write_metrics_file(engine: Engine, settings: Settings, clock: SystemClock) -> None:
    """Write the metrics file once, if it is configured."""
    if settings.metrics is None:
        return
    from sentinel.wiring.metrics_file import write_metrics

    await write_metrics(engine, settings, clock)
