"""A watchdog that cannot start says so before it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel.config.settings import Settings
from sentinel.core.clock import SECOND, Instant
from sentinel.core.digests import blake2b
from sentinel.core.errors import StoreBusy, StoreError
from sentinel.core.model import Alert, Told
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.proc.threads import Patience
from sentinel.store.errors import Refused
from sentinel.store.rows import Unreadable, decode, encode
from sentinel.store.spare import Place, said_lately, volatile_places
from sentinel.wiring import app

if TYPE_CHECKING:
    from sentinel.alerting.state import Store
    from sentinel.core.model import Notification
    from sentinel.engine.engine import Engine

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
    from sentinel.core.due import every

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
    alert, message = _message(settings, f"{start}{error}")
    told: dict[str, Told] = {}
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
        else:
            told[channel.name] = Told(alert.last, alert.severity)
    _note(settings, replace(alert, told=told))


async def mended(settings: Settings, engine: Engine) -> None:
    """It has started: what was told of that it does not goes on as an alert, and so has its end."""
    from sentinel.alerting.handover import Handed

    places = _places(settings)
    told = [alert for place in places for alert in _told(place)]
    if told:
        await engine.take_over(Handed(alerts=tuple({alert.id: alert for alert in told}.values())))
        for place in places:
            with suppress(OSError):
                place.do(place.journal.remove)


def _note(settings: Settings, alert: Alert) -> None:
    """For whoever starts next: in the first place that takes it."""
    for place in _places(settings):
        told = {name: told for before in _told(place) for name, told in before.told.items()}
        record = encode(replace(alert, told={**told, **alert.told})).encode()
        with suppress(OSError, Refused):
            place.do(place.require)
            place.do(partial(place.journal.begin, record))
            return


def _told(place: Place) -> list[Alert]:
    with suppress(OSError, Refused, Unreadable):
        return [decode(record.decode(), Alert) for record in place.do(place.journal.read)[-1:]]
    return []


def _places(settings: Settings) -> list[Place]:
    """Hosts that share `spare_state:` share it too."""
    name = "not-started-" + blake2b(app.state_of(settings).encode(), digest_size=6).hexdigest()
    spare = [
        Place(settings.spare_state, name, shared=False, patience=Patience(app.PATIENCE, "journal"))
    ]
    return [*(spare if settings.spare_state else ()), *volatile_places(name)]


def _message(settings: Settings, what: str) -> tuple[Alert, Notification]:
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
    return done.alert, notification(done.alert, done.transition, plan)
