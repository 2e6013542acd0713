"""Real step times against the detector of small slowdowns: what it says while nothing changed, and
how soon it tells a slowdown that is injected half-way."""

import re
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from msgspec import Struct, field

from benchmarks.real.hangs import progress_of
from benchmarks.real.logs import Run, lines
from sentinel.checks.log.slowdown import (
    BATCH_STEPS,
    MAX_DETECT_BATCHES,
    MAX_KEPT_BATCHES,
    WARNING_SHARE,
    StepTimeTrend,
    add_step_times,
)
from sentinel.core.clock import SECOND, Instant

SOON = MAX_DETECT_BATCHES * BATCH_STEPS
"""Step times within which a slowdown has to be told."""
KNOWN = SOON + 3 * BATCH_STEPS
"""Step times before it: a reference, and first batches that do not count."""
ENOUGH = KNOWN + SOON
TRIALS = 10
"""Slowdowns that are injected into each training."""
Times = tuple[float, float, str]
"""Seconds since the value before, those of a step, the job."""
PRINTED = re.compile(rb'"train_step_time": ([\d.]+)')
"""Of MLPerf's runs by NeMo (custom_callbacks.py of their submitters)."""
DAY = 86400.0
BLOCK = 50
"""Step times that are drawn together, so that what belongs together stays (block bootstrap:
H. R. Kuensch, Annals of Statistics 17, 1989)."""


class Slowdowns(Struct):
    """`values` seen and `days` they took, `false` alarms in them, of which `messages`
    were large enough; of injected slowdowns the step
    times until they were told (None: not at all), and the least that the detector could see."""

    values: int = 0
    days: float = 0.0
    false: list[str] = field(default_factory=list)
    told: list[int | None] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    resampled: float = 0.0
    resampled_false: int = 0
    messages: int = 0

    def add(self, other: "Slowdowns") -> None:
        """Sum up."""
        self.values += other.values
        self.days += other.days
        self.false += other.false
        self.told += other.told
        self.least += other.least
        self.resampled += other.resampled
        self.resampled_false += other.resampled_false
        self.messages += other.messages


def slowdowns(several: Sequence[Run], seed: int, share: float, days: float) -> Slowdowns:
    """The jobs of one name one after the other; `days` are resampled from them."""
    found, random = Slowdowns(), Random(seed)
    number, pace = re.compile(progress_of(several[0]).encode()), StepTimeTrend()
    every: list[Times] = []
    for number_of, run in enumerate(several):
        times = step_times(run, number)
        every += [(took, one, str(number_of)) for took, one in times]
        found.values += len(times)
        found.days += sum(took for took, _ in times) / DAY
        pace, told = watched(pace, every[len(every) - len(times) :])
        if told is not None:
            count, share = told
            found.messages += share >= WARNING_SHARE
            found.false.append(f"{run.path} at value {count} of {len(times)}: {share:.1%}")
    if len(every) >= ENOUGH:
        injected(found, every, share, random)
        resampled(found, every, days, random)
    return found


def step_times(run: Run, number: "re.Pattern[bytes]") -> list[tuple[float, float]]:
    """Seconds from one value to the next, and the time of a step: what the log says it took, or
    else what one unit of its number took."""
    written = lines(run)
    if any(PRINTED.search(text) for _, text in written):
        found = [(at, float(m[1])) for at, text in written for m in PRINTED.finditer(text)]
        return [(later[0] - early[0], later[1]) for early, later in pairwise(found)]
    seen, times = (0.0, 0.0), list[tuple[float, float]]()
    for at, text in written:
        match = None if b"eval" in text or b"validation" in text else number.search(text)
        if match and float(match[1]) != seen[1]:
            took, far = at - seen[0], float(match[1]) - seen[1]
            times += [(took, took / far)] if seen[0] and took > 0 and far > 0 else []
            seen = (at, float(match[1]))
    return times


def watched(
    pace: StepTimeTrend, times: Sequence[Times]
) -> tuple[StepTimeTrend, tuple[int, float] | None]:
    """After these, and the number of the step time at which a slowdown was told first, and how
    large it was then."""
    told = None
    for count, (_, one, job) in enumerate(times, 1):
        before = pace.told
        pace = add_step_times(pace, [one], Instant(count * SECOND), job, "")
        if pace.told and not before and told is None:
            told = count, pace.slowdown_share
    return pace, told


def injected(found: Slowdowns, every: Sequence[Times], share: float, random: Random) -> None:
    """From random moments on every step takes longer; 200 step times are left to tell it."""
    for _ in range(TRIALS):
        at = random.randint(KNOWN, len(every) - SOON)
        pace, _ = watched(
            StepTimeTrend(), every[max(0, at - 2 * BATCH_STEPS * MAX_KEPT_BATCHES) : at]
        )
        if pace.usual_s is None or pace.told:
            continue
        found.least.append(pace.least_share)
        slow = [(took, one * (1 + share), job) for took, one, job in every[at : at + SOON]]
        told = watched(pace, slow)[1]
        found.told.append(told[0] if told else None)


def resampled(found: Slowdowns, every: Sequence[Times], days: float, random: Random) -> None:
    """So many days, drawn from these step times in blocks."""
    pace, seconds = StepTimeTrend(), 0.0
    while seconds < days * DAY:
        at = random.randrange(len(every) - BLOCK)
        for took, one, _ in every[at : at + BLOCK]:
            before, seconds = pace.told, seconds + took
            pace = add_step_times(pace, [one], Instant(0), "0", "")
            found.resampled_false += pace.told and not before
    found.resampled += seconds / DAY
