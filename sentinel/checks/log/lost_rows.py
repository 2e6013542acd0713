"""Finds lines that tell a count of the training and nothing finite beside it. Pure.

Nobody knows all names of losses. But a line that tells a step, and whose every other value is NaN, tells
a training that is lost, whatever the values are called.
"""

import re
from collections.abc import Iterator
from math import nan

from sentinel.checks.log.loss_tables import LossValue

ALL_VALUES_NAME = "every value of a line"
"""The name under which such lines are counted."""

MAX_LINE_CHARS = 600
"""The longest line that is judged, in characters."""

SEARCHED_END_CHARS = 4000
"""How many characters at the end of a text are searched for a line that is finite again."""

_COUNT_REGEX = (
    r"(?i:\b(?:step|iter\w{0,6}|itr|epoch|ep|(?:mini)?batch|update|round|episode|trial|generation)s?\b[^\w\n]{0,6}\d"
    r"|^[^\w\n]{0,4}\d{1,9}[^\w.:/-])"
)
_NO_NUMBER_REGEX = r"(?<![\w.-])[-+]?(?:nan|NaN|NAN)(?!\w)"
_COUNT_PATTERN = re.compile(_COUNT_REGEX)
_NO_NUMBER_PATTERN = re.compile(_NO_NUMBER_REGEX)
_LOST_PATTERN = re.compile(
    rf"^(?=[^\n\d]{{0,{MAX_LINE_CHARS}}}\d)[^\n]{{0,{MAX_LINE_CHARS}}}{_NO_NUMBER_REGEX}[^\n]{{0,{MAX_LINE_CHARS}}}$",
    re.M,
)
"""A line with such a value and a digit: without one it has no count."""
_FINITE_PATTERN = re.compile(
    r"(?:(?P<word>[^\W\d][\w/@.%-]{0,30})[ \t=:(\['\"]{1,6})?(?<![\w.:/-])[-+]?\d{1,12}\.\d{1,30}(?:[eE][-+]?\d{1,4})?(?![\d.:])"
    r"(?P<unit>[ ]?(?:[mun]?s|secs?|seconds?|mins?|minutes?|hours?|hrs?|h|[kKMGTP]?i?B|MB|GB|it/s|s/it)(?![\w=:])|[ ]?[A-Za-z][A-Za-z_]{0,11}/(?:s|secs?|seconds?|its?|iters?|steps?|min|h|hours?|day|img|samples?|tok\w{0,4}|batch|gpu|GPU)(?!\w))?"
)
"""A number with decimals, with the word before it and the unit behind it."""
_OTHER_WORD_PATTERN = re.compile(
    r"(?i)t|(?:\w{0,30}[_./-])?(?:elapsed|time|eta|secs?|seconds?|mins?|minutes?|hours?|mem|memory|lr|learning_?rate|rate|speed|fps|ips"
    r"|momentum|mom|beta\d?|wd|weight_?decay|eps(?:ilon)?|temp(?:erature)?|scale|progress|epoch|ep|percent|data|decay)"
)
"""Words at values that stay finite in a training that is lost: times, speeds and settings."""
_OTHER_PHASE_PATTERN = re.compile(
    r"(?i)(?<![a-z])(?:val|valid|validation|eval|evaluation|evaluating|test|testing|dev)(?![a-z])"
)


def find_lost_rows(text: str) -> Iterator[LossValue]:
    """NaN for each line whose every value is NaN, and 0 where a line with a count has a finite value again."""
    found = _LOST_PATTERN.finditer(text) if "nan" in text or "NaN" in text or "NAN" in text else ()
    end = -1
    for line in found:
        if _is_lost(line[0]):
            yield line.start(), ALL_VALUES_NAME, nan
            end = line.end()
        elif _is_finite_row(line[0]):
            yield line.start(), ALL_VALUES_NAME, 0.0
    begin = max(len(text) - SEARCHED_END_CHARS, end + 1)
    at = text.rfind("\n", 0, begin) + 1 if begin < len(text) else begin
    for one in text[at:].splitlines(keepends=True):
        if at > end and len(one) <= MAX_LINE_CHARS and _is_finite_row(one):
            yield at, ALL_VALUES_NAME, 0.0
            return
        at += len(one)


_METRIC_PATTERN = re.compile(
    r"(?i)(?:acc(?:uracy)?|auc|f1|fid|m?ap|m?iou|dice|precision|recall|psnr|ssim|bleu|rouge|wer|cer|score|rew(?:ard)?|return|hd95)[^\s]{0,24}?['\"]?[ \t=:(]{1,4}[-+]?nan(?!\w)"
)
"""Metrics, which are NaN until they are evaluated, or where there is nothing to evaluate."""


def _is_lost(line: str) -> bool:
    first = _NO_NUMBER_PATTERN.search(line)
    if first is None or not _COUNT_PATTERN.search(line):
        return False
    if _OTHER_PHASE_PATTERN.search(line, 0, first.start()) or _has_finite(line):
        return False
    told = len(_NO_NUMBER_PATTERN.findall(line)) - len(_METRIC_PATTERN.findall(line))
    return told > 1 or (told == 1 and re.search(r"(?i)loss", line) is not None)


def _is_finite_row(line: str) -> bool:
    return _COUNT_PATTERN.search(line) is not None and _has_finite(line)


def _has_finite(line: str) -> bool:
    return any(
        not one["unit"] and not (one["word"] and _OTHER_WORD_PATTERN.fullmatch(one["word"]))
        for one in _FINITE_PATTERN.finditer(line)
    )
