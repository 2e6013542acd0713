"""The memory of one log between runs of the check, and how a run changes it. Pure."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

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
from sentinel.checks.log.joined_ranks import add_rank
from sentinel.checks.log.log_state import (
    GROWTH_NAME,
    LogObservation,
    LogState,
    OpenPhase,
    ProgressMark,
)
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.losses import count_bad_losses
from sentinel.checks.log.progress_speed import append_rate, measure_speed
from sentinel.checks.log.ranking import keep_founded, rank_trouble
from sentinel.checks.log.recognition import LogRecognition
from sentinel.checks.log.rows import MAX_KINDS, add_rows
from sentinel.checks.log.scan import LogEvent
from sentinel.checks.log.slowdown import add_step_times
from sentinel.checks.log.trouble_kind import LAST_WORDS_KIND
from sentinel.checks.log.trouble_roles import PARTING_KIND_NAMES
from sentinel.core.clock import Instant, get_elapsed_s

JUMP_FADING_FACTOR = 0.99
"""The share of the farthest jump that is left after one more run of the check. After 110 runs, two
thirds are gone."""

MIN_SURE_ADVANCES = 2
"""How many advances end a phase or make an error outdated. A single one may be a late line of
another rank."""

TROUBLE_SETTLED_S = 900.0
"""Seconds after which an error is outdated in a log that only has to grow."""

MAX_KEPT_TROUBLES = 12
"""How many errors are kept for the message."""


def begin_state(sight: LogObservation, seen: LogState | None) -> LogState:
    """The LogState of this run of the job. It is new for another run or path.

    Only the read positions of a former run of the job are kept, so that its lines in the same files
    are not read again as news.
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
    """The new LogState of this run of the job, and the new TrainingBaseline.

    If not `due`, this run of the check is an extra one, which does not change the usual spacing.
    """
    seen = _apply_recognition(sight.reading, begin_state(sight, before))
    if sight.error or not sight.looks:
        return replace(seen, steady=None) if sight.error else seen, learned
    step = _StateUpdate(seen, sight.at, learned)
    step.record_growth(sight, by_number)
    for event in sight.events:
        step.record_event(event)
    step.record_rows(sight.events)
    return step.finish_update(sight, due)


def _apply_recognition(reading: LogRecognition | None, seen: LogState) -> LogState:
    """Drop numbers that no longer have to advance: those of a trainer that has stopped writing, and
    growth if there is a better number."""
    if reading is None or reading == seen.reading:
        return seen
    number = reading.number.name if reading.number else GROWTH_NAME
    same = seen.reading is not None and reading.number == seen.reading.number
    marks = {n: m for n, m in seen.marks.items() if n == number and (same or n == GROWTH_NAME)}
    kept = {k: row for k, row in seen.rows.items() if row.number in marks}
    speed = seen.speed if marks else None
    return replace(seen, reading=reading, marks=marks, speed=speed, rows=kept)


