"""Replays the log of a past job into rows of the ledger of runs, by the times in its lines. Pure.

A line is looked at when it was written, as by a `log` check that looks as often as is needed: at each
line that changes what the job does, and once a minute besides.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import timezone, tzinfo
from itertools import accumulate, groupby

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.file_offset import FileStat, ReadPosition
from sentinel.checks.log.gather import add_number_pattern
from sentinel.checks.log.judge import StaleRules, judge_log
from sentinel.checks.log.line_times import MAX_LAG_S, MAX_LINE_GAP_S, find_line_times
from sentinel.checks.log.log_findings import WatchedLog
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.progress import begin_state, update_state
from sentinel.checks.log.recognition import LogRecognition, follow_lines
from sentinel.checks.log.run_tracker import RunTracker, is_evaluation, list_open_rows, track_look
from sentinel.checks.log.scan import LogEvent, LogPatterns, merge_phases, scan_text
from sentinel.checks.log.trainer_row import CHECKPOINT
from sentinel.checks.log.trouble_cause import find_interruption_cause
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.clock import SECOND, Instant
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.run_ledger import EndCause, LedgerKind, LedgerRow

LOOK_SPACING_S = 60
MAX_LOOKS = 200_000
"""Looks at one log: four months with one a minute. Times in a log are not to be trusted."""

MIN_UNDATED_NUMBERS = 2
"""So many numbers in lines without a time show that the training went on until the next time. One may be
the rest of a line that another rank cut."""

MAX_WORLD_SIZE = 10**6
START_SLACK_US = 60 * SECOND
"""A line this long before the start of a job, or after its end, belongs to it: clocks differ."""

_RULES = StaleRules(stale_after=None, startup=1800, by_number=False)
_WORLD_SIZE_PATTERN = re.compile(
    r"(?i)\bworld[ _]?size['\"]?\s{0,4}[:=]\s{0,4}(\d{1,7})\b|MEMBER: \d{1,9}/(\d{1,7})\b"
    r"|Starting with (\d{1,7}) processes"
)
_SAVED_STEP_PATTERN = re.compile(
    r"(?i)\b(?:iteration|iter|global_step|step)[ :=_-]{1,8}(\d{1,12})\b"
)
MAX_SAVED_CHARS = 300
VAGUE_CAUSES = ("unknown", "software")
"""Of these causes of accounting a log may know more."""

CLOCK_DOUBT = "the times in a log go back; from there on they are counted on"
NO_TIMES_DOUBT = "no line of the log has a time, so when it ran is not known"
GAP_DOUBT = (
    "a log is silent for more than 12 hours; what comes after counts as another start of the job"
)
OUTSIDE_DOUBT = "lines of a log lie outside the time of its job in accounting; they are left out"
LENGTH_DOUBT = "a log is too long in time; its rest is not known"

_JOB = Job(
    id="", job_id="", array_id="", task="", name="", user="", partition="", state="RUNNING", reason="",
    nodes="", node_count=1, dependency="", submitted=None, started=None, ends=None, time_limit=None,
)  # fmt: skip


class PastRows(Struct, frozen=True, kw_only=True):
    """What the log of a past job says: rows without GPUs, and what cannot be known from it."""

    rows: tuple[LedgerRow, ...] = ()
    gpus: int | None = None  # The number of ranks that the log names.
    doubts: tuple[str, ...] = ()


class PastLog:
    """Follows one log from its beginning. `starts` are rows of the kind `held`, if accounting knows
    when the job began and ended; without them the times in the log say that."""

    def __init__(
        self, run: str, job: str, starts: Sequence[LedgerRow] = (), zone: tzinfo = timezone.utc
    ) -> None:
        self._run, self._job, self._zone, self._starts = run, job, zone, starts
        self._patterns = LogPatterns({}, merge_phases({}), None, TroubleFinder({}, []))
        self._reading: LogRecognition | None = None
        self._learned = TrainingBaseline()
        self._held: LedgerRow | None = None
        self._tracker = RunTracker(attempt=0, looked=0)
        self._seen: LogState | None = None
        self._now = 0.0  # the time of the last line, epoch seconds
        self._shift = 0.0  # seconds to add to the times in the log, since its clock went back
        self._pending: list[LogEvent] = []  # events since the last look
        self._pending_at = 0  # when the last line since the last look was written, 0: there is none
        self._number = 0.0  # the last number that has to advance
        self._size = 0  # grows with each look at new lines
        self._looks = 0
        self._is_hole = False
        self._phase = ("", 0, 0)  # the last phase: its name, when it began, when it ended
        self._gpus: int | None = None
        self._rows: list[LedgerRow] = []
        self._doubts: dict[str, None] = {}

    def add_hole(self) -> None:
        """Lines were left out here, so nobody knows what happened until the next one."""
        self._flush_pending()
        self._is_hole = True

    def add_text(self, text: str) -> None:
        """Follow further lines."""
        if self._gpus is None and (found := _WORLD_SIZE_PATTERN.search(text)):
            size = int(found[1] or found[2] or found[3])
            self._gpus = size if 0 < size <= MAX_WORLD_SIZE else None
        times = [*find_line_times(text, self._choose_zone(text))]
        times = [*self._trust_times(times)]
        if not times:
            return
        self._reading = follow_lines(self._reading, text)
        try:
            events = scan_text(text, add_number_pattern(self._patterns, self._reading))
        except CannotTell as error:
            events = []
            self._doubts[str(error)] = None
        for at, group in groupby(_date_events(text, events, times), key=lambda pair: pair[0]):
            self._follow_moment(at, [event for _, event in group if event])
        if len(_find_undated_numbers(text, events, times[-1][0])) >= MIN_UNDATED_NUMBERS:
            self.add_hole()
        self._rows += self._list_saved_rows(text, events, times)

    def finish(self, *, is_running: bool = False) -> PastRows:
        """The rows, after all lines."""
        if not self._now:
            self._doubts[NO_TIMES_DOUBT] = None
        self._end_start(is_running=is_running)
        rows = {row.unique_parts: row for row in self._rows}  # as the state keeps them
        return PastRows(rows=tuple(rows.values()), gpus=self._gpus, doubts=tuple(self._doubts))

    def _choose_zone(self, text: str) -> tzinfo:
        """The zone of times that name none. Containers often have UTC, whatever the host has."""
        if self._starts and not self._now:
            for zone in (self._zone, timezone.utc):
                first = next(find_line_times(text, zone), None)
                if first and self._find_start(int(first[1] * SECOND)):
                    self._zone = zone
                    break
        return self._zone

    def _trust_times(self, found: Sequence[tuple[int, float]]) -> Iterator[tuple[int, float]]:
        """The times, made to go forward. A jump that the next time does not confirm is no time of a
        line, nor is one ahead from which the log comes back. Where a clock goes back for good, the
        log goes on where it was."""
        now, later = self._now, [told for _, told in found[1:]]
        lowest = [*accumulate(reversed(later), min)][::-1]
        for place, (position, told) in enumerate(found):
            at, shift = told + self._shift, self._shift
            following = [one + shift for one in later[place : place + 2]]
            if not now:
                if following and not any(_is_near(one, at) for one in following):
                    continue  # the clock was not set yet
            elif not _is_near(at, now):
                following = following[:1] or [now]
                if at > now:
                    following += [one + shift for one in lowest[place : place + 1]]
                if any(_is_near(one, now) for one in following):
                    continue
                if at < now:
                    self._shift += now - at
                    self._doubts[CLOCK_DOUBT] = None
                    at = now
            now = max(now, at)
            yield position, now

    def _follow_moment(self, at: float, events: list[LogEvent]) -> None:
        wall = int(at * SECOND)
        self._choose_start(at)
        self._now = at
        if self._held is None:
            return
        changes = self._changes_much(events)
        self._is_hole &= wall - self._tracker.looked > LOOK_SPACING_S * SECOND
        if changes or wall - self._tracker.looked >= LOOK_SPACING_S * SECOND:
            self._flush_pending()
            self._look_until(wall)
        if changes:
            if self._tracker.hung and any(event.what == "trouble" for event in events):
                self._end_rows(wall)  # what ends a hang is no cause of it
            self._follow_phase(wall, events)
            self._take_look(wall, events)
        else:
            self._pending += events
            self._pending_at = wall

    def _changes_much(self, events: Sequence[LogEvent]) -> bool:
        """Whether these events have to be looked at when they come: the first number, a lower one,
        or anything that is no number."""
        changes = False
        for event in events:
            if event.what == "number":
                changes |= event.value < self._number or not self._tracker.began
                self._number = event.value
            changes |= event.what in ("begin", "end", "trouble", "done")
        return changes

    def _choose_start(self, at: float) -> None:
        """Begin another start of the job, if this line belongs to one."""
        wall = int(at * SECOND)
        if self._starts:
            held = self._find_start(wall)
            if held is None:
                self._doubts[OUTSIDE_DOUBT] = None
            elif self._held is None or held.began != self._held.began:
                self._begin_start(held)
        elif self._held is None or (at - self._now > MAX_LINE_GAP_S and not self._is_hole):
            if self._held:
                self._doubts[GAP_DOUBT] = None
            began = int(at) * SECOND
            self._begin_start(
                LedgerRow(run=self._run, kind="held", began=began, ended=began, job=self._job)
            )

    def _find_start(self, wall: int) -> LedgerRow | None:
        near = (
            row
            for row in self._starts
            if row.began - START_SLACK_US <= wall <= row.ended + START_SLACK_US
        )
        return max(near, key=lambda row: row.began, default=None)

    def _begin_start(self, held: LedgerRow) -> None:
        self._end_start()
        attempt = held.began // SECOND
        self._held, self._number = replace(held, attempt=attempt), 0.0
        self._tracker = RunTracker(attempt=attempt, looked=held.began)

    def _end_start(self, *, is_running: bool = False) -> None:
        held = self._held
        if held is None:
            return
        self._flush_pending()
        told = _find_end_cause(self._seen)
        if not self._starts:
            ended = max(held.began, self._tracker.looked)
            held = replace(held, ended=ended, cause="" if is_running else told or "unknown")
        elif held.cause in VAGUE_CAUSES and told not in ("", "completed", "unknown"):
            held = replace(held, cause=told)
        self._look_until(held.ended)
        self._end_phase()
        self._rows.append(held)
        self._end_rows(self._tracker.looked)

    def _end_rows(self, wall: int) -> None:
        """Add the rows that grow, as they are at that moment."""
        tracker = replace(self._tracker, looked=wall)
        rows = list_open_rows(self._run, self._job, tracker, self._seen)
        self._rows += [replace(row, noticed=None) for row in rows]

    def _follow_phase(self, wall: int, events: Sequence[LogEvent]) -> None:
        """Remember when the last saving or evaluation began and ended."""
        for event in events:
            if event.what == "begin":
                self._phase = (event.name, wall, 0)
            elif event.what == "end" and self._phase[0] == event.name:
                self._phase = (event.name, self._phase[1], wall)

    def _end_phase(self) -> None:
        """If nothing but a phase came after the last step, it has a row of its own, for the row of
        the steps ends before it."""
        name, began, ended = self._phase
        tracker, self._phase = self._tracker, ("", 0, 0)
        if not tracker.began or began < tracker.at or not began:
            return
        spent = max(0, ended - began)
        kind: LedgerKind = "evaluation" if is_evaluation(name) else "checkpoint"
        if kind == "evaluation":
            tracker = replace(tracker, evaluation_us=max(0, tracker.evaluation_us - spent))
        else:
            tracker = replace(tracker, checkpoint_us=max(0, tracker.checkpoint_us - spent))
        self._tracker, attempt = tracker, tracker.attempt
        row = LedgerRow(
            run=self._run,
            kind=kind,
            began=began,
            ended=ended or tracker.looked,
            job=self._job,
            attempt=attempt,
        )
        self._rows.append(row)

    def _flush_pending(self) -> None:
        at, events = self._pending_at, self._pending
        self._pending_at, self._pending = 0, []
        if at:
            self._take_look(at, events)

    def _look_until(self, wall: int) -> None:
        """Look at a log in which nothing is written until that moment."""
        if self._is_hole:
            self._is_hole = False
            return
        while wall - self._tracker.looked > LOOK_SPACING_S * SECOND and self._looks < MAX_LOOKS:
            self._take_look(self._tracker.looked + LOOK_SPACING_S * SECOND, (), is_due=True)

    def _take_look(self, wall: int, events: Sequence[LogEvent], *, is_due: bool = False) -> None:
        """Look at the log at this moment. Only looks that come regularly say how often it is
        looked at."""
        self._looks += 1
        if self._looks > MAX_LOOKS:
            self._doubts[LENGTH_DOUBT] = None
            return
        wall, self._size = max(wall, self._tracker.looked), self._size + (not is_due)
        sight = LogObservation(
            path="",
            at=Instant(wall=wall),
            job=replace(_JOB, job_id=self._job, started=self._tracker.attempt),
            looks={"": FileStat(size=self._size, inode="", mtime=0)},
            places={"": ReadPosition(size=self._size)},
            events=tuple(events),
            reading=self._reading,
        )
        known = bool(self._reading and self._reading.number)
        before = begin_state(sight, self._seen)
        seen, self._learned = update_state(sight, before, self._learned, known, is_due)
        verdict = judge_log(sight, seen, replace(_RULES, by_number=known), self._learned)
        one = WatchedLog(sight=sight, seen=seen, verdict=verdict)
        found = track_look(self._run, self._tracker, self._seen, one, wall)
        # Nobody had an alarm then.
        self._rows += [replace(row, noticed=None) if row.noticed else row for row in found.rows]
        self._tracker, self._seen = found.tracker, seen

    def _list_saved_rows(
        self, text: str, events: Sequence[LogEvent], times: Sequence[tuple[int, float]]
    ) -> Iterator[LedgerRow]:
        """A row for each line that says that a checkpoint is complete."""
        for at, event in _date_events(text, events, times):
            if event and (event.what, event.name) == ("end", CHECKPOINT):
                line = text[event.at : event.at + MAX_SAVED_CHARS].partition("\n")[0]
                step = _SAVED_STEP_PATTERN.search(line)
                wall = int(at * SECOND)
                if self._starts and self._find_start(wall) is None:
                    continue
                yield LedgerRow(
                    run=self._run,
                    kind="saved",
                    began=wall,
                    ended=wall,
                    last_step=float(step[1]) if step else None,
                )


def _is_near(at: float, now: float) -> bool:
    return -MAX_LAG_S <= at - now <= MAX_LINE_GAP_S


def _date_events(
    text: str, events: Sequence[LogEvent], times: Sequence[tuple[int, float]]
) -> Iterator[tuple[float, LogEvent | None]]:
    """Each event with the time of its line, or of the last line before that has one. Numbers in lines
    without a time are spread evenly until the next time. The first and the last time come without an
    event too: they show that it ran."""
    places = [position for position, _ in times]
    yield times[0][1], None
    for place, group in groupby(events, key=lambda event: _find_place(text, event, places)):
        found, at = [*group], times[max(place, 0)][1]
        gap = times[place + 1][1] - at if 0 <= place < len(times) - 1 else 0.0
        undated = _find_undated_numbers(text, found, places[place]) if gap > LOOK_SPACING_S else []
        step = gap / (len(undated) + 1) if len(undated) >= MIN_UNDATED_NUMBERS else 0.0
        for event in found:
            at += step * (event.at in undated)
            yield at, event
    yield times[-1][1], None


def _find_place(text: str, event: LogEvent, places: Sequence[int]) -> int:
    """Which time is the one of the event's line, or the last one before. -1: there is none."""
    end = text.find("\n", event.at)
    return bisect_right(places, end if end >= 0 else len(text)) - 1


def _find_undated_numbers(text: str, events: Sequence[LogEvent], time_at: int) -> list[int]:
    """The positions of the numbers in lines after the one with the time at that position."""
    end = text.find("\n", time_at)
    return [event.at for event in events if event.what == "number" and 0 <= end < event.at]


def _find_end_cause(seen: LogState | None) -> EndCause:
    """Why the job ended, as far as its log tells. Empty if it tells nothing."""
    if seen is None:
        return ""
    if any(trouble.kind == "time limit" for trouble in seen.troubles):
        return "time_limit"
    if seen.done:
        return "completed"
    return find_interruption_cause(seen.troubles) or ""
