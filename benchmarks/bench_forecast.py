"""Back-test of the forecast: months of use as it is, against the plain 85% rule.

`python -m benchmarks.bench_forecast`. Every year is generated: people and jobs write and delete on
a file system of 100 TB, hour by hour; when it is full somebody frees half of it six hours later.
An alarm is *right* when it begins between LATE and EARLY before the file system is full, *too
late* when it begins after that, and *too early* when nothing is full within EARLY of its begin.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from sentinel.core.forecast.forecast import make_forecast

SIZE = 100.0
DAYS = 150
WARM = 14 * 24
LATE, EARLY = 24, 7 * 24
EVERY = 2
"""Hours: a day's notice is needed, more than a week's is noise; how often a rule looks."""
HORIZON = 3 * 24
KEEP = 6
"""Hours that an alarm goes on after its last reason: keep_firing_for."""


def steady(dice: random.Random) -> Iterator[float]:
    """Slow growth with days and nights."""
    rate = dice.uniform(0.01, 0.04)
    for hour in range(DAYS * 24):
        yield rate * (1.6 if 8 <= hour % 24 < 20 else 0.4) * dice.lognormvariate(-0.18, 0.6)


def checkpoints(dice: random.Random) -> Iterator[float]:
    """Runs of days that write up to 2.3 TB every three hours and keep the last ones and one a day."""
    hour = 0
    while True:
        kept, size = dice.randint(3, 8), dice.uniform(0.5, 2.3)
        for step in range(dice.randint(24, 144)):
            if step % 3 == 0:
                stays = step % 24 == 0
                gone = size if step // 3 >= kept and not stays else 0.0
                yield size - gone
            else:
                yield dice.uniform(0, 0.02)
            hour += 1
        for _ in range(dice.randint(6, 72)):
            yield dice.uniform(-0.02, 0.02)


def purged(dice: random.Random) -> Iterator[float]:
    """A scratch whose old files go every Sunday night: a saw that rises slowly."""
    rate, written = dice.uniform(0.05, 0.12), list[float]()
    for hour in range(DAYS * 24):
        change = rate * dice.lognormvariate(-0.18, 0.6)
        written.append(change)
        if hour % 168 == 3 and hour > 168:
            change -= dice.uniform(0.9, 1.0) * sum(written[-168:])
        yield change


def bursts(dice: random.Random) -> Iterator[float]:
    """Mostly quiet; now and then somebody copies in a data set within hours, or removes one."""
    left = 0.0
    for _ in range(DAYS * 24):
        if left == 0.0 and dice.random() < 1 / 120:
            left = dice.choice([1, 1, 1, -1]) * dice.uniform(4, 18)
        step = max(-2.0, min(2.0, left))
        left -= step
        yield step + dice.uniform(-0.01, 0.015)


def mixed(dice: random.Random) -> Iterator[float]:
    """A shared one: some of all."""
    parts = [steady(dice), checkpoints(dice), purged(dice), bursts(dice)]
    for changes in zip(*parts, strict=False):
        yield sum(changes) * 0.5


def fast(dice: random.Random) -> Iterator[float]:
    """One run that keeps everything: 2.3 TB every three hours until it is full, then anew."""
    hour = 0
    while True:
        for _ in range(dice.randint(100, 300)):
            yield 2.3 * dice.uniform(0.9, 1.1) if hour % 3 == 0 else 0.0
            hour += 1
        for _ in range(dice.randint(24, 96)):
            yield 0.0
            hour += 1


KINDS: tuple[Callable[[random.Random], Iterator[float]], ...] = (
    steady,
    checkpoints,
    purged,
    bursts,
    mixed,
    fast,
)


def year(kind: Callable[[random.Random], Iterator[float]], seed: int) -> list[float]:
    """The level each hour; full ones are emptied to about a half six hours later."""
    dice = random.Random(seed)
    level, levels, freed = dice.uniform(30, 60), list[float](), -1
    for change in kind(dice):
        level = min(SIZE, max(5.0, level + change))
        if level >= SIZE and freed < 0:
            freed = 6
        if freed == 0:
            level = dice.uniform(35, 60)
        freed -= freed >= 0
        levels.append(level)
        if len(levels) == DAYS * 24:
            break
    return levels


def by_share(levels: list[float], now: int) -> bool:
    """The plain rule."""
    return levels[now] >= 0.85 * SIZE


def by_forecast(levels: list[float], now: int) -> bool:
    """`warn: {full_in: 3d}`, and nothing else."""
    points = [(3600.0 * h, levels[h]) for h in range(max(0, now - 14 * 24), now + 1)]
    found = make_forecast(points, SIZE - levels[now], 3600.0 * now)
    return bool(found and found.full_in is not None and found.full_in <= 3600 * HORIZON)


def by_line(levels: list[float], now: int) -> bool:
    """A straight line through the last day, as many tools draw it."""
    rate = (levels[now] - levels[now - 24]) / 24
    return rate > 0 and (SIZE - levels[now]) / rate <= HORIZON


def episodes(alarm: list[bool]) -> list[int]:
    """The hours in which an alarm begins, pauses of up to KEEP hours bridged."""
    begins, last = list[int](), -KEEP - 1
    for hour, rings in enumerate(alarm):
        if rings:
            if hour - last > KEEP:
                begins.append(hour)
            last = hour
    return begins


def judge(levels: list[float], rule: Callable[[list[float], int], bool]) -> dict[str, int]:
    """How often right, too late, missed, too early."""
    alarm = [False] * len(levels)
    for hour in range(WARM, len(levels), EVERY):
        alarm[hour : hour + EVERY] = [rule(levels, hour)] * min(EVERY, len(levels) - hour)
    full = [h for h in range(WARM, len(levels)) if levels[h] >= SIZE > levels[h - 1]]
    begins = episodes(alarm)
    found = {"right": 0, "too late": 0, "missed": 0, "too early": 0, "full": len(full)}
    for before, end in zip([0, *full], full, strict=False):
        leads = [end - b for b in begins if max(before, end - EARLY) <= b <= end]
        if not leads:
            rings = any(alarm[max(before + 8, end - LATE) : end])
            found["right" if rings and alarm[end - 1] else "missed"] += 1
        else:
            found["right" if max(leads) >= LATE else "too late"] += 1
    for begin in begins:
        found["too early"] += not any(begin <= end <= begin + EARLY for end in full)
    return found


def main(seeds: int = 3) -> None:
    rules = {"full_in: 3d": by_forecast, "used: 85%": by_share, "line of 24h": by_line}
    total: dict[str, dict[str, int]] = {}
    print(
        f"{'use':<12} {'rule':<12} {'full':>5} {'right':>6} {'late':>5} {'missed':>6} {'early':>6}"
    )
    for kind in KINDS:
        years = [year(kind, seed) for seed in range(seeds)]
        for name, rule in rules.items():
            sums: dict[str, int] = {}
            for levels in years:
                for word, count in judge(levels, rule).items():
                    sums[word] = sums.get(word, 0) + count
                    total.setdefault(name, {}).setdefault(word, 0)
                    total[name][word] += count
            show(kind.__name__, name, sums)
    for name, sums in total.items():
        show("all", name, sums)


def show(use: str, rule: str, sums: dict[str, int]) -> None:
    cells = [sums[word] for word in ("full", "right", "too late", "missed", "too early")]
    print(
        f"{use:<12} {rule:<12} "
        + " ".join(f"{c:>{w}}" for c, w in zip(cells, (5, 6, 5, 6, 6), strict=True))
    )


if __name__ == "__main__":
    main()
