"""False alarms and time to detection of the `log` kind, on simulated months of training.

`python -m benchmarks.bench_log_replay [DAYS] [EVERY] [SEED]`: healthy job-days in all (default
1000, about ten minutes), seconds between looks (60), and the first seed (0). The trainings are invented, see
tests/replay/: what counts is the comparison of the two rules on the same logs.
"""

import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.measure import machine
from tests.replay.shapes import SHAPES
from tests.replay.simulate import DAY, EVERY, GIVE_UP, Outcome, Told, training

LENGTH = 10.0
"""Healthy days of one training; on the first of them `auto` is still careful."""
HANGS = 0.5
"""Share of jobs that end in a hang."""


def main() -> None:
    """Print the table."""
    days = float(sys.argv[1]) if len(sys.argv) > 1 else 1000.0
    every = float(sys.argv[2]) if len(sys.argv) > 2 else EVERY
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    print(f"{machine()}; a look every {every:g} s; seeds from {first}")
    print("              healthy   false alarms   hangs    20m    auto, minutes to the alarm")
    print(
        "trainer          days  20m auto other        mean   mean median  seldom"
        "  paused first day missed  all least"
    )
    total = Outcome()
    count = round(days / LENGTH / len(SHAPES)) or 1
    with ProcessPoolExecutor() as workers:
        for shape in SHAPES:
            found = Outcome()
            watched = partial(training, shape, LENGTH, HANGS, every=every)
            for outcome in workers.map(watched, range(first, first + count)):
                add(found, outcome)
            show(shape.name, found)
            add(total, found)
    show("all", total)


def add(total: Outcome, one: Outcome) -> None:
    """Sum up."""
    total.healthy += one.healthy
    total.looks += one.looks
    total.hangs += one.hangs
    total.young += one.young
    total.paused += one.paused
    total.seldom += one.seldom
    total.least += one.least
    for name, count in one.false.items():
        total.false[name] = total.false.get(name, 0) + count


def show(name: str, found: Outcome) -> None:
    """One line of the table."""
    other = sum(n for rule, n in found.false.items() if rule not in ("20m", "auto"))
    plain = [*found.hangs, *found.seldom]
    every = [*plain, *found.paused, *found.young]
    missed = sum(value is None for told in every for value in told.values())
    columns = (
        f"{name:<12}{found.healthy / DAY:>9.0f}",
        f"{found.false.get('20m', 0):>5}{found.false.get('auto', 0):>5}{other:>6}",
        f"{len(every):>6}{mean(every, '20m'):>7}",
        f"{mean(found.hangs, 'auto'):>7}{median(found.hangs, 'auto'):>7}",
        f"{mean(found.seldom, 'auto'):>8}{mean(found.paused, 'auto'):>8}",
        f"{mean(found.young, 'auto'):>10}{missed:>7}",
        f"{mean(plain, 'auto'):>5}{statistics.mean(found.least) / 60 if plain else 0:>6.1f}",
    )
    print("".join(columns), flush=True)


def mean(told: Sequence[Told], rule: str) -> str:
    """Minutes until it was told."""
    return f"{statistics.mean(seconds(told, rule)) / 60:.1f}" if told else "-"


def median(told: Sequence[Told], rule: str) -> str:
    """Likewise."""
    return f"{statistics.median(seconds(told, rule)) / 60:.1f}" if told else "-"


def seconds(told: Sequence[Told], rule: str) -> list[float]:
    """Until it was told; a hang that never was counts with the two hours it was watched."""
    return [GIVE_UP if one[rule] is None else float(one[rule] or 0) for one in told]


if __name__ == "__main__":
    main()
