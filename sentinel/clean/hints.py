"""Reads small files whose names say nothing and whose text names a checkpoint: `meta.json` of
MindFormers with its `last_ckpt_file`, a `run.yaml` with `best_step`. Pure, standard library only.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator

from sentinel.clean.mentions import (
    STEP_NUMBER_REGEX,
    Mentions,
    find_lone_number,
    has_weights_name,
    is_log_file,
    is_pointing,
    is_text,
    mentions_in_text,
    parse_step_number,
)
from sentinel.clean.rules import RetentionRules
from sentinel.core.checkpoint_names import name_form, parse_step_numbers

MAX_HINT_FILES = 64
"""If a folder has more such files whose names differ in numbers only, they are data. So many times four are
read of all."""

MAX_HINT_BYTES = 1 << 16
"""How long such a file may be: a configuration that MMEngine writes has 20 KiB."""

MAX_NAMED_STEPS = 3
"""A file that names more steps, half of them and the newest one, lists what was saved. It does not say where
a run continues."""

_SETTING_PATTERN = re.compile(
    r"^[ \t]{0,64}['\"]?(\w[\w -]{0,39}?)['\"]?[ \t]{0,8}[:=][ \t]{0,8}['\"]?"
    rf"{STEP_NUMBER_REGEX}['\"]?,?\s{{0,8}}$",
    re.M,
)
_STEP_KEY_PATTERN = re.compile(
    r"(?:(?:global|train|training|start|cur|completed)[_ -]?)?(?:steps?|iter|iteration|epoch|counter)"
    r"(?:[_ -]?(?:num|number|count|idx|index|done|completed))?",
    re.IGNORECASE,
)
"""`step` and `iteration` of a small file say how far a run came; `save_steps` and `max_epochs` are settings."""


def may_hint(name: str) -> bool:
    """Whether a file of that name may be such a text: a script too, or a configuration in Python."""
    return not (has_weights_name(name) or is_log_file(name))


def choose_hints(names: list[str]) -> list[str]:
    """Those of the possible hints that are read: the rarest forms first."""
    counted = Counter(map(name_form, names))
    few = [name for name in names if counted[name_form(name)] <= MAX_HINT_FILES]
    return sorted(few, key=lambda name: counted[name_form(name)])[: 4 * MAX_HINT_FILES]


def read_hint(raw: bytes, there: Collection[str], rules: RetentionRules) -> Mentions:
    """The entries that the text names.

    It names them by their whole names, or by numbers: those whose key says last, best or similar,
    or is the step itself, and a number that is the whole text. Other numbers are settings. Empty if
    the text names none, or lists what was saved.
    """
    text = raw.decode("utf-8", "replace")
    if not is_text(raw) or not text.strip():
        return Mentions()
    found = mentions_in_text(text, there)
    found.numbers = {*_find_pointing_numbers(text)}
    found.names = {name for name in found.names if not name.isdigit()}
    steps = {
        name: number
        if (number := rules.step_number(name)) is not None
        else parse_step_numbers(name)
        for name in there
        if rules.fits_name(name)
    }
    named = {step for name, step in steps.items() if found.covers_name(name)}
    newest = max(
        steps.values(), key=lambda one: one if isinstance(one, tuple) else (one,), default=0
    )
    listed = (
        newest in named
        and len(named) > MAX_NAMED_STEPS
        and 2 * len(named) >= len({*steps.values()})
    )
    return found if named and not listed else Mentions()


def _find_pointing_numbers(text: str) -> Iterator[int]:
    if (alone := find_lone_number(text)) is not None:
        yield alone
        return
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        yield from (
            parse_step_number(number)
            for key, number in _SETTING_PATTERN.findall(text)
            if _says_step(key)
        )
        return
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from (
                int(value)
                for key, value in one.items()
                if isinstance(value, int | float)
                and value == value // 1 >= 0
                and _says_step(str(key))
            )
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _says_step(key: str) -> bool:
    """Whether the number behind that key says at which step a run is."""
    return is_pointing(key) or _STEP_KEY_PATTERN.fullmatch(key) is not None
