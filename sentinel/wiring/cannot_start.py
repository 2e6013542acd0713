"""A watchdog that cannot start says so before it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING

from sentinel.config.settings import Settings
from sentinel.core.clock import SECOND, Instant
from sentinel.core.errors import StoreBusy, StoreError
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.store.spare import said_lately
from sentinel.wiring import app

if TYPE_CHECKING:
    from sentinel.core.model import Notification
    from sentinel.core.ports import Store

_LOG = logging.getLogger("sentinel")
LIMIT = 30.0
"""Seconds for all channels together."""

QUIET = 900.0
"""Seconds for which a leader may write nothing, however often its checks run."""


class Silent(StoreError):
    """Another sentinel leads and does not watch."""


def silent(settings: Settings, store: Store, busy: StoreBusy, now: Instant) -> Silent | None:
    """Whether who leads has kept nothing for three intervals and more than QUIET: a process that
    hangs or was stopped holds its lock all the same. None where that is not known."""
    from sentinel.engine.runner import every

    often = [every(check) for check in settings.checks if check.common.cron is None]
    try:
        last = max(run.at.wall for run in store.runs())
    except (StoreError, ValueError):
        return None
    quiet = (now.wall - max(last, busy.since)) / SECOND
    if not often or not busy.since or quiet < max(QUIET, 3 * min(often)):
        return None
    ago = duration_text(quiet)
    return Silent(f"{busy}; it has written nothing for {ago}: see whether it hangs, and end it")


async def say(settings: Settings, error: StoreError) -> None:
    """Tell once an hour through all channels that are not for users what keeps it from starting."""
    if said_lately(f"{app.state_of(settings)}\0{error}", time.time()):
        return
    start = "" if isinstance(error, Silent) else "sentinel does not start, so nothing is watched: "
    message = _message(settings, f"{start}{error}")
    channels = [c for c in settings.channels if not c.plugin.personal]
    work = [asyncio.ensure_future(c.plugin.send([message])) for c in channels]
    if work:
        await asyncio.wait(work, timeout=LIMIT)
    for channel, sending in zip(channels, work, strict=True):
        if not sending.done():
            sending.cancel()
            _LOG.warning("channel %s: not told in time", channel.name)
        elif failed := sending.exception():
            _LOG.warning("channel %s: %s", channel.name, visible(str(failed)))


def _message(settings: Settings, what: str) -> Notification:
    from sentinel.alerting.processor import Plan, notification
    from sentinel.alerting.state_machine import step
    from sentinel.clock import SystemClock
    from sentinel.core.model import Finding, Key, Status
    from sentinel.engine.housekeeping import NAME, POLICY

    zone = app.zone(settings)
    plan = Plan(
        cluster=settings.cluster or os.uname().nodename, policies={}, channels=[], zone=zone
    )
    finding = Finding(subject="state", status=Status.CRITICAL, summary=visible(what))
    key = Key(plan.cluster, NAME, "state")
    done = step(key, None, finding, POLICY, SystemClock().now(), "start")
    assert done.alert is not None
    assert done.transition is not None
    return notification(done.alert, done.transition, plan)
