"""Finds the events in new text of a log, in their order. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from math import isfinite
from typing import Literal

from msgspec import Struct

from sentinel.checks.log.bars import SCALE_FACTORS, THOUSANDS
from sentinel.checks.log.joined_ranks import MAX_RANKS
from sentinel.checks.log.log_trouble import LogTrouble
from sentinel.checks.log.losses import (
    find_last_values,
    find_latest_values,
    find_losses,
)
from sentinel.checks.log.new_lines import make_shape
from sentinel.checks.log.rows import RowSpan, find_counts, find_rows
from sentinel.checks.log.settings import PhaseSettings
from sentinel.checks.log.trainers import DONE_PATTERN, TRAINERS, list_trainer_phases
from sentinel.checks.log.trouble_kind import LAST_WORDS_KIND, NEW_KINDS
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.patterns import compile_by_line
from sentinel.core.values import Duration

EventKind = Literal[
    "number",
    "count",
    "begin",
    "end",
    "loss",
    "value",
    "pace",
    "member",
    "ready",
    "trouble",
    "done",
    "rows",
]

_STEP_TIME_PATTERNS = [
    (one, re.compile(one.seconds[0]), one.seconds[1]) for one in TRAINERS if one.seconds
]
_MEMBER_PATTERN = re.compile(
    r"(?i:initializing (?:distributed|ddp)): GLOBAL_RANK: (\d{1,9}), MEMBER: \d{1,9}/(\d{1,9})\b"
)
_READY_PATTERN = re.compile(r"All distributed processes registered|Starting with \d+ processes")

KNOWN_PHASES = list_trainer_phases()
_PHASE_WORDS = ("aving", "aved", "save", "alidation", "Running", "Sanity", "Evaluating", "eval_st")
"""Every line that the patterns above find contains one of these."""


_END_WORDS = ("run_stop", "stopped: `max", "'train_runtime'", "raining completed", "done training",
              "training is done", "training speed: ", "epochs completed in", "Optimization Done", "Final validation", "Training Progress: 100%")  # fmt: skip


class LogEvent(Struct, frozen=True):
    """An event in the text.

    `name`: the name of the number, phase or loss. `value`: the number, the loss, or the seconds of
    a step. For a rank that joins, `value` is the rank and `name` the number of ranks.
    """

    at: int  # Its position in the text.
    what: EventKind  # The kind of event.
    name: str = ""
    value: float = 0.0
    trouble: LogTrouble | None = None  # The error, if it is one.
    rounded: bool = False
    """Whether a number is printed like `12K`. It may have advanced although it looks the same."""
    times: int = 1
    """How many times in a row a loss was not a number."""
    rows: RowSpan | None = None  # Rows of the kind `name`, if they are the event.


class LogPatterns(Struct, frozen=True):
    """All patterns of a check. If `loss` is None, the lines of known trainers are read."""

    numbers: Mapping[str, re.Pattern[str]]  # Patterns of the numbers, by name.
    phases: Mapping[str, PhaseSettings]  # Phases, by name.
    loss: re.Pattern[str] | None
    finder: TroubleFinder  # Finds errors.


def merge_phases(own: Mapping[str, PhaseSettings]) -> dict[str, PhaseSettings]:
    """The configured phases, and those of well-known trainers that have other names."""
    known = {
        name: PhaseSettings(begin=re.compile(begin), end=re.compile(end))
        for name, (begin, end) in KNOWN_PHASES.items()
        if name not in own
    }
    mine = {
        name: PhaseSettings(
            begin=compile_by_line(phase.begin),
            end=compile_by_line(phase.end) if phase.end else None,
            allow=phase.allow,
        )
        for name, phase in own.items()
    }
    return {**known, **mine}


def list_allowances(found: Mapping[str, PhaseSettings]) -> dict[str, Duration]:
    """The configured limit of each phase in seconds, by name."""
    return {name: phase.allow for name, phase in found.items() if phase.allow is not None}


def scan_text(
    text: str,
    patterns: LogPatterns,
    path: str = "",
    node: str = "",
    carriers: Collection[str] = (),
    earlier: str = "",
) -> list[LogEvent]:
    """All events in the text, by position. `carriers` are kinds of rows, see `rows.find_rows`, and
    `earlier` is what the log said before the text. What a pattern captures and is no number is left
    out."""
    if not text:
        return []
    events = [
        *_scan_numbers(text, patterns.numbers, carriers),
        *_scan_phases(text, patterns.phases),
        *_scan_losses(text, patterns.loss),
        *(
            LogEvent(len(text), "value", n, v)
            for n, v in find_latest_values(text, patterns.loss).items()
        ),
        *_scan_step_times(text),
        *_scan_members(text),
        *_scan_ends(text),
    ]
    found = _drop_repeated(patterns.finder.find_end(text, path, node, earlier))
    last = _find_last_sure_number(events)
    shown = (LAST_WORDS_KIND, *NEW_KINDS)
    sure = any(position > last and one.kind not in NEW_KINDS for position, one in found)
    events += [
        LogEvent(position, "trouble", trouble=one)
        for position, one in found
        if one.kind not in shown or (position > last and (sure or one.kind not in NEW_KINDS))
    ]
    return sorted(events, key=lambda event: event.at)


MAX_SAME_TROUBLES = 3
"""How many errors of one kind, one rank and one shape are kept: thousands of threads may print one."""


def _drop_repeated(found: list[tuple[int, LogTrouble]]) -> list[tuple[int, LogTrouble]]:
    counts: Counter[tuple[str, ...]] = Counter()
    kept = []
    for at, one in found:
        key = (one.kind, one.host, one.rank, make_shape(one.line))
        counts[key] += 1
        if counts[key] <= MAX_SAME_TROUBLES:
            kept.append((at, one))
    return kept


def _find_last_sure_number(events: Iterable[LogEvent]) -> int:
    """The position of the last number but one, because a bar may write one more number after the
    error that ended it. -1 if there are fewer than two."""
    places = sorted(event.at for event in events if event.what == "number")
    return places[-2] if len(places) > 1 else -1


MAX_EVENTS = 5000
"""How many events of one kind and name are kept from one text. The newest ones contain all that is
remembered. A MiB of very short lines may have a hundred thousand events."""


def limit_events(events: list[LogEvent]) -> list[LogEvent]:
    """The newest events of each kind and name, in order. This limits the work and memory for them.

    The number of dropped events is a multiple of ten. Step times are handled in batches of ten, so the
    batches begin at the same ones as without the limit.
    """
    counts = Counter((event.what, event.name) for event in events)
    dropped = {key: _count_dropped(count) for key, count in counts.items()}
    if not any(dropped.values()):
        return events
    kept = []
    for event in events:
        key = (event.what, event.name)
        if dropped[key] > 0:
            dropped[key] -= 1
        else:
            kept.append(event)
    return kept


def _count_dropped(count: int) -> int:
    """How many of this number of events are dropped."""
    return max(0, (count - MAX_EVENTS) // 10 * 10)


def _scan_losses(text: str, own: "re.Pattern[str] | None") -> Iterable[LogEvent]:
    for (at, name, value), times in find_last_values(find_losses(text, own)):
        yield LogEvent(at, "loss", name, value, times=times)


def _scan_numbers(
    text: str, numbers: "Mapping[str, re.Pattern[str]]", carriers: Collection[str]
) -> Iterable[LogEvent]:
    own: set[int] = set()
    for name, pattern in numbers.items():
        told: list[tuple[int, str]] = []
        for match in pattern.finditer(text):
            if (value := parse_progress_number(match[1])) is None:
                continue
            rounded = (match[1] or "")[-1:] in SCALE_FACTORS
            told.append((match.start(1), match[1]))
            yield LogEvent(match.start(), "number", name, value, rounded=rounded)
        for kind, rows in find_rows(text, name, told, carriers):
            yield LogEvent(len(text), "rows", kind, rows=rows)
        own.update(at for at, _ in told)
    for at, kind, count in find_counts(text, own) if numbers else ():
        yield LogEvent(at, "count", kind, count)


def parse_progress_number(captured: str | None) -> float | None:
    """The captured text as a number; None if it is none, for the author of a log writes what he likes.
    `1,234`, `1_000`, `1e3` and `1.2k` are also accepted."""
    digits = (captured or "").translate(THOUSANDS)
    scale = SCALE_FACTORS.get(digits[-1:], 1.0)
    try:
        value = scale * float(digits if scale == 1 else digits[:-1])
    except ValueError:
        return None
    return value if isfinite(value) else None  # NaN would seem to advance for ever


def _scan_phases(text: str, known: Mapping[str, PhaseSettings]) -> Iterable[LogEvent]:
    familiar = any(word in text for word in _PHASE_WORDS)
    for name, phase in known.items():
        if not familiar and phase.begin.pattern == KNOWN_PHASES.get(name, ("",))[0]:
            continue
        yield from (LogEvent(m.start(), "begin", name) for m in phase.begin.finditer(text))
        if phase.end:
            yield from (LogEvent(m.start(), "end", name) for m in phase.end.finditer(text))


def _scan_ends(text: str) -> Iterable[LogEvent]:
    if any(word in text for word in _END_WORDS):
        yield from (LogEvent(match.start(), "done") for match in DONE_PATTERN.finditer(text))


def _scan_step_times(text: str) -> list[LogEvent]:
    """Step times of one trainer. If a library prints them too, they are not counted twice."""
    for known, pattern, unit in _STEP_TIME_PATTERNS:
        if any(word in text for word in known.words) and (found := [*pattern.finditer(text)]):
            values = [
                (match.start(), float(match[1])) for match in found if _is_step_time(match[1])
            ]
            return [
                LogEvent(at, "pace", value=v * unit if unit > 0 else -unit / v) for at, v in values
            ]
    return []


def _is_step_time(captured: str) -> bool:
    """Whether the text is a time. `1.2.3`, a single point and 0 are not."""
    return captured.count(".") <= 1 and any(digit in captured for digit in "123456789")


def _scan_members(text: str) -> Iterable[LogEvent]:
    if "GLOBAL_RANK" in text:
        yield from (
            LogEvent(match.start(), "member", match[2], float(match[1]))
            for match in islice(_MEMBER_PATTERN.finditer(text), MAX_RANKS)
        )
    if " processes" in text:
        yield from (LogEvent(match.start(), "ready") for match in _READY_PATTERN.finditer(text))
