"""Finds progress bars of tqdm in a log, and which of them counts the steps of the training. Pure.

A training has many bars: for loading, for evaluations and rollouts, and for the batches of each
step. A bar that has reached its total says nothing about what comes after it.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from sentinel.checks.log.losses import has_loss
from sentinel.checks.log.trainer_row import BAR_REGEX

SCALE_FACTORS = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "Q": 1e15}
"""Letters that stand for powers of ten after a number: tqdm/std.py, `format_sizeof`;
lerobot/utils/utils.py of huggingface/lerobot, `format_big_number`."""

MAX_WORDS_CHARS, MAX_DESCRIPTION_CHARS = 192, 48
"""How many characters before a bar are read, and how many of them, when their numbers are shortened, tell it from
others."""

MAX_STEP_S = 600.0
"""Seconds per step up to which a bar can show a hang soon enough. If its steps take longer, the bar
within it is used."""

NO_TRAINING_PATTERN = re.compile(
    r"(?i)(?<![a-z])(?:load|captur|download|fetch|eval|valid|test|generat|rollout|predict|infer"
    r"|sampl|tokeniz|map\b|filter|pack|convert|sav(?:e|ing)|resolv|import|compil|warm|cach|index"
    r"|prepar|upload|scoring|decod|quantiz|sanity|initiali|prefill|materializ|shard|val\b|dev\b|autotun|calibrat"
    r"|profil|benchmark|translat|export|collect|dataload|skip|replay|checkpoint(?![\w/])|restor|fast-?forward|wait|retr(?:y|ies)|GC\b)"
)
"""The beginning of words before bars that do not count training steps: what comes before, beside or
after the training."""

_BAR_PATTERN = re.compile(
    BAR_REGEX + r"([\d.]{1,12}[kMGT]?)/([\d.]{1,12}[kMGT]?) \[([^\]\n]{0,300})"
)
_SECONDS_PER_STEP_PATTERN = re.compile(r"([\d.]{1,12}) ?s/[a-z]")
_STEPS_PER_SECOND_PATTERN = re.compile(r"([\d.]{1,12}) ?[a-z]{1,12}/s")
_BYTES_PER_SECOND_PATTERN = re.compile(r"\d ?[kKMGT]?i?B/s")
_NUMBER_REGEX = r"(?:\d{1,20}(?:\.\d{1,20})?(?:[eE][-+]\d{1,3})?|\b(?:nan|inf)\b)"
"""A number in the words before a bar. It may be a loss, which becomes small or NaN."""
_NUMBER_PATTERN = re.compile(_NUMBER_REGEX)
_QUANTITY_REGEX = rf"\d[\d.]{{0,11}}[{''.join(SCALE_FACTORS)}]?"


class ProgressBar(Struct):
    """A progress bar. It is identified by the words before it and by its total."""

    description: str  # The words before it. Numbers are replaced by 0.
    total: str  # The total, as printed.
    value: float
    """The last number that it showed."""
    advances: int = 0
    """How often it was seen to advance."""
    restarts: int = 0
    """How often it started again."""
    step_s: float = 0.0
    """Seconds that one step takes, as the bar prints it; 0: not printed."""
    transfers: bool = False
    """Whether it counts bytes: what is downloaded or copied."""
    tells_loss: bool = False
    """Whether a loss stands behind its count, so that it can only be a training's."""

    @property
    def is_finished(self) -> bool:
        """Whether it has reached its total."""
        return self.value >= parse_scaled_number(self.total)

    @property
    def tells_only_ends(self) -> bool:
        """Whether it begins again with each epoch, and is shown hardly before it is at its total."""
        return self.is_finished and self.restarts > 0 and self.advances <= 2 * self.restarts

    @property
    def count_pattern(self) -> str:
        """A regular expression that finds the bar. Its group captures the number."""
        words = [re.sub(r"(?:\\ )+", " +", re.escape(w)) for w in self.description.split("0")]
        told = _NUMBER_REGEX.join(words)
        before = told if self.description else r"(?:^|\]:?|\| )"
        return rf"{before} *{BAR_REGEX}({_QUANTITY_REGEX})/{re.escape(self.total)} \["


THOUSANDS = str.maketrans("", "", ",_'’")
"""Removes what may stand between the thousands of a number."""


def parse_scaled_number(text: str) -> float:
    """The number in a text such as `1.75k` (bars) or `12,000` (programs). 0 if the text is no
    number."""
    text = text.translate(THOUSANDS)
    try:
        return SCALE_FACTORS.get(text[-1:], 1.0) * float(text.rstrip("".join(SCALE_FACTORS)))
    except ValueError:
        return 0.0


def find_bars(text: str) -> list[ProgressBar]:
    """All bars in the text, in their order."""
    found: dict[tuple[str, str], ProgressBar] = {}
    for description, match in _find_bar_matches(text):
        value = parse_scaled_number(match[1])
        bar = found.setdefault((description, match[2]), ProgressBar(description, match[2], value))
        bar.advances += value > bar.value
        bar.restarts += value < bar.value
        bar.transfers = _BYTES_PER_SECOND_PATTERN.search(match[3]) is not None
        bar.tells_loss = bar.tells_loss or has_loss(match[3])
        bar.value, bar.step_s = value, _parse_step_time_s(match[3]) or bar.step_s
    return [*found.values()]


def find_training_bar(bars: list[ProgressBar]) -> ProgressBar | None:
    """The bar that counts the steps of the training. None if there is none.

    It is a bar that advances and never starts again. If each of its steps takes longer than
    MAX_STEP_S, a bar that starts again is used in its place. If all have reached their totals, the
    training is over, or waits for what comes after it.
    """
    fit = [bar for bar in bars if not NO_TRAINING_PATTERN.search(bar.description)]
    fit = [bar for bar in fit if not bar.transfers] or fit
    outer = [bar for bar in fit if not bar.restarts and not bar.is_finished and bar.advances]
    quick = [bar for bar in outer if bar.step_s <= MAX_STEP_S]
    inner = [bar for bar in fit if bar.restarts]
    if inner and all(bar.is_finished for bar in fit):
        quick = [bar for bar in fit if not bar.restarts and bar.advances > 1]
    elif not inner and not outer:
        outer = [bar for bar in fit if bar.tells_loss and bar.advances > 1]
    return max(quick or inner or outer, key=lambda bar: bar.advances, default=None)


def remove_bars(text: str) -> str:
    """The text with each bar replaced by a line end."""
    return _BAR_PATTERN.sub("\n", text)


def _find_bar_matches(text: str) -> Iterator[tuple[str, "re.Match[str]"]]:
    before = 0
    for match in _BAR_PATTERN.finditer(text):
        start = max(text.rfind("\n", before, match.start()) + 1, before)
        words = text[max(start, match.start() - MAX_WORDS_CHARS) : match.start()]
        words = _NUMBER_PATTERN.sub("0", words.lstrip("] ").rstrip())
        yield words[-MAX_DESCRIPTION_CHARS:], match
        before = match.end()


def _parse_step_time_s(told: str) -> float:
    if slow := _SECONDS_PER_STEP_PATTERN.search(told):
        return parse_scaled_number(slow[1])
    quick = _STEPS_PER_SECOND_PATTERN.search(told)
    return 1 / parse_scaled_number(quick[1]) if quick and parse_scaled_number(quick[1]) else 0.0
