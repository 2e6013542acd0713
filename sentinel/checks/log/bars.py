"""Progress bars of tqdm in a log, and which of them counts the steps of the training. Pure.

A training has many bars: of what it loads, of its evaluations and rollouts, of the batches of each
step. A bar that has reached its total says nothing about what comes after it.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from sentinel.checks.log.language_trainers import BAR_REGEX

SCALE_FACTORS = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "Q": 1e15}
"""Letters that stand for powers of ten behind a number: tqdm/std.py, `format_sizeof`;
lerobot/utils/utils.py of huggingface/lerobot, `format_big_number`."""

MAX_DESCRIPTION_CHARS = 48
"""Characters before a bar that tell it from others."""

MAX_STEP_S = 600.0
"""Seconds of one step of a bar that are still soon enough to show that a training hangs: of a bar
that takes longer the bar within it is followed."""

NO_TRAINING_PATTERN = re.compile(
    r"(?i)(?<![a-z])(?:load|captur|download|fetch|eval|valid|test|generat|rollout|predict|infer"
    r"|sampl|tokeniz|map\b|filter|pack|convert|sav(?:e|ing)|resolv|import|compil|warm|cach|index"
    r"|prepar|upload|scor|decod|quantiz|sanity|initiali|prefill|materializ|shard)"
)
"""What begins the words of bars that are no steps of a training: what happens before it, beside it
or after it."""

_BAR_PATTERN = re.compile(
    BAR_REGEX + r"([\d.]{1,12}[kMGT]?)/([\d.]{1,12}[kMGT]?) \[([^\]\n]{0,300})"
)
_SECONDS_PER_STEP_PATTERN = re.compile(r"([\d.]{1,12}) ?s/[a-z]")
_STEPS_PER_SECOND_PATTERN = re.compile(r"([\d.]{1,12}) ?[a-z]{1,12}/s")
_QUANTITY_REGEX = rf"\d[\d.]{{0,11}}[{''.join(SCALE_FACTORS)}]?"


class ProgressBar(Struct):
    """A bar, told from others by the words before it (digits are 0) and by its total."""

    description: str
    total: str
    value: float
    """What it counted last."""
    advances: int = 0
    """How often it was seen to count on."""
    restarts: int = 0
    """How often it began anew."""
    step_s: float = 0.0
    """Seconds that one step takes, as it says itself; 0: not told."""

    @property
    def is_finished(self) -> bool:
        """Whether it has reached its total."""
        return self.value >= parse_scaled_number(self.total)

    @property
    def count_pattern(self) -> str:
        """A regular expression that finds the bar; its group is what it counts."""
        words = [re.sub(r"(?:\\ )+", " +", re.escape(w)) for w in self.description.split("0")]
        told = r"\d{1,15}".join(words)
        before = told if self.description else r"(?:^|\]:?|\| )"
        return rf"{before} *{BAR_REGEX}({_QUANTITY_REGEX})/{re.escape(self.total)} \["


def parse_scaled_number(text: str) -> float:
    """The number that a bar writes as `1.75k`; 0 for what is none."""
    try:
        return SCALE_FACTORS.get(text[-1:], 1.0) * float(text.rstrip("".join(SCALE_FACTORS)))
    except ValueError:
        return 0.0


def find_bars(text: str) -> list[ProgressBar]:
    """Every bar of the text, in the order in which they came."""
    found: dict[tuple[str, str], ProgressBar] = {}
    for description, match in _find_bar_matches(text):
        value = parse_scaled_number(match[1])
        bar = found.setdefault((description, match[2]), ProgressBar(description, match[2], value))
        bar.advances += value > bar.value
        bar.restarts += value < bar.value
        bar.value, bar.step_s = value, _parse_step_time_s(match[3]) or bar.step_s
    return [*found.values()]


def find_training_bar(bars: list[ProgressBar]) -> ProgressBar | None:
    """The one that counts steps: it goes on while others begin anew; None where none does."""
    fit = [bar for bar in bars if not NO_TRAINING_PATTERN.search(bar.description)]
    outer = [bar for bar in fit if not bar.restarts and not bar.is_finished and bar.advances]
    quick = [bar for bar in outer if bar.step_s <= MAX_STEP_S]
    inner = [bar for bar in fit if bar.restarts]
    return max(quick or inner or outer, key=lambda bar: bar.advances, default=None)


def remove_bars(text: str) -> str:
    """The text with an end of line where each bar was."""
    return _BAR_PATTERN.sub("\n", text)


def _find_bar_matches(text: str) -> Iterator[tuple[str, "re.Match[str]"]]:
    before = 0
    for match in _BAR_PATTERN.finditer(text):
        start = max(text.rfind("\n", before, match.start()) + 1, before)
        words = text[start : match.start()].lstrip("] ").rstrip()[-MAX_DESCRIPTION_CHARS:]
        yield re.sub(r"\d+", "0", words), match
        before = match.end()


def _parse_step_time_s(told: str) -> float:
    if slow := _SECONDS_PER_STEP_PATTERN.search(told):
        return parse_scaled_number(slow[1])
    quick = _STEPS_PER_SECOND_PATTERN.search(told)
    return 1 / parse_scaled_number(quick[1]) if quick and parse_scaled_number(quick[1]) else 0.0
