"""Bad ends of the jobs of one training, and which of them people have been told of. Also what a
check newly fails to see. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Alert, Death
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text

MAX_DEATHS = 100
"""Deaths that one alert remembers. The oldest told ones are dropped first."""

EVENTS_PER_HOUR = 3
"""Messages about further deaths under one alert within an hour. The next one waits until the hour
is over, and then tells all that have died since."""

HOUR_S = 3600


def merge_deaths(
    known: Sequence[Death], found: Iterable[Death], last_told: Instant | None
) -> tuple[Death, ...]:
    """The deaths that are known after a look. What was found before the last message stood in it."""
    runs = {one.run: one for one in known}
    for one in found:
        before = runs.get(one.run)
        in_message = last_told is not None and one.noticed.wall <= last_told.wall
        told = before.told if before else last_told if in_message else None
        runs[one.run] = replace(
            one,
            told=told,
            noticed=before.noticed if before else one.noticed,
            line=one.line or (before.line if before else ""),
            last_lines=one.last_lines or (before.last_lines if before else ""),
        )
    newest = sorted(
        runs.values(), key=lambda one: (one.told is None, one.noticed.wall, one.started or 0)
    )
    return tuple(newest[-MAX_DEATHS:])


def describe_news(alert: Alert, blind_after: int, now: Instant) -> str:
    """What no message has told yet, and is due now: deaths, and what was not seen in `blind_after`
    runs in a row. Empty if there is none, or if the hour has had enough of such messages."""
    if len(recent_events(alert.death_events, now)) >= EVENTS_PER_HOUR:
        return ""
    dead = [one for one in alert.deaths if one.told is None and one.due <= now.wall / SECOND]
    unseen = [
        name
        for name, runs in alert.unseen.items()
        if runs >= blind_after and name not in alert.unseen_told
    ]
    died = describe_deaths(dead, alert.last_told) if dead else ""
    names = shortened(visible(", ".join(unseen)), 120)
    return "; ".join(filter(None, [died, f"now not seen either: {names}" if names else ""]))


def recent_events(events: Iterable[int], now: Instant) -> tuple[int, ...]:
    """The messages of the last hour. One in the future counts: the clock was set back."""
    return tuple(at for at in events if abs(now.wall - at) < HOUR_S * SECOND)


def mark_told(deaths: Iterable[Death], now: Instant) -> tuple[Death, ...]:
    """The deaths, after a message that shows all of them."""
    return tuple(replace(one, told=now) if one.told is None else one for one in deaths)


def find_noticed(alert: Alert) -> Instant:
    """When what the alert shows was first seen. A later death is shown in place of the first one."""
    shown = alert.shown_since.wall
    later = [one.noticed for one in alert.deaths if one.noticed.wall >= shown > alert.since.wall]
    return min(later, key=lambda at: at.wall, default=alert.since)


def find_first_end(alert: Alert) -> Instant:
    """When the alert began: with the first of its deaths, also if it shows a later one. What an earlier
    alert told is not its own. A death may be noticed a moment before the alert is made."""
    own = [
        one.ended
        for one in alert.deaths
        if one.ended and (one.told or one.noticed).wall >= alert.since.wall
    ]
    return Instant(wall=min([alert.shown_since.wall, *(at * SECOND for at in own)]))


def describe_deaths(new: Sequence[Death], last_told: Instant | None) -> str:
    """What has died since the last message: `job 12 died too, after 37s; it started after the last
    message`. Slurm knows starts to the second: one in the second of that message counts as after it."""
    if len(new) > 1:
        jobs = dict.fromkeys(one.job for one in new)
        names = shortened(visible(", ".join(jobs)), 120)
        return f"died {len(new)} more times (job{'s' * (len(jobs) > 1)} {names}){_name_shared(new)}"
    (one,) = new
    after = last_told is not None and (one.started or 0) >= last_told.wall // SECOND
    when = "; it started after the last message" if after else ""
    took = [f", after {text}" for text in [_describe_length(one)] if text]
    return f"job {visible(one.job)} died too{''.join(took)}{when}"


def _describe_length(one: Death) -> str:
    if one.started is None or one.ended is None or one.ended < one.started:
        return ""
    return duration_text(one.ended - one.started)


def _name_shared(new: Sequence[Death]) -> str:
    """What all of them have in common."""
    ends, codes = {one.end for one in new}, {one.exit for one in new}
    if len(ends) > 1 or not (end := new[0].end):
        return ""
    code = f" with exit code {new[0].exit}" if len(codes) == 1 and new[0].exit else ""
    return f", each {visible(end)}{code}"
