"""What is remembered of one log from look to look, and how a look changes it. Pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log import spikes
from sentinel.checks.log.cadence import (
    MAX_LOOK_SPACING_S,
    QuietObservation,
    TrainingBaseline,
    record_job_advance,
    record_phase,
    record_quiet,
    record_start,
)
from sentinel.checks.log.file_offset import FileStat, ReadPosition
from sentinel.checks.log.known_troubles import PARTING_KIND_NAMES
from sentinel.checks.log.losses import count_bad_losses
from sentinel.checks.log.ranking import rank_trouble
from sentinel.checks.log.recognition import LogRecognition
from sentinel.checks.log.scan import JoinedRanks, LogEvent, add_rank
from sentinel.checks.log.slowdown import add_step_times
from sentinel.checks.log.troubles import LogTrouble
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.user_files.whose import Whose

# How fast a number advances, against how fast it usually does. Pure.
#
# Measured over whole spans without a phase, so that a checkpoint is no slowness; usual is the
# median of the last two days of training. What has been so for a day is the new usual.


SPEED_SPAN_S = 900.0  # seconds
MAX_KEPT_RATES = 192  # spans: two days
MIN_KNOWN_RATES = 8  # spans before anything is called usual


class ProgressSpeed(Struct, frozen=True, kw_only=True):
    """A span that has begun at `value`, and the rates per second of the last two whole ones."""

    began: Instant
    value: float
    spoiled: bool = False
    rate: float | None = None
    before: float | None = None

    @property
    def recent_rate(self) -> float | None:
        """The better of the last two: one slow span may have held a pause nobody announced."""
        if self.rate is None or self.before is None:
            return None
        return max(self.rate, self.before)


def measure_speed(
    speed: ProgressSpeed | None, now: Instant, value: float, phase: bool
) -> tuple[ProgressSpeed, bool]:
    """After one look; True when a span has ended whose rate counts."""
    if speed is None:
        return ProgressSpeed(began=now, value=value), False
    if value < speed.value:
        return _restart_span(speed, now, value), False
    spoiled = speed.spoiled or phase
    seconds = get_elapsed_s(speed.began, now)
    if seconds < SPEED_SPAN_S:
        return replace(speed, spoiled=spoiled), False
    if spoiled or seconds >= 2 * SPEED_SPAN_S:
        return replace(_restart_span(speed, now, value), spoiled=phase), False
    rate = (value - speed.value) / seconds
    return replace(_restart_span(speed, now, value), rate=rate, before=speed.rate), True


def _restart_span(speed: ProgressSpeed, now: Instant, value: float) -> ProgressSpeed:
    return replace(speed, began=now, value=value, spoiled=False)


def compute_usual_rate(rates: tuple[float, ...]) -> float | None:
    """The median; None while too few are known."""
    return sorted(rates)[len(rates) // 2] if len(rates) >= MIN_KNOWN_RATES else None


def append_rate(rates: tuple[float, ...], rate: float) -> tuple[float, ...]:
    """With one more span."""
    return (*rates, rate)[-MAX_KEPT_RATES:]


GROWTH_NAME = ""
"""The name under which a log without `progress` advances."""

JUMP_FADING_FACTOR = 0.99
"""What is left of the farthest jump from look to look: an hour and a half is two thirds gone."""

MIN_SURE_ADVANCES = 2
"""Advances that end a phase or outlive an error: the first may be a late line of another rank."""

TROUBLE_SETTLED_S = 900.0
"""Seconds after which an error in a log that only has to grow is an old one."""

MAX_KEPT_TROUBLES = 5
"""Troubles that are kept for the message."""


class ProgressMark(Struct, frozen=True, kw_only=True):
    """A number that has to advance: its value, since when it has it, how often it has moved, how
    far the last time, and the farthest of late from one look to the next."""

    value: float
    since: Instant
    moves: int = 0
    grain: float = 0.0
    jump: float = 0.0


class OpenPhase(Struct, frozen=True, kw_only=True):
    """A phase that has begun and not ended; `advances` of a number since."""

    name: str
    since: Instant
    advances: int = 0


class LogState(Struct, frozen=True, kw_only=True):
    """What is remembered of the log of one run of a job.

    `started` tells a requeued job from its former run, whose log says nothing about it.
    `looked`: when it was last seen, `spacing` the usual seconds between looks, `grown` when the
    file last changed. `steady`: since when every look succeeds. `settled`: advances since the last
    trouble. `asked`: when actions were last asked for. `nodes`: where it runs, as Slurm
    lists them. `reading`: what the log is, where that is
    found out. `done`: the trainer has said that it is.
    """

    path: str
    first: Instant
    looked: Instant
    grown: Instant
    started: int | None = None
    spacing: float = 60.0
    places: dict[str, ReadPosition] = {}
    marks: dict[str, ProgressMark] = {}
    phase: OpenPhase | None = None
    world: JoinedRanks = JoinedRanks()
    ready: bool = False
    losses: dict[str, int] = {}
    course: spikes.LossTrend = spikes.LossTrend()
    troubles: tuple[LogTrouble, ...] = ()
    troubled: Instant | None = None
    settled: int = 0
    speed: ProgressSpeed | None = None
    asked: Instant | None = None
    steady: Instant | None = None
    nodes: str = ""
    reading: LogRecognition | None = None
    done: bool = False

    @property
    def has_advanced(self) -> bool:
        """Whether it was ever seen to advance."""
        return any(mark.moves for mark in self.marks.values())

    @property
    def run_key(self) -> str:
        """What tells this run of the job from others of its name."""
        return str(self.started or "")

    @property
    def size_bytes(self) -> int:
        """Bytes when it was last seen; -1: never."""
        return sum(p.size for p in self.places.values()) if self.places else -1


class LogObservation(Struct, frozen=True, kw_only=True):
    """One log now, `path` as it is remembered (it may be a pattern), `meant` its files. No `looks`: no file; `error`:
    nothing could be seen; `unread`: why it could be looked at, but not read; `whose`: with whose rights
    it was read; `cut_lines`: how many of its new lines were too long to be read whole."""

    path: str
    at: Instant
    job: Job | None = None
    meant: tuple[str, ...] = ()
    looks: Mapping[str, FileStat] = {}
    places: Mapping[str, ReadPosition] = {}
    events: tuple[LogEvent, ...] = ()
    error: str = ""
    unread: str = ""
    whose: Whose = Whose(literal=True)
    cut_lines: int = 0
    reading: LogRecognition | None = None

    @property
    def shown_path(self) -> str:
        """What people read: the file itself, or the path where there are several or none."""
        return next(iter(self.looks)) if len(self.looks) == 1 else self.path

    @property
    def job_age_s(self) -> float:
        """Seconds since the job started; without a job the log is older than anything."""
        started = self.job.started if self.job else None
        return float("inf") if started is None else max(0.0, self.at.wall / SECOND - started)

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all its files; None without any."""
        return sum(look.size for look in self.looks.values()) if self.looks else None

    @property
    def modified_at_s(self) -> float:
        """When the last of its files was written, by the file server's clock."""
        return max((look.mtime for look in self.looks.values()), default=0.0)


