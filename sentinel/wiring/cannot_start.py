"""Notifies people if sentinel cannot start, before it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel.alerting.handover import Handover
from sentinel.alerting.notifications import NotificationPlan, make_notification
from sentinel.alerting.state_machine import advance_alert
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.clock import SECOND, Instant
from sentinel.core.digests import blake2b
from sentinel.core.due import get_interval_s
from sentinel.core.errors import SentinelError, StoreBusy, StoreError
from sentinel.core.model import Alert, Finding, Key, LastNotified, Status
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.engine.housekeeping import SELF_CHECK_NAME, SELF_CHECK_POLICY
from sentinel.proc.threads import BoundedWorker
from sentinel.store.errors import StateRefused
from sentinel.store.rows import UnreadableRow, decode_stored, encode_stored
from sentinel.store.spare_journals import JournalDir, is_recent_repeat, make_volatile_dirs
from sentinel.wiring import app

if TYPE_CHECKING:
    from sentinel.alerting.state import Store
    from sentinel.core.model import Notification
    from sentinel.engine.engine import Engine

_LOG = logging.getLogger("sentinel")
SEND_TIMEOUT_S = 30.0
"""Seconds for sending to all channels together."""

MAX_LEADER_SILENCE_S = 900.0
"""Seconds for which a leader may write nothing, however often its checks run."""


class LeaderSilent(StoreError):
    """Another sentinel leads but runs no checks."""


def find_silent_leader(
    settings: Settings, store: Store, busy: StoreBusy, now: Instant
) -> LeaderSilent | None:
    """The error to raise if the leader has stored no run for three intervals and for more than
    MAX_LEADER_SILENCE_S; None if it has, or that is not known. A process that hangs or was stopped
    still holds its lock."""
    often = [get_interval_s(check) for check in settings.checks if check.common.cron is None]
    try:
        last = max(run.at.wall for run in store.read_runs())
    except (StoreError, ValueError):
        return None
    quiet = (now.wall - max(last, busy.since)) / SECOND
    if not often or not busy.since or quiet < max(MAX_LEADER_SILENCE_S, 3 * min(often)):
        return None
    ago = duration_text(quiet)
    return LeaderSilent(
        f"{busy}; it has written nothing for {ago}: see whether it hangs, and end it"
    )


async def report_start_failure(settings: Settings, error: SentinelError) -> None:
    """Notify all channels that are not personal that sentinel cannot start and why; at most once an
    hour."""
    if is_recent_repeat(f"{app.get_state_location(settings)}\0{error}", time.time()):
        return
    start = (
        ""
        if isinstance(error, LeaderSilent)
        else "sentinel does not start, so nothing is watched: "
    )
    alert, message = _build_start_failure(settings, f"{start}{error}")
    told: dict[str, LastNotified] = {}
    channels = [c for c in settings.channels if not c.plugin.personal]
    work = [asyncio.ensure_future(c.plugin.send([message])) for c in channels]
    if work:
        await asyncio.wait(work, timeout=SEND_TIMEOUT_S)
    for channel, sending in zip(channels, work, strict=True):
        if not sending.done():
            sending.cancel()
            _LOG.warning("channel %s: not told in time", channel.name)
        elif failed := sending.exception():
            _LOG.warning("channel %s: %s", channel.name, visible(str(failed)))
        else:
            told[channel.name] = LastNotified(alert.last, alert.severity)
    _store_start_alert(settings, replace(alert, told=told))


async def report_recovery(settings: Settings, engine: Engine) -> None:
    """Take over the alert about a failed start, now that sentinel has started, so that its end is
    notified."""
    places = _list_journal_places(settings)
    told = [alert for place in places for alert in _read_start_alerts(place)]
    if told:
        await engine.take_over_alerts(
            Handover(alerts=tuple({alert.id: alert for alert in told}.values()))
        )
        for place in places:
            with suppress(OSError):
                place.do(place.journal.remove_files)


def _store_start_alert(settings: Settings, alert: Alert) -> None:
    """Store the alert about a failed start for the next process, in the first directory that
    accepts it."""
    for place in _list_journal_places(settings):
        told = {
            name: told for before in _read_start_alerts(place) for name, told in before.told.items()
        }
        record = encode_stored(replace(alert, told={**told, **alert.told})).encode()
        with suppress(OSError, StateRefused):
            place.do(place.require_folder)
            place.do(partial(place.journal.restart_with, record))
            return


def _read_start_alerts(place: JournalDir) -> list[Alert]:
    with suppress(OSError, StateRefused, UnreadableRow):
        return [
            decode_stored(record.decode(), Alert)
            for record in place.do(place.journal.read_records)[-1:]
        ]
    return []


def _list_journal_places(settings: Settings) -> list[JournalDir]:
    """Directories for that alert. Hosts that share `spare_state:` share it too."""
    name = (
        "not-started-"
        + blake2b(app.get_state_location(settings).encode(), digest_size=6).hexdigest()
    )
    spare = [
        JournalDir(
            settings.spare_state,
            name,
            shared=False,
            patience=BoundedWorker(app.STATE_LOOK_TIMEOUT_S, "journal"),
        )
    ]
    return [*(spare if settings.spare_state else ()), *make_volatile_dirs(name)]


def _build_start_failure(settings: Settings, what: str) -> tuple[Alert, Notification]:
    zone = app.get_time_zone(settings)
    plan = NotificationPlan(
        cluster=settings.cluster or os.uname().nodename, policies={}, channels=[], zone=zone
    )
    finding = Finding(subject="state", status=Status.CRITICAL, summary=visible(what))
    key = Key(plan.cluster, SELF_CHECK_NAME, "state")
    done = advance_alert(key, None, finding, SELF_CHECK_POLICY, SystemClock().now(), "start")
    assert done.alert is not None
    assert done.transition is not None
    return done.alert, make_notification(done.alert, done.transition, plan)
