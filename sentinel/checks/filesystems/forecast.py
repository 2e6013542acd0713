"""Adds forecasts to findings: when a file system will be full, and how many checkpoints still fit.
They come from its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.errors import Invalid
from sentinel.core.forecast.forecast import Forecast, make_forecast
from sentinel.core.forecast.thin import Point
from sentinel.core.forecast.words import describe_forecast, parse_headroom
from sentinel.core.model import Finding, Status, Value, get_worst_status
from sentinel.core.stored_memory import decode_memory
from sentinel.core.values import size_text

SPAN = 14 * 86_400.0
AGAIN = 600.0
"""For how many seconds a forecast is used again, with the elapsed time subtracted, before a new one
is made."""

MEMORY = "forecasts"
"""The key below which forecasts are remembered. Subjects begin with a slash or the name of a
node."""

History = Callable[[str, str, float], Sequence[tuple[Instant, float]]]


class MadeForecast(Struct, frozen=True, kw_only=True):
    """A forecast of space, one of inodes, and when they were made."""

    at: Instant  # When it was made.
    free: float  # Free bytes at that time.
    space: Forecast | None = None  # Forecast of space.
    inodes: Forecast | None = None  # Forecast of inodes.


class ForecastSettings(Struct, frozen=True, kw_only=True):
    """The settings that a forecast needs."""

    warn: SpaceLimits  # Limits of a warning.
    crit: SpaceLimits  # Limits of a critical alert.
    headroom: str = ""  # Room for so many checkpoints, as written.
    lag: float = 0.0  # how old the counters may be, in seconds

    @property
    def is_wanted(self) -> bool:
        """Whether the settings need a forecast."""
        return bool(self.headroom) or not (self.warn.full_in is self.crit.full_in is None)


def judge_headroom(text: str) -> None:
    """Raise Invalid if this is not a number of checkpoints."""
    try:
        if text:
            parse_headroom(text)
    except Invalid as error:
        raise Invalid(str(error), "headroom") from None


def forecast_findings(
    findings: Sequence[Finding],
    wishes: ForecastSettings,
    history: History,
    memory: Mapping[str, Any],
    now: Instant,
) -> tuple[tuple[Finding, ...], dict[str, Any]]:
    """The findings with their forecasts, and what to remember of these."""
    kept, changed = dict[str, Any](), list[Finding]()
    for finding in findings:
        made = _make_forecast(finding, history, memory.get(finding.subject), now)
        if made is not None:
            kept[finding.subject] = to_builtins(made)
            finding = _finding_with_forecast(finding, made, wishes, now)
        changed.append(finding)
    return tuple(changed), kept


def history_points(history: Sequence[tuple[Instant, float]], now: Instant) -> list[Point]:
    """The history with its times in seconds UTC, computed by clocks that do not jump within one
    boot. A point that is not later than the one before is left out."""
    found, last = list[Point](), float("-inf")
    wall = now.wall / 1e6
    for moment, value in history:
        at = wall - get_elapsed_s(moment, now)
        if at > last:
            found.append((at, value))
            last = at
    return found


def _make_forecast(
    finding: Finding, history: History, before: Any, now: Instant
) -> MadeForecast | None:
    free = finding.values.get("free_bytes")
    if not isinstance(free, int | float) or isinstance(free, bool):
        return None
    old = decode_memory(before, MadeForecast)
    if (
        old
        and get_elapsed_s(old.at, now) < AGAIN
        and abs(free - old.free) <= 0.01 * max(free, old.free)
    ):
        return old
    wall = now.wall / 1e6
    levels = [(at, -value) for at, value in _level_points(finding, "free_bytes", history, now)]
    inodes = finding.values.get("inodes_used_percent")
    used = _level_points(finding, "inodes_used_percent", history, now) if inodes is not None else []
    share = float(inodes) if isinstance(inodes, int | float) else 0.0
    return MadeForecast(
        at=now,
        free=float(free),
        space=make_forecast([*levels, (wall, -float(free))], float(free), wall),
        inodes=make_forecast([*used, (wall, share)], 100.0 - share, wall) if used else None,
    )


def _level_points(finding: Finding, name: str, history: History, now: Instant) -> list[Point]:
    return history_points(history(finding.subject, name, SPAN), now)


def _finding_with_forecast(
    finding: Finding, made: MadeForecast, wishes: ForecastSettings, now: Instant
) -> Finding:
    age = get_elapsed_s(made.at, now) + wishes.lag
    space = made.space.shift_by(age) if made.space else None
    inodes = made.inodes.shift_by(age) if made.inodes else None
    problems = [
        *_judge_forecast(space, wishes, now, "full", ""),
        *_judge_forecast(inodes, wishes, now, "out of inodes", "% of inodes"),
        *_checkpoint_room(finding, space, wishes),
    ]
    status = get_worst_status([finding.status, *(status for status, _ in problems)])
    bad = [text for degree, text in problems if degree is not Status.OK]
    parts = [finding.summary, *bad] if bad or not problems else [finding.summary, problems[0][1]]
    values = {**finding.values, **_forecast_values(space, inodes)}
    return replace(finding, status=status, summary="; ".join(parts), values=values)


def _judge_forecast(
    found: Forecast | None, wishes: ForecastSettings, now: Instant, what: str, unit: str
) -> list[tuple[Status, str]]:
    if found is None or wishes.warn.full_in is wishes.crit.full_in is None:
        return []
    text = describe_forecast(found, now.wall / 1e6, what, unit)
    for status, limits in ((Status.CRITICAL, wishes.crit), (Status.WARNING, wishes.warn)):
        soon = limits.full_in
        if soon is not None and found.full_in is not None and found.full_in <= soon:
            return [(status, f"{text} ({status.value} from {soon} before)")]
    return [(Status.OK, text)]


def _checkpoint_room(
    finding: Finding, space: Forecast | None, wishes: ForecastSettings
) -> list[tuple[Status, str]]:
    """How many checkpoints still fit, if a number is configured."""
    if not wishes.headroom:
        return []
    count, size = parse_headroom(wishes.headroom)
    learned = space.steps.size if space and space.steps else None
    one = float(size) if size is not None else learned
    if one is None:
        return [(Status.OK, "the size of a checkpoint is not known yet")]
    free = finding.values["free_bytes"]
    fit = int(float(free or 0) / max(1.0, one))
    text = f"room for {fit} checkpoint{'s' * (fit != 1)} of {size_text(one)}"
    if fit >= count:
        return [(Status.OK, text)]
    status = Status.CRITICAL if fit < 1 else Status.WARNING
    return [(status, f"{text} ({status.value} below {count if fit else 1})")]


def _forecast_values(space: Forecast | None, inodes: Forecast | None) -> dict[str, Value]:
    found: dict[str, Value] = {}
    if space:
        found["full_in_s"] = space.full_in
        found["full_in_early_s"], found["full_in_late_s"] = space.early, space.late
        if space.steps:
            found["checkpoint_bytes"] = round(space.steps.size)
            found["checkpoint_every_s"] = round(space.steps.every)
    if inodes:
        found["inodes_full_in_s"] = inodes.full_in
    return found