def begin_state(sight: LogObservation, seen: LogState | None) -> LogState:
    """The memory of this run of the job: a new one for another run or path.

    Of a former run only the places stay, so that what it wrote into the same files is not read
    again as news.
    """
    started = sight.job.started if sight.job else None
    if seen is not None and (seen.path, seen.started) == (sight.path, started):
        return seen
    fresh = LogState(
        path=sight.path, first=sight.at, looked=sight.at, grown=sight.at, started=started
    )
    if seen is None:
        return fresh
    return replace(fresh, places={p: seen.places[p] for p in sight.looks if p in seen.places})


def update_state(
    sight: LogObservation,
    before: LogState | None,
    learned: TrainingBaseline,
    by_number: bool,
    due: bool = True,
) -> tuple[LogState, TrainingBaseline]:
    """What to remember now, of this run and of the training. Not `due`: a look in between, which says
    nothing about how often one looks."""
    seen = _apply_recognition(sight.reading, begin_state(sight, before))
    if sight.error or not sight.looks:
        return replace(seen, steady=None) if sight.error else seen, learned
    step = _StateUpdate(seen, sight.at, learned)
    step.record_growth(sight, by_number)
    for event in sight.events:
        step.record_event(event)
    step.learn_loss_trend(sight.events)
    return step.finish_update(sight, due)


def _apply_recognition(reading: LogRecognition | None, seen: LogState) -> LogState:
    """Numbers of a trainer that writes no more, and growth where a number says more, are no
    obligation any longer."""
    if reading is None or reading == seen.reading:
        return seen
    number = reading.number.name if reading.number else GROWTH_NAME
    same = seen.reading is not None and reading.number == seen.reading.number
    marks = {n: m for n, m in seen.marks.items() if n == number and (same or n == GROWTH_NAME)}
    return replace(seen, reading=reading, marks=marks, speed=seen.speed if marks else None)


