"""New text of a log to what happened in it, in order. Pure."""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from math import isfinite
from typing import Literal

from msgspec import Struct

from sentinel.checks.log.bars import SCALE_FACTORS
from sentinel.checks.log.losses import (
    find_last_values,
    find_latest_values,
    find_losses,
    list_loss_values,
)
from sentinel.checks.log.settings import PhaseSettings
from sentinel.checks.log.trainers import DONE_PATTERN, TRAINERS, list_trainer_phases
from sentinel.checks.log.troubles import LogTrouble, TroubleFinder
from sentinel.core.errors import CannotTell
from sentinel.core.patterns import compile_by_line
from sentinel.core.text import format_ranges, shortened, visible
from sentinel.core.values import Duration

EventKind = Literal[
    "number",
    "begin",
    "end",
    "loss",
    "value",
    "course",
    "pace",
    "member",
    "ready",
    "trouble",
    "done",
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
"""One of them is in every line that the patterns above find."""


_END_WORDS = ("run_stop", "stopped: `max", "'train_runtime'", "raining completed", "done training",
              "training is done", "training speed: ", "epochs completed in", "Optimization Done", "Final validation", "Training Progress: 100%")  # fmt: skip


class LogEvent(Struct, frozen=True):
    """Something in the text; `name` of a number or phase, `value` of a number, loss or rank, or
    the seconds of a step."""

    at: int
    what: EventKind
    name: str = ""
    value: float = 0.0
    trouble: LogTrouble | None = None
    rounded: bool = False
    """Whether a number is told as `12K`: it may have advanced though it reads the same."""
    times: int = 1
    """How many times in a row a loss was no number."""


class LogPatterns(Struct, frozen=True):
    """All that is looked for, made once per check. `loss` None: the lines of known trainers.
    `course`: whether every value of the loss counts."""

    numbers: Mapping[str, re.Pattern[str]]
    phases: Mapping[str, PhaseSettings]
    loss: re.Pattern[str] | None
    finder: TroubleFinder
    course: bool = False


def merge_phases(own: Mapping[str, PhaseSettings]) -> dict[str, PhaseSettings]:
    """The configured phases, and those of well-known trainers that go by another name."""
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
    """Seconds that people gave a phase, where they did."""
    return {name: phase.allow for name, phase in found.items() if phase.allow is not None}


def scan_text(text: str, patterns: LogPatterns, path: str = "", node: str = "") -> list[LogEvent]:
    """Everything in it, by position. CannotTell when what was captured is no number."""
    if not text:
        return []
    events = [
        *_scan_numbers(text, patterns.numbers),
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
    if patterns.course:
        every = list_loss_values(text, patterns.loss)
        events += [LogEvent(len(text), "course", name, value) for name, value in every]
    found = patterns.finder.find_troubles(text, path, node)
    events += [LogEvent(position, "trouble", trouble=one) for position, one in found]
    return sorted(events, key=lambda event: event.at)


def _scan_losses(text: str, own: "re.Pattern[str] | None") -> Iterable[LogEvent]:
    for (at, name, value), times in find_last_values(find_losses(text, own)):
        yield LogEvent(at, "loss", name, value, times=times)


def _scan_numbers(text: str, numbers: "Mapping[str, re.Pattern[str]]") -> Iterable[LogEvent]:
    for name, pattern in numbers.items():
        for match in pattern.finditer(text):
            value = parse_progress_number(name, match[1])
            rounded = (match[1] or "")[-1:] in SCALE_FACTORS
            yield LogEvent(match.start(), "number", name, value, rounded=rounded)


def parse_progress_number(name: str, captured: str | None) -> float:
    """What was captured, as a number: `1,234`, `1_000`, `1e3`, `1.2k` too. Raises CannotTell."""
    digits = (captured or "").replace(",", "").replace("_", "")
    scale = SCALE_FACTORS.get(digits[-1:], 1.0)
    try:
        value = scale * float(digits if scale == 1 else digits[:-1])
    except ValueError:
        value = float("nan")
    if not isfinite(value):  # NaN differs from itself: it would advance for ever
        shown = visible(shortened(captured or "", 60))
        raise CannotTell(f"`{visible(name)}` captured {shown!r}, which is no number")
    return value


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
    """Step times as one trainer prints them: a library's beside it would count them twice."""
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
    """Whether it is a time: `1.2.3`, a lone point and 0 are none."""
    return captured.count(".") <= 1 and any(digit in captured for digit in "123456789")


def _scan_members(text: str) -> Iterable[LogEvent]:
    if "GLOBAL_RANK" in text:
        yield from (
            LogEvent(match.start(), "member", match[2], float(match[1]))
            for match in islice(_MEMBER_PATTERN.finditer(text), MAX_RANKS)
        )
    if " processes" in text:
        yield from (LogEvent(match.start(), "ready") for match in _READY_PATTERN.finditer(text))


# Ranks that announce themselves before the first step: who is missing, who came twice. Pure.


MAX_RANKS = 8192
"""Ranks that are counted, and announcements that one look reads."""


class JoinedRanks(Struct, frozen=True, kw_only=True):
    """`ranks` of `size` that said they initialise; `again`: some said so more than once."""

    size: int = 0
    ranks: tuple[int, ...] = ()
    again: bool = False

    @property
    def summary_text(self) -> str:
        """`1 of 16 ranks joined (rank 0)`."""
        few = f"{len(self.ranks)} of {self.size} ranks joined (rank {format_ranges(self.ranks)})"
        if not self.again or len(self.ranks) >= self.size:
            return few
        return f"{few}, some more than once: a split world, see MASTER_ADDR and the number of tasks"


def add_rank(world: JoinedRanks, rank: int, size: int) -> JoinedRanks:
    """After one more announcement; another size is another start."""
    if size != world.size:
        world = JoinedRanks(size=size)
    if rank in world.ranks or len(world.ranks) >= MAX_RANKS:
        return JoinedRanks(size=size, ranks=world.ranks, again=True)
    return JoinedRanks(size=size, ranks=(*world.ranks, rank), again=world.again)