class _StateUpdate:
    """Applies the observations of one run of the check to the LogState and the TrainingBaseline.

    Durations are learned only if `timed`: between two runs of the check. The first run reads the
    log of past hours. It shows which phases there were, but not how long they took.
    """

    def __init__(self, seen: LogState, at: Instant, learned: TrainingBaseline) -> None:
        self._before, self._at, self._learned = seen, at, learned
        self._seen = seen
        self._paces: list[float] = []
        self._begun = False
        self._spacing = get_elapsed_s(seen.looked, at)
        self._timed = bool(seen.places) and self._spacing <= 3 * seen.spacing

    def record_growth(self, sight: LogObservation, by_number: bool) -> None:
        """Record the file itself. A longer, shorter or new file counts as movement. Then its former
        end no longer counts as last words."""
        if not _has_moved(self._seen.places, sight.looks):
            return
        troubles = tuple(one for one in self._seen.troubles if one.kind != LAST_WORDS_KIND)
        self._seen = replace(self._seen, grown=self._at, troubles=troubles)
        if not by_number:
            self._record_advance(GROWTH_NAME, float(sight.size_bytes or 0), bool(self._seen.places))

    def record_event(self, event: LogEvent) -> None:
        """Record one event in the text."""
        seen, at = self._seen, self._at
        if event.what == "number":
            self._record_number(event.name, event.value, event.rounded)
        elif event.what == "count":
            self._record_count(event.name, event.value)
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
        elif event.what in ("ready", "done"):
            self._seen = replace(seen, **{event.what: True})
        elif event.trouble and not (seen.done and event.trouble.kind in PARTING_KIND_NAMES):
            troubles = _select_troubles((*seen.troubles, event.trouble))
            self._seen = replace(seen, troubles=troubles, troubled=at, settled=0)

    def record_rows(self, events: Iterable[LogEvent]) -> None:
        """Record the rows. A number that stands still in rows that show life has moved, except that it
        ends no phase: an evaluation may have rows of the same kind."""
        found = [(event.name, event.rows) for event in events if event.rows]
        rows, alive = add_rows(self._seen.rows, found)
        self._seen = replace(self._seen, rows=rows)
        for name in alive & self._seen.marks.keys():
            mark = self._seen.marks[name]
            if mark.since != self._at:
                self._record_move(name, replace(mark, since=self._at, moves=mark.moves + 1))

    def finish_update(self, sight: LogObservation, due: bool) -> tuple[LogState, TrainingBaseline]:
        """The LogState and the TrainingBaseline after this run of the check."""
        self._learn_quiets()
        self._learn_start(sight)
        self._learn_step_times(sight)
        self._learn_speed()
        usual = self._before.spacing
        spacing = 0.8 * usual + 0.2 * min(self._spacing or usual, 2 * usual) if due else usual
        nodes = sight.job.nodes if sight.job else ""
        after = replace(self._seen, looked=self._at, spacing=spacing, nodes=nodes)
        troubles = keep_founded(after.troubles)
        seen = replace(after, places={**sight.places}, troubles=troubles)
        seen = seen if seen.steady else replace(seen, steady=self._at)
        return _drop_old_troubles(seen, self._at), self._learned

    def _record_count(self, kind: str, value: float) -> None:
        """Record a count of a total. One that goes up shows life, once while the number stands. It says nothing
        about an error: a tracker may count what it sends when the training is dead."""
        before, marks = self._seen.counts.get(kind), self._seen.marks
        if before is not None and value > before:
            marks = {name: replace(mark, since=self._at) for name, mark in marks.items()}
        counts = {name: high for name, high in self._seen.counts.items() if name != kind}
        kept = [*counts.items(), (kind, max(value, before or 0))][-MAX_KINDS:]
        self._seen = replace(self._seen, counts=dict(kept), marks=marks)

    def _record_number(self, name: str, value: float, rounded: bool) -> None:
        mark = self._seen.marks.get(name)
        if mark is None or mark.value != value or rounded:
            self._record_advance(name, value, mark is not None)

    def _record_advance(self, name: str, value: float, moved: bool) -> None:
        seen = self._seen
        before = seen.marks.get(name) or ProgressMark(value=value, since=self._at)
        self._seen = replace(seen, counts={})
        grain = abs(value - before.value)
        moves = before.moves + moved
        self._record_move(
            name, replace(before, value=value, since=self._at, moves=moves, grain=grain)
        )
        if seen.phase and name != GROWTH_NAME:
            phase = replace(seen.phase, advances=seen.phase.advances + 1)
            self._seen = replace(self._seen, phase=phase)
            if phase.advances >= MIN_SURE_ADVANCES:
                self._end_phase()

    def _record_move(self, name: str, mark: ProgressMark) -> None:
        seen = self._seen
        settled = seen.settled + (name != GROWTH_NAME)
        troubles = () if settled >= MIN_SURE_ADVANCES else seen.troubles
        marks = {**seen.marks, name: mark}
        done = seen.done and name == GROWTH_NAME
        self._seen = replace(seen, marks=marks, settled=settled, troubles=troubles, done=done)

    def _end_phase(self) -> None:
        phase = self._seen.phase
        assert phase is not None
        if self._timed:
            seconds = get_elapsed_s(phase.since, self._before.looked)
            self._learned = record_phase(self._learned, phase.name, seconds)
        self._seen = replace(self._seen, phase=None)

    def _learn_quiets(self) -> None:
        """Learn quiet times, as long as they were observed. Hours without a run do not count.

        A quiet time ends with the next advance, or when a phase begins. So the quiet of an epoch
        counts, even if a short evaluation follows it.
        """
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
        """Learn how long the job took to start, if it was watched from its start, and how far it
        got."""
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
        """Seconds between the last two advances. 0 if there was no advance just now."""
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
        """Learn how far the number jumps. If the output comes in blocks, the number is known only
        as exactly as a block is long."""
        mark = self._seen.marks[name]
        if self._timed:
            jump = max(abs(mark.value - before.value), JUMP_FADING_FACTOR * before.jump)
            marks = {**self._seen.marks, name: replace(mark, jump=jump)}
            self._seen = replace(self._seen, marks=marks)

    def _compute_blur(self, name: str, mark: ProgressMark) -> float:
        """Twice the distance by which the number moves between two runs of the check, or between
        two lines. 0 while its speed is not known."""
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
    """The first errors. A cause that comes late replaces an echo, and an error with no other cause
    replaces any."""
    newest = troubles[::-1]
    spare = sorted(newest, key=lambda one: -rank_trouble(one.kind))
    surplus = spare[: max(0, len(troubles) - MAX_KEPT_TROUBLES)]
    return tuple(one for one in troubles if not any(one is other for other in surplus))


def _has_moved(places: Mapping[str, ReadPosition], looks: Mapping[str, FileStat]) -> bool:
    """Whether any file is new, was replaced, or has another size. A new time alone is no movement."""
    return any(
        path not in places or (places[path].inode, places[path].size) != (look.inode, look.size)
        for path, look in looks.items()
    )


def _drop_old_troubles(seen: LogState, at: Instant) -> LogState:
    """In a log without numbers, errors become outdated after some time if the log still grows."""
    if seen.troubled is None or any(name != GROWTH_NAME for name in seen.marks):
        return seen
    old = (
        get_elapsed_s(seen.troubled, at) >= TROUBLE_SETTLED_S
        and get_elapsed_s(seen.grown, at) < TROUBLE_SETTLED_S
    )
    return replace(seen, troubles=(), troubled=None) if old else seen