class _StateUpdate:
    """One look, folded into what is remembered.

    Only what happened between two looks is `timed`: the log of hours ago, read at the first
    look, or what passed while nobody looked, shows phases and not how long they took.
    """

    def __init__(self, seen: LogState, at: Instant, learned: TrainingBaseline) -> None:
        self._before, self._at, self._learned = seen, at, learned
        self._seen = seen
        self._paces: list[float] = []
        self._begun = False
        self._spacing = get_elapsed_s(seen.looked, at)
        self._timed = bool(seen.places) and self._spacing <= 3 * seen.spacing

    def record_growth(self, sight: LogObservation, by_number: bool) -> None:
        """The file itself: longer, shorter or another one is movement."""
        if not _has_moved(self._seen.places, sight.looks):
            return
        self._seen = replace(self._seen, grown=self._at)
        if not by_number:
            self._record_advance(GROWTH_NAME, float(sight.size_bytes or 0), bool(self._seen.places))

    def record_event(self, event: LogEvent) -> None:
        """One thing that happened in the text."""
        seen, at = self._seen, self._at
        if event.what == "number":
            self._record_number(event.name, event.value, event.rounded)
        elif event.what == "begin":
            self._seen = replace(seen, phase=OpenPhase(name=event.name, since=at))
            self._begun = True
        elif event.what == "end" and seen.phase and seen.phase.name == event.name:
            self._end_phase()
            marks = {name: replace(mark, since=at) for name, mark in seen.marks.items()}
            self._seen = replace(self._seen, marks=marks)
        elif event.what == "loss":
            bad = count_bad_losses(seen.losses, event.name, event.value, event.times)
            self._seen = replace(seen, losses=bad)
        elif event.what == "pace":
            self._paces.append(event.value)
        elif event.what == "member":
            world = add_rank(seen.world, int(event.value), int(event.name))
            self._seen = replace(seen, world=world, ready=False)
        elif event.what == "ready":
            self._seen = replace(seen, ready=True)
        elif event.what == "done":
            self._seen = replace(seen, done=True)
        elif event.trouble and not (seen.done and event.trouble.kind in PARTING_KIND_NAMES):
            troubles = _select_troubles((*seen.troubles, event.trouble))
            self._seen = replace(seen, troubles=troubles, troubled=at, settled=0)

    def learn_loss_trend(self, events: Iterable[LogEvent]) -> None:
        """Of one loss: a name that stands there now and then is not mixed with it."""
        told = [event for event in events if event.what == "course"]
        if told:
            name = self._seen.course.name or told[0].name
            values = [event.value for event in told if event.name == name]
            course = spikes.add_losses(replace(self._seen.course, name=name), values)
            self._seen = replace(self._seen, course=course)

    def finish_update(self, sight: LogObservation, due: bool) -> tuple[LogState, TrainingBaseline]:
        """Both memories after this look."""
        self._learn_quiets()
        self._learn_start(sight)
        self._learn_step_times(sight)
        self._learn_speed()
        usual = self._before.spacing
        spacing = 0.8 * usual + 0.2 * min(self._spacing or usual, 2 * usual) if due else usual
        nodes = sight.job.nodes if sight.job else ""
        after = replace(self._seen, looked=self._at, spacing=spacing, nodes=nodes)
        seen = replace(after, places={**sight.places})
        seen = seen if seen.steady else replace(seen, steady=self._at)
        return _drop_old_troubles(seen, self._at), self._learned

    def _record_number(self, name: str, value: float, rounded: bool) -> None:
        mark = self._seen.marks.get(name)
        if mark is None or mark.value != value or rounded:
            self._record_advance(name, value, mark is not None)

    def _record_advance(self, name: str, value: float, moved: bool) -> None:
        seen = self._seen
        before = seen.marks.get(name) or ProgressMark(value=value, since=self._at)
        grain = abs(value - before.value)
        moves = before.moves + moved
        mark = replace(before, value=value, since=self._at, moves=moves, grain=grain)
        settled = seen.settled + (name != GROWTH_NAME)
        troubles = () if settled >= MIN_SURE_ADVANCES else seen.troubles
        marks = {**seen.marks, name: mark}
        done = seen.done and name == GROWTH_NAME
        self._seen = replace(seen, marks=marks, settled=settled, troubles=troubles, done=done)
        if seen.phase and name != GROWTH_NAME:
            phase = replace(seen.phase, advances=seen.phase.advances + 1)
            self._seen = replace(self._seen, phase=phase)
            if phase.advances >= MIN_SURE_ADVANCES:
                self._end_phase()

    def _end_phase(self) -> None:
        phase = self._seen.phase
        assert phase is not None
        if self._timed:
            seconds = get_elapsed_s(phase.since, self._before.looked)
            self._learned = record_phase(self._learned, phase.name, seconds)
        self._seen = replace(self._seen, phase=None)

    def _learn_quiets(self) -> None:
        """A quiet is as long as it was seen to be, so that hours without a look count nothing. It is
        over with the next advance, or where a phase begins: an epoch that is followed by a short
        evaluation was quiet all the same."""
        calm = self._before.phase is None
        for name, mark in self._before.marks.items():
            self._learn_jump(name, mark)
            over = self._begun or self._seen.marks[name].moves > mark.moves
            quiet = QuietObservation(
                seconds=get_elapsed_s(mark.since, self._before.looked) if over and calm else 0.0,
                at=mark.value,
                spacing=self._spacing,
                blur=self._compute_blur(name, mark),
            )
            self._learned = record_quiet(self._learned, name, quiet)

    def _learn_start(self, sight: LogObservation) -> None:
        """How long the job took to begin, where it was watched from then on, and how far it got."""
        if sight.job is None or not self._seen.has_advanced:
            return
        if self._before.has_advanced:
            moved = self._measure_advance_s()
            self._learned = record_job_advance(self._learned, self._seen.run_key, moved)
        elif (
            self._timed
            and GROWTH_NAME not in self._seen.marks
            and self._is_watched_from_start(sight)
        ):
            self._learned = record_start(self._learned, sight.job_age_s)

    def _is_watched_from_start(self, sight: LogObservation) -> bool:
        return sight.job_age_s - get_elapsed_s(self._before.first, self._at) <= MAX_LOOK_SPACING_S

    def _learn_step_times(self, sight: LogObservation) -> None:
        if self._paces:
            pace, nodes = self._learned.pace, sight.job.nodes if sight.job else ""
            found = add_step_times(pace, self._paces, self._at, self._seen.run_key, nodes)
            self._learned = replace(self._learned, pace=found)

    def _measure_advance_s(self) -> float:
        """Seconds between the last two advances, or nothing where none came just now."""
        before, seen = self._before.marks, self._seen.marks
        return min(
            (
                get_elapsed_s(mark.since, self._at)
                for n, mark in before.items()
                if seen[n].moves > mark.moves
            ),
            default=0.0,
        )

    def _learn_jump(self, name: str, before: ProgressMark) -> None:
        """Output that comes in blocks is known as exactly as a block is long."""
        mark = self._seen.marks[name]
        if self._timed:
            jump = max(abs(mark.value - before.value), JUMP_FADING_FACTOR * before.jump)
            marks = {**self._seen.marks, name: replace(mark, jump=jump)}
            self._seen = replace(self._seen, marks=marks)

    def _compute_blur(self, name: str, mark: ProgressMark) -> float:
        """Twice what the number moves by from look to look, or from line to line."""
        rates = self._learned.rates.get(name, ())
        pace = sorted(rates)[len(rates) // 2] * self._before.spacing if rates else 0.0
        return 2 * max(pace, mark.grain, mark.jump) if pace else 0.0

    def _learn_speed(self) -> None:
        name = next(iter(self._seen.marks), GROWTH_NAME)
        if name == GROWTH_NAME:
            return
        phase = bool(self._before.phase or self._seen.phase)
        value = self._seen.marks[name].value
        speed, counts = measure_speed(self._seen.speed, self._at, value, phase)
        self._seen = replace(self._seen, speed=speed)
        if counts and speed.rate is not None:
            rates = append_rate(self._learned.rates.get(name, ()), speed.rate)
            self._learned = replace(self._learned, rates={**self._learned.rates, name: rates})


def _select_troubles(troubles: tuple[LogTrouble, ...]) -> tuple[LogTrouble, ...]:
    """The first ones; a cause that comes late takes the place of an echo, and what nothing else brings
    about that of any other."""
    newest = troubles[::-1]
    spare = sorted(newest, key=lambda one: -rank_trouble(one.kind))
    surplus = spare[: max(0, len(troubles) - MAX_KEPT_TROUBLES)]
    return tuple(one for one in troubles if not any(one is other for other in surplus))


def _has_moved(places: Mapping[str, ReadPosition], looks: Mapping[str, FileStat]) -> bool:
    """Whether any file is new, another one, or of another size; touching it is no movement."""
    return any(
        path not in places or (places[path].inode, places[path].size) != (look.inode, look.size)
        for path, look in looks.items()
    )


def _drop_old_troubles(seen: LogState, at: Instant) -> LogState:
    """In a log without numbers an error is old after a while, if the log still grows."""
    if seen.troubled is None or any(name != GROWTH_NAME for name in seen.marks):
        return seen
    old = (
        get_elapsed_s(seen.troubled, at) >= TROUBLE_SETTLED_S
        and get_elapsed_s(seen.grown, at) < TROUBLE_SETTLED_S
    )
    return replace(seen, troubles=(), troubled=None) if old else seen
