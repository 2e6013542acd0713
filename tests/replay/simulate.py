"""A training of many jobs, watched once a minute: when would it have been told to hang.

The check's own reading, scanning, remembering and judging run on files in memory; only the
processes that read real files, and the wait for the next minute, are left out.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from itertools import pairwise
from random import Random

from msgspec import Struct

from sentinel.checks.log.cadence import LimitBounds, TrainingBaseline
from sentinel.checks.log.file_offset import (
    FileStat,
    ReadPosition,
    decode_new_lines,
    is_continuation,
    select_new_range,
    select_whole_range,
)
from sentinel.checks.log.judge import StaleRules, judge_log
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.progress import begin_state, update_state
from sentinel.checks.log.scan import LogPatterns, merge_phases, scan_text
from sentinel.checks.log.topics import Thresholds, judge_topics
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from tests.replay.shapes import Habits, Line, Shape, habits, job

DAY = 86400.0
HOUR = 3600.0
EVERY = 60.0
FIXED = 1200.0
GIVE_UP = 2 * HOUR  # after which a hang counts as missed
FILLED = 300.0  # seconds that a buffer may hold back lines
BOUNDS = LimitBounds(floor=120, ceiling=3600)
SELDOM = 1.5 * EVERY  # seconds of ordinary quiet from which on a log speaks seldom
LEAST = 2.5 * EVERY  # seconds of quiet below which no rule of three looks tells
WALL = 1_800_000_000.0


class Writing(Struct, frozen=True, kw_only=True):
    """How lines become visible: bytes a buffer holds, and seconds a file server may hide them."""

    buffer: int
    hidden: float


WRITING = (
    Writing(buffer=0, hidden=0),
    Writing(buffer=0, hidden=30),
    Writing(buffer=0, hidden=60),  # nfs(5): attributes are cached for so long by default, acregmax
    Writing(buffer=4096, hidden=0),  # stdout of libc into a file
    Writing(buffer=8192, hidden=3),  # and of Python
)


class File:
    """A log that has grown as far as others can see it."""

    def __init__(self, inode: str, data: bytes = b"") -> None:
        self.inode, self.data = inode, bytearray(data)

    def look(self, at: float) -> FileStat:
        return FileStat(size=len(self.data), inode=self.inode, mtime=at)


class Watcher:
    """The check of one training: what it remembers, under a fixed limit and under `auto`."""

    def __init__(self, progress: str) -> None:
        numbers = {"progress": re.compile(progress, re.MULTILINE)}
        finder = TroubleFinder({}, [])
        self._patterns = LogPatterns(numbers, merge_phases({}), None, finder)
        self.learned = TrainingBaseline()
        self.quiet = self.silent = 0.0
        self.seen: LogState | None = None
        self.sight: LogObservation | None = None

    def look(self, file: File, now: Instant, run: Job) -> dict[str, bool]:
        """Whether each rule, and any of the further topics, would be an alarm now."""
        look = file.look(now.wall / SECOND)
        here = LogObservation(path="/log", at=now, job=run, looks={"/log": look})
        before = begin_state(here, self.seen)
        place, text = self._read(file, look, before.places.get("/log"))
        events = tuple(scan_text(text, self._patterns))
        here = LogObservation(
            path="/log",
            at=now,
            job=run,
            looks={"/log": look},
            places={"/log": place},
            events=events,
        )
        seen, self.learned = update_state(here, before, self.learned, True)
        self.sight, self.seen = here, seen
        self.quiet, self.silent = self._quiet(seen, now), self._silent(seen, now)
        alarms = {
            name: judge_log(here, seen, rules, self.learned).status.bad
            for name, rules in RULES.items()
        }
        told = judge_topics(seen, self.learned, Thresholds(nan_after=3, slower_than=50.0), {})
        return {**alarms, **{one.topic: one.status.bad for one in told}}

    @property
    def moving(self) -> bool:
        """Whether the number has ever changed in this job."""
        return self.seen is not None and self.seen.has_advanced

    @property
    def seldom(self) -> bool:
        """Whether the log is ordinarily silent from one look to the next."""
        cadence = self.learned.quiets.get("progress")
        return cadence is not None and cadence.median_quiet_s > SELDOM

    def _quiet(self, seen: LogState, now: Instant) -> float:
        """Seconds without progress where no phase and no pause that is due explains them."""
        mark, cadence = seen.marks.get("progress"), self.learned.quiets.get("progress")
        if mark is None or cadence is None or seen.phase or cadence.find_due_pause_s(mark.value):
            return 0.0
        return get_elapsed_s(mark.since, now)

    def _silent(self, seen: LogState, now: Instant) -> float:
        """Seconds without progress, or without a number since the first look."""
        mark = seen.marks.get("progress")
        return get_elapsed_s(mark.since if mark else seen.first, now)

    def _read(
        self, file: File, look: FileStat, place: ReadPosition | None
    ) -> tuple[ReadPosition, str]:
        span = select_new_range(place, look)
        data = bytes(file.data[span.start : span.start + span.size])
        if not is_continuation(place, span, data):
            span = select_whole_range(look)
            data = bytes(file.data[span.start : span.start + span.size])
        return decode_new_lines(look, span, data)


def _rules(stale_after: float | None) -> StaleRules:
    return StaleRules(stale_after=stale_after, startup=1800, by_number=True, bounds=BOUNDS)


RULES = {"20m": _rules(FIXED), "auto": _rules(None)}


Told = dict[str, float | None]
Quiets = list[tuple[float, float]]
"""Looks at a hang: seconds since it began, and without progress."""


class Outcome(Struct):
    """What came of watching: healthy seconds, false alarms (episodes) by rule or topic, and for
    each hang the seconds until it was told, by rule; None: never. Kept apart: `seldom`, where the
    log is ordinarily silent from look to look; `paused`, in a checkpoint or an evaluation,
    announced or not; `young`, on the first day of a training, on which `auto` is still careful.
    `least`: what `hangs` and `seldom` would have taken with the best constant limit of each
    training, which only hindsight knows: its longest quiet outside known pauses."""

    healthy: float = 0.0
    false: dict[str, int] = {}
    hangs: list[Told] = []
    seldom: list[Told] = []
    paused: list[Told] = []
    young: list[Told] = []
    least: list[float] = []
    longest: float = 0.0
    looks: int = 0


def training(
    shape: Shape, days: float, hang_share: float, seed: int, every: float = EVERY
) -> Outcome:
    """Watch one training for so many healthy days; a share of its jobs ends in a hang."""
    random = Random(seed)
    own, watcher = habits(shape, random), Watcher(shape.progress)
    writing = _writing(shape, own, random)
    outcome = Outcome()
    clock, step, number = 0.0, 0, 0
    hung: list[Quiets] = []
    while outcome.healthy < days * DAY:
        number += 1
        length = random.choice((4, 10, 20, 24)) * HOUR * random.uniform(0.3, 1)
        hang = length * random.uniform(0.15, 1) if random.random() < hang_share else None
        lines = list(job(shape, own, step, length, random))
        step += int(length / own.step)
        quiets = _watch(
            watcher, outcome, lines, clock, hang or length, hang, number, writing, every, random
        )
        hung += [quiets] if quiets else []
        clock += length + GIVE_UP
    outcome.least = [_least(quiets, outcome.longest) for quiets in hung]
    return outcome


def _least(quiets: Quiets, longest: float) -> float:
    """Until the first look at a quiet that was never seen while all was well."""
    found = (at for at, quiet in quiets if quiet >= LEAST and quiet > longest)
    return next(found, quiets[-1][0])


def _writing(shape: Shape, own: Habits, random: Random) -> Writing:
    """A block that fills for longer than some minutes is emptied after each line: with it no
    limit of minutes would ever be right, and people who look at their logs do not bear it."""
    writing = random.choice(WRITING)
    line = len(shape.text(1000, 2.0, random)) + 1
    filled = writing.buffer / line * own.step * own.log_every
    return Writing(buffer=0, hidden=writing.hidden) if filled > FILLED else writing


def _watch(
    watcher: Watcher,
    outcome: Outcome,
    lines: list[Line],
    clock: float,
    length: float,
    hang: float | None,
    number: int,
    writing: Writing,
    every: float,
    random: Random,
) -> Quiets:
    """One job, from its start until its end, or until its hang is told by both rules; what was
    seen of a hang that was neither in a pause nor on the first day."""
    learned = outcome.healthy > DAY
    run = job_of(number, clock)
    file = File(f"1:{number}")
    writes = visible(cut(lines, hang), writing, random)
    upcoming = next(writes, None)
    firing: dict[str, bool] = {}
    told: Told = {"20m": None, "auto": None}
    quiets: Quiets = []
    for now in looks(length + (GIVE_UP if hang else 0), every, random):
        while upcoming and upcoming[0] <= now:
            file.data += upcoming[1]
            upcoming = next(writes, None)
        alarms = watcher.look(file, _instant(clock + now, random), run)
        outcome.looks += 1
        if hang is None or now < hang:
            for name, bad in alarms.items():
                if bad and not firing.get(name):
                    outcome.false[name] = outcome.false.get(name, 0) + 1
            firing = alarms
            outcome.longest = max(outcome.longest, watcher.quiet if learned else 0.0)
            continue
        quiets.append((now - hang, watcher.quiet))
        for name in told:
            if alarms[name] and told[name] is None:
                told[name] = now - hang
        if all(value is not None for value in told.values()):
            break
    outcome.healthy += length
    if hang is None:
        return []
    paused = _paused(lines, hang)
    where = outcome.seldom if watcher.seldom else outcome.hangs
    (outcome.young if not learned else outcome.paused if paused else where).append(told)
    return quiets if learned and not paused else []


def _paused(lines: list[Line], at: float) -> bool:
    """Whether a training would have been silent around this moment."""
    times = [when for when, _ in lines]
    next_one = bisect(times, at)
    gaps = sorted(b - a for a, b in pairwise(times))
    usual = gaps[len(gaps) // 2] if gaps else 0.0
    return next_one == len(times) or times[next_one] - times[next_one - 1] > 2 * usual + 15


def looks(seconds: float, every: float, random: Random) -> Iterator[float]:
    """At every interval, now and then late, and rarely not at all for a while."""
    now = random.uniform(0, every)
    while now < seconds:
        yield now
        luck = random.random()
        now += every + random.uniform(0, 0.5)
        if luck < 2e-4:
            now += random.uniform(300, 2400)  # sentinel was restarted
        elif luck < 0.005:
            now += random.uniform(1, 40)


def cut(lines: Iterable[Line], hang: float | None) -> Iterator[Line]:
    """What is written until the training hangs."""
    for at, text in lines:
        if hang is not None and at > hang:
            return
        yield at, text


def visible(
    lines: Iterable[Line], writing: Writing, random: Random
) -> Iterator[tuple[float, bytes]]:
    """Bytes as they reach the reader: in blocks, and as late as the file server shows them."""
    pending, shown = bytearray(), 0.0
    for at, text in lines:
        pending += text.encode()
        whole = len(pending) // writing.buffer * writing.buffer if writing.buffer else len(pending)
        if whole:
            shown = max(shown, at + random.uniform(0, writing.hidden))
            yield shown, bytes(pending[:whole])
            del pending[:whole]


def _instant(at: float, random: Random) -> Instant:
    """The boot's clock is steady; the wall clock jumps as it likes."""
    jump = random.uniform(-HOUR, HOUR) if random.random() < 1e-3 else 0.0
    return Instant(int((WALL + at + jump) * SECOND), "boot", int(at * SECOND))


def job_of(number: int, clock: float) -> Job:
    """A job that runs since then."""
    return Job(
        id=str(number),
        job_id=str(number),
        array_id=str(number),
        task="",
        name="train",
        user="alice",
        partition="p",
        state="RUNNING",
        reason="",
        nodes="n0",
        node_count=1,
        dependency="",
        submitted=None,
        started=int(WALL + clock),
        ends=None,
        time_limit=None,
    )
