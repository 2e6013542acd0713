"""The name of a loss: one word before its own, and whether the line tells an evaluation. Pure."""

import re
from functools import lru_cache

from sentinel.checks.log.progress_words import COUNTED_REGEX

MAX_NAME_CHARS = 24
"""How many characters before a value may contain its name."""

MAX_PHASE_CHARS = 80
"""How many characters before it may say that an evaluation tells it."""

_NAME_END_CHARS = "|│┃,;:={}[]()'\"\t\n"
_PHASE_PATTERN = re.compile(
    r"(?i)(?<![\w./-])(?:(train(?:ing)?)|(val(?:id(?:ation)?)?|eval(?:uation)?|test(?:ing)?|dev))(?!\w)"
)
_COUNT_PATTERN = re.compile(
    rf"(?i)(?<![a-z])(?:{COUNTED_REGEX})[ _#-]?\d+|(?<!\d)\d{{1,18}}[ _-]?(?:{COUNTED_REGEX})(?![a-z])"
)
"""The number of a step within a name is no part of it: `step12 loss`, `loss (epoch 3)`, `第12步 loss`."""


def find_loss_name(text: str, match: "re.Match[str]") -> str:
    """The name of a value, with one word before it."""
    start = match.start()
    begin = max(0, start - MAX_NAME_CHARS)
    return _join_loss_name(text[begin : match.end(1)], start - begin)


def find_phase_name(text: str, match: "re.Match[str]") -> str:
    """The name, with the word for an evaluation that stands before it on its line: `Valid Epoch: 3 Loss` is
    another loss than `Train Epoch: 3 Loss`."""
    start = match.start()
    begin = max(0, start - MAX_PHASE_CHARS)
    begin = max(begin, text.rfind("\n", begin, start) + 1)
    return _join_phase_name(text[begin : match.end(1)], start - begin)


@lru_cache(maxsize=4096)
def _join_phase_name(near: str, at: int) -> str:
    begin = max(0, at - MAX_NAME_CHARS)
    name = _join_loss_name(near[begin:], at - begin)
    told = [phase[2] for phase in _PHASE_PATTERN.finditer(near[:at])]
    word = told[-1] if told else None  # a later word for a training takes it back
    return f"{word} {name}" if word and not name.startswith(word) else name


@lru_cache(maxsize=4096)
def _join_loss_name(near: str, at: int) -> str:
    before, told = near[:at], near[at:]
    *_, word, attached = ["", *before[max(map(before.rfind, _NAME_END_CHARS)) + 1 :].split(" ")]
    named = f"{word} " if word.replace("/", "").isidentifier() else ""
    return _COUNT_PATTERN.sub("", named + attached + told).strip()
