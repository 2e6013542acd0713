"""New text of a log to what happened in it, in order. Pure."""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from math import isfinite
from typing import Literal

from msgspec import Struct

from sentinel.checks.log.bars import SCALES
from sentinel.checks.log.losses import course, last_of_each, latest, losses
from sentinel.checks.log.settings import Phase
from sentinel.checks.log.trainers import DONE, TRAINERS, phases_of
from sentinel.checks.log.troubles import Finder, Trouble
from sentinel.core.errors import CannotTell
from sentinel.core.patterns import by_line
from sentinel.core.text import ranges, shortened, visible
from sentinel.core.values import Duration

What = Literal[
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

_SECONDS = [(one, re.compile(one.seconds[0]), one.seconds[1]) for one in TRAINERS if one.seconds]
_MEMBER = re.compile(
    r"(?i:initializing (?:distributed|ddp)): GLOBAL_RANK: (\d{1,9}), MEMBER: \d{1,9}/(\d{1,9})\b"
)
_READY = re.compile(r"All distributed processes registered|Starting with \d+ processes")

KNOWN_PHASES = phases_of()
_WORDS = ("aving", "aved", "save", "alidation", "Running", "Sanity", "Evaluating", "eval_st")
"""One of them is in every line that the patterns above find."""


_END_WORDS = ("run_stop", "stopped: `max", "'train_runtime'", "raining completed", "done training",
              "training is done", "training speed: ", "epochs completed in", "Optimization Done", "Final validation", "Training Progress: 100%")  # fmt: skip


class Event(Struct, frozen=True):
    """Something in the text; `name` of a number or phase, `value` of a number, loss or rank, or
    the seconds of a step."""

    at: int
    what: What
    name: str = ""
    value: float = 0.0
    trouble: Trouble | None = None
    rounded: bool = False
    """Whether a number is told as `12K`: it may have advanced though it reads the same."""
    times: int = 1
    """How many times in a row a loss was no number."""


class Patterns(Struct, frozen=True):
    """All that is looked for, made once per check. `loss` None: the lines of known trainers.
    `course`: whether every value of the loss counts."""

    numbers: Mapping[str, re.Pattern[str]]
    phases: Mapping[str, Phase]
    loss: re.Pattern[str] | None
    finder: Finder
    course: bool = False


def phases(own: Mapping[str, Phase]) -> dict[str, Phase]:
    """The configured phases, and those of well-known trainers that go by another name."""
    known = {
        name: Phase(begin=re.compile(begin), end=re.compile(end))
        for name, (begin, end) in KNOWN_PHASES.items()
        if name not in own
    }
    mine = {
        name: Phase(
            begin=by_line(phase.begin),
            end=by_line(phase.end) if phase.end else None,
            allow=phase.allow,
        )
        for name, phase in own.items()
    }
    return {**known, **mine}


def allowances(found: Mapping[str, Phase]) -> dict[str, Duration]:
    """Seconds that people gave a phase, where they did."""
    return {name: phase.allow for name, phase in found.items() if phase.allow is not None}


def scan(text: str, patterns: Patterns, path: str = "", node: str = "") -> list[Event]:
    """Everything in it, by position. CannotTell when what was captured is no number."""
    if not text:
        return []
    events = [
        *_numbers(text, patterns.numbers),
        *_phases(text, patterns.phases),
        *_losses(text, patterns.loss),
        *(Event(len(text), "value", n, v) for n, v in latest(text, patterns.loss).items()),
        *_paces(text),
        *_members(text),
        *_ends(text),
    ]
    if patterns.course:
        every = course(text, patterns.loss)
        events += [Event(len(text), "course", name, value) for name, value in every]
    found = patterns.finder.find(text, path, node)
    events += [Event(position, "trouble", trouble=one) for position, one in found]
    return sorted(events, key=lambda event: event.at)


def _losses(text: str, own: "re.Pattern[str] | None") -> Iterable[Event]:
    for (at, name, value), times in last_of_each(losses(text, own)):
        yield Event(at, "loss", name, value, times=times)


def _numbers(text: str, numbers: "Mapping[str, re.Pattern[str]]") -> Iterable[Event]:
    for name, pattern in numbers.items():
        for match in pattern.finditer(text):
            value = number(name, match[1])
            rounded = (match[1] or "")[-1:] in SCALES
            yield Event(match.start(), "number", name, value, rounded=rounded)


def number(name: str, captured: str | None) -> float:
    """What was captured, as a number: `1,234`, `1_000`, `1e3`, `1.2k` too. Raises CannotTell."""
    digits = (captured or "").replace(",", "").replace("_", "")
    scale = SCALES.get(digits[-1:], 1.0)
    try:
        value = scale * float(digits if scale == 1 else digits[:-1])
    except ValueError:
        value = float("nan")
    if not isfinite(value):  # NaN differs from itself: it would advance for ever
        shown = visible(shortened(captured or "", 60))
        raise CannotTell(f"`{visible(name)}` captured {shown!r}, which is no number")
    return value


def _phases(text: str, known: Mapping[str, Phase]) -> Iterable[Event]:
    familiar = any(word in text for word in _WORDS)
    for name, phase in known.items():
        if not familiar and phase.begin.pattern == KNOWN_PHASES.get(name, ("",))[0]:
            continue
        yield from (Event(m.start(), "begin", name) for m in phase.begin.finditer(text))
        if phase.end:
            yield from (Event(m.start(), "end", name) for m in phase.end.finditer(text))


def _ends(text: str) -> Iterable[Event]:
    if any(word in text for word in _END_WORDS):
        yield from (Event(match.start(), "done") for match in DONE.finditer(text))


def _paces(text: str) -> list[Event]:
    """Step times as one trainer prints them: a library's beside it would count them twice."""
    for known, pattern, unit in _SECONDS:
        if any(word in text for word in known.words) and (found := [*pattern.finditer(text)]):
            values = [(match.start(), float(match[1])) for match in found if _plain(match[1])]
            return [
                Event(at, "pace", value=v * unit if unit > 0 else -unit / v) for at, v in values
            ]
    return []


def _plain(captured: str) -> bool:
    """Whether it is a time: `1.2.3`, a lone point and 0 are none."""
    return captured.count(".") <= 1 and any(digit in captured for digit in "123456789")


def _members(text: str) -> Iterable[Event]:
    if "GLOBAL_RANK" in text:
        yield from (
            Event(match.start(), "member", match[2], float(match[1]))
            for match in islice(_MEMBER.finditer(text), MOST)
        )
    if " processes" in text:
        yield from (Event(match.start(), "ready") for match in _READY.finditer(text))


# Ranks that announce themselves before the first step: who is missing, who came twice. Pure.


MOST = 8192
"""Ranks that are counted, and announcements that one look reads."""


class World(Struct, frozen=True, kw_only=True):
    """`ranks` of `size` that said they initialise; `again`: some said so more than once."""

    size: int = 0
    ranks: tuple[int, ...] = ()
    again: bool = False

    @property
    def words(self) -> str:
        """`1 of 16 ranks joined (rank 0)`."""
        few = f"{len(self.ranks)} of {self.size} ranks joined (rank {ranges(self.ranks)})"
        if not self.again or len(self.ranks) >= self.size:
            return few
        return f"{few}, some more than once: a split world, see MASTER_ADDR and the number of tasks"


def joined(world: World, rank: int, size: int) -> World:
    """After one more announcement; another size is another start."""
    if size != world.size:
        world = World(size=size)
    if rank in world.ranks or len(world.ranks) >= MOST:
        return World(size=size, ranks=world.ranks, again=True)
    return World(size=size, ranks=(*world.ranks, rank), again=world.again)
