"""Real runs looked at once a minute by the check's own rules: what is told while they are well,
and how long after a hang at a random moment. Only the hang is invented: nothing comes any more.
"""

from collections.abc import Sequence
from copy import copy
from random import Random

from msgspec import Struct, field
from msgspec.structs import replace

from benchmarks.real.logs import Line, Run, lines
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job
from tests.replay.simulate import (
    EVERY,
    GIVE_UP,
    LEAST,
    RULES,
    WALL,
    File,
    Told,
    Watcher,
    job_of,
    looks,
)

NUMBERS = ("samples_count", "epoch_num", "step_num", "step", "iteration")
"""What MLLOG's lines carry in `metadata` (mlperf_logging/mllog/constants.py)."""
LONG = 2 * 3600.0
"""Seconds of a run that counts as a long one."""


class Hang(Struct, frozen=True):
    """When each rule told it, in seconds after it began; None: not within two hours. `hindsight`:
    the best constant limit of this training, its longest quiet. `long`: its run was.
    `early`: no number had changed yet. `luck`: a rule would have told it without the hang too,
    since it was or came into a false alarm."""

    told: Told
    hindsight: float
    long: bool
    early: bool
    luck: bool


class Outcome(Struct):
    """What came of watching: runs, seconds in which they were well, alarms in these, hangs."""

    runs: int = 0
    healthy: float = 0.0
    false: dict[str, list[str]] = field(default_factory=dict)
    hangs: list[Hang] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Sum up."""
        self.runs += other.runs
        self.healthy += other.healthy
        self.hangs += other.hangs
        for rule, where in other.false.items():
            self.false[rule] = [*self.false.get(rule, []), *where]


class _Loose(Struct, frozen=True):
    """A hang at a moment of its run; its hindsight is not known before the training has ended."""

    at: float
    told: Told
    quiet: float
    long: bool
    early: bool
    luck: bool = False


def training(several: Sequence[Run], seed: int, hangs: int) -> Outcome:
    """The jobs of one name one after the other, each with so many hangs in other worlds."""
    random, watcher, outcome = Random(seed), Watcher(progress_of(several[0])), Outcome()
    loose: list[_Loose] = []
    longest = 0.0
    for number, run in enumerate(several, 1):
        written = lines(run)
        moments = sorted(random.uniform(0, run.seconds) for _ in range(hangs))
        quiet, hung = _watch(watcher, run, number, written, moments, random, outcome)
        longest, loose = max(longest, quiet), [*loose, *hung]
        outcome.runs += 1
        outcome.healthy += run.seconds
    outcome.hangs = [_judged(one, longest) for one in loose]
    return outcome


def progress_of(run: Run) -> str:
    """The number that is written most often."""
    text = run.path.read_text(errors="replace")
    often = max(NUMBERS, key=lambda name: text.count(f'"{name}"'))
    return rf'"{often}": *(-?\d+(?:\.\d+)?)'


def _judged(one: _Loose, longest: float) -> Hang:
    hindsight = max(longest, LEAST) + EVERY / 2 - one.quiet
    return Hang(one.told, max(0.0, hindsight), one.long, one.early, one.luck)


def _lucky(one: _Loose, false: Sequence[tuple[str, float]]) -> bool:
    """Whether the run that is well gives the same alarm: after the hang and before it was told."""
    return any(one.at <= at <= one.at + (one.told[rule] or GIVE_UP) + EVERY for rule, at in false)


def _watch(
    watcher: Watcher,
    run: Run,
    number: int,
    written: Sequence[Line],
    moments: list[float],
    random: Random,
    outcome: Outcome,
) -> tuple[float, list[_Loose]]:
    """One run: its longest quiet, and its hangs."""
    clock, loose, false = number * 1e7, list[_Loose](), list[tuple[str, float]]()
    job, file = job_of(number, clock), File(f"1:{number}")
    upcoming, firing, longest = 0, dict[str, bool](), 0.0
    for now in looks(run.seconds, EVERY, random):
        while moments and moments[0] <= now:
            hang = moments.pop(0)
            until = upcoming + sum(at <= hang for at, _ in written[upcoming:])
            cut = File(
                file.inode, bytes(file.data) + b"".join(text for _, text in written[upcoming:until])
            )
            loose.append(_hang(copy(watcher), cut, job, clock, hang, now, run))
        while upcoming < len(written) and written[upcoming][0] <= now:
            file.data += written[upcoming][1]
            upcoming += 1
        alarms = watcher.look(file, instant(clock + now), job)
        for rule, bad in alarms.items():
            if bad and not firing.get(rule):
                outcome.false.setdefault(rule, []).append(f"{run.path} after {now / 60:.0f} m")
        false += [(rule, now) for rule in RULES if alarms[rule]]
        firing = alarms
        longest = max(longest, watcher.silent)
    return longest, [replace(one, luck=_lucky(one, false)) for one in loose]


def _hang(
    watcher: Watcher,
    file: File,
    job: Job,
    clock: float,
    hang: float,
    first: float,
    run: Run,
) -> _Loose:
    """From the last line on nothing comes; the watcher is a copy, and learns nothing from it."""
    told: Told = dict.fromkeys(RULES)
    now, quiet, early = first, None, False
    while now < hang + GIVE_UP and None in told.values():
        alarms = watcher.look(file, instant(clock + now), job)
        if quiet is None:
            quiet, early = max(0.0, watcher.silent - (now - hang)), not watcher.moving
        for rule in told:
            if alarms[rule] and told[rule] is None:
                told[rule] = now - hang
        now += EVERY
    return _Loose(hang, told, quiet or 0.0, run.seconds >= LONG, early)


def instant(at: float) -> Instant:
    """Of a host whose clock is right."""
    return Instant(int((WALL + at) * SECOND), "boot", int(at * SECOND))
