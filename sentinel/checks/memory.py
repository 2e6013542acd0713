"""The `memory` kind: what of this host's memory can still be had, and where it is heading.

Page cache that can be given back is not use: the level is MemAvailable of proc_meminfo(5).
"""

import os
from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from sentinel.core.clock import SECOND, Instant, elapsed
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Sample, Status, Value
from sentinel.core.ports import Context
from sentinel.core.values import Duration, Share, Size, duration_text, size_text

_FEWEST = 5  # observations that make a trend


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad from these shares on, below this much available, when full within this time."""

    used: Share | None = None
    available: Size | None = None
    swap_used: Share | None = None
    full_in: Duration | None = None


class Level(Struct, frozen=True, kw_only=True):
    """Bytes of memory and swap."""

    total: int
    available: int
    swap: int
    swap_free: int

    @property
    def used_percent(self) -> float:
        """Of what no process can have any more."""
        return round(100 * (self.total - self.available) / self.total, 2)

    @property
    def swap_used_percent(self) -> float | None:
        """None without swap."""
        return round(100 * (self.swap - self.swap_free) / self.swap, 2) if self.swap else None


class Memory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memory of this host that can still be had: level, swap and trend.

    `window`: how far back the trend looks; it counts from half-full memory on.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 10

    warn: Limits = Limits(used=Share(90), full_in=Duration(900))
    crit: Limits = Limits(used=Share(97))
    window: Duration = Duration(1800)

    def __post_init__(self) -> None:
        for name, sign in (("used", 1), ("available", -1), ("swap_used", 1), ("full_in", -1)):
            early, late = getattr(self.warn, name), getattr(self.crit, name)
            if early is not None and late is not None and sign * early > sign * late:
                raise Invalid(
                    f"warns at {early} but is critical at {late} already: "
                    f"{name} has to be {'lower' if sign > 0 else 'higher'} in warn than in crit",
                    "warn",
                    name,
                )

    def run(self, ctx: Context) -> Report:
        """One finding, about `memory`; the trend is known once there is a history."""
        level = read()
        past = () if ctx.one_shot else ctx.history("memory", "available_bytes", float(self.window))
        left = heading(level, past, ctx.now, float(self.window))
        status, summary = judge(level, left, self.warn, self.crit)
        values: dict[str, Value] = {
            "used_percent": level.used_percent,
            "available_bytes": level.available,
            "size_bytes": level.total,
            "swap_used_percent": level.swap_used_percent,
            "full_in_seconds": left,
        }
        finding = Finding(
            subject="memory",
            status=status,
            summary=summary,
            values=values,
            commands=("ps -eo pid,user,rss,args --sort=-rss | head",) if status.bad else (),
            labels={"node": os.uname().nodename.partition(".")[0]},
        )
        return Report(findings=(finding,), samples=_samples(values))


def read() -> Level:
    """This host's memory now, by psutil; raises CannotTell."""
    import psutil

    try:
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    except (OSError, RuntimeError, ValueError) as error:
        raise CannotTell(f"memory cannot be read: {error}") from error
    return Level(
        total=memory.total, available=memory.available, swap=swap.total, swap_free=swap.free
    )


def heading(
    level: Level, past: Sequence[tuple[Instant, float]], now: Instant, window: float
) -> float | None:
    """Seconds until memory is full; None below half, where a job that loads its data is usual."""
    if level.used_percent < 50:
        return None
    return full_in([*past, (now, float(level.available))], window)


def full_in(past: Sequence[tuple[Instant, float]], window: float) -> float | None:
    """Seconds until nothing is available if it goes on so; None where no trend is seen.

    The slope is the median over pairs half the history apart, so that one leap (a job that
    starts) is no trend. It needs five observations over a third of the window.
    """
    if len(past) < _FEWEST or elapsed(past[0][0], past[-1][0]) < window / 3:
        return None
    half = len(past) // 2
    slopes = sorted(_slope(a, b) for a, b in zip(past, past[half:], strict=False))
    slope = slopes[len(slopes) // 2]
    return past[-1][1] / -slope if slope < 0 else None


def judge(level: Level, left: float | None, warn: Limits, crit: Limits) -> tuple[Status, str]:
    """The stricter limit decides; the summary names every limit crossed at that degree."""
    text = f"{level.used_percent:g}% used, {size_text(level.available)} available"
    if level.swap_used_percent:
        text += f", {level.swap_used_percent:g}% of swap used"
    if left is not None and _soon(left, warn, crit):
        text += f", full in {duration_text(left)} if it goes on so"
    for status, limits in ((Status.CRITICAL, crit), (Status.WARNING, warn)):
        if crossed := _crossed(level, left, limits):
            return status, f"{text} ({status.value} {' and '.join(crossed)})"
    return Status.OK, text


def _soon(left: float, *limits: Limits) -> bool:
    return any(one.full_in is not None and left <= one.full_in for one in limits)


def _crossed(level: Level, left: float | None, limits: Limits) -> list[str]:
    swap = level.swap_used_percent
    crossed = []
    if limits.used is not None and level.used_percent >= limits.used:
        crossed.append(f"from {limits.used}")
    if limits.available is not None and level.available < limits.available:
        crossed.append(f"below {limits.available}")
    if limits.swap_used is not None and swap is not None and swap >= limits.swap_used:
        crossed.append(f"from {limits.swap_used} of swap")
    if limits.full_in is not None and left is not None and left <= limits.full_in:
        crossed.append(f"when full within {limits.full_in}")
    return crossed


def _slope(a: tuple[Instant, float], b: tuple[Instant, float]) -> float:
    return (b[1] - a[1]) / max(elapsed(a[0], b[0]), 1 / SECOND)


def _samples(values: dict[str, Value]) -> tuple[Sample, ...]:
    kept = ("used_percent", "available_bytes", "swap_used_percent")
    return tuple(
        Sample("memory", name, float(value))
        for name in kept
        if isinstance(value := values[name], int | float)
    )
