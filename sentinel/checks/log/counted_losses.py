"""Losses that a log counts: steps that are skipped, or have a NaN, and losses that are left out. Pure."""

import re
from collections.abc import Iterator

from sentinel.checks.log.loss_tables import LossValue, parse_loss_value

MAX_SKIP_GAP_LINES = 50
"""Lines without a skipped step after which the next one is not in a row with those before."""

OVERFLOWED_NAME = "overflowed steps"
AT_MINIMUM_NAME = "skipped at the least loss scale"
LEFT_OUT_NAME = "left out"
NAN_ITERATIONS_NAME = "nan iterations"
SKIPPED_NAME = "skipped iterations"
"""The names of iterations that Megatron counts, and of losses that it leaves out: training_log
(megatron/training/training.py) prints a loss only if it is greater than 0, which NaN is not."""

TOLD_NAME = "said to be no number"
"""Losses that words say to be NaN: `NaN loss, skipping the batch`."""

_SKIPPED_AT_SCALE_PATTERN = re.compile(
    r"(?i)overflow[^\n]{0,80}? loss scale:? (?:to )?(\d[\d.e+-]{0,20})(?:, reducing to (\d[\d.e+-]{0,20}))?"
)
"""`OVERFLOW! … Attempted loss scale: 1, reducing to 1` of deepspeed/runtime/fp16/loss_scaler.py;
`Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.5` of apex/amp/handle.py."""
_SKIPPED_PATTERN = re.compile(r"(?i)found overflow[,.]? skip(?:ping)? (?:this )?step")
"""ColossalAI, colossalai/zero/low_level/low_level_optim.py: it does not say at which scale."""
_COUNTED_PATTERN = re.compile(
    r"number of skipped iterations: +(\d{1,9}) \|(?: +number of nan iterations: +(\d{1,9}))?"
)
_LINE_LOSS_PATTERN = re.compile(r"loss[\w ]{0,30}: (?<!loss scale: )\S")


def find_megatron_counts(text: str) -> Iterator[LossValue]:
    """The counts in lines of Megatron: iterations skipped, iterations with a NaN, and losses that
    are left out."""
    if "number of skipped iterations" not in text:
        return
    for match in _COUNTED_PATTERN.finditer(text):
        at, skipped, nans = match.start(), int(match[1]), int(match[2] or 0)
        line = text[text.rfind("\n", max(0, at - 2000), at) + 1 : at]
        there = _LINE_LOSS_PATTERN.search(line) is not None
        yield at, SKIPPED_NAME, 0.0 if there else float(skipped)
        yield at, NAN_ITERATIONS_NAME, float(nans)
        if not skipped and not nans:
            yield at, LEFT_OUT_NAME, 0.0 if there else 1.0


def find_skipped_steps(text: str) -> Iterator[LossValue]:
    """Steps that are skipped although there is no smaller loss scale left: nothing is learned.

    A single one now and then does no harm. So a stretch of MAX_SKIP_GAP_LINES lines without any is
    told as 0.
    """
    there = "verflow" in text or "OVERF" in text
    for pattern, name in (
        (_SKIPPED_AT_SCALE_PATTERN, AT_MINIMUM_NAME),
        (_SKIPPED_PATTERN, OVERFLOWED_NAME),
    ):
        end = 0
        for match in pattern.finditer(text) if there else ():
            if text.count("\n", end, match.start()) >= MAX_SKIP_GAP_LINES:
                yield match.start(), name, 0.0
            yield match.start(), name, float(name == OVERFLOWED_NAME or _is_least_scale(match))
            end = match.end()
        if text.count("\n", end) >= MAX_SKIP_GAP_LINES:
            yield len(text), name, 0.0


def _is_least_scale(match: "re.Match[str]") -> bool:
    attempted, reduced = parse_loss_value(match[1]), parse_loss_value(match[2] or match[1])
    return reduced <= 1 or (match[2] is not None and attempted == reduced)
