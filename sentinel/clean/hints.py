"""Reads small files whose names say nothing and whose text names a checkpoint: `meta.json` of
MindFormers with its `last_ckpt_file`, a `run.yaml` with `best_step`. Pure, standard library only.
"""

from __future__ import annotations

import json
import re
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
from sentinel.core.checkpoint_names import parse_step_numbers

MAX_HINT_FILES = 64
"""If a folder has more such files, only documents are read; if it has more of those, they are data."""

MAX_HINT_BYTES = 1 << 16
"""How long such a file may be: a configuration that MMEngine writes has 20 KiB."""

MAX_NAMED_STEPS = 3
"""A file that names more steps lists the checkpoints that were saved. It does not say where a run
continues."""

_DOCUMENT_NAME_PATTERN = re.compile(
    r"[^.]+|.+\.(?:json|ya?ml|toml|ini|cfg|conf|txt|info|meta)", re.IGNORECASE
)
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
    """Those of the possible hints that are read."""
    for chosen in (names, [name for name in names if _DOCUMENT_NAME_PATTERN.fullmatch(name)]):
        if len(chosen) <= MAX_HINT_FILES:
            return chosen
    return []


def read_hint(raw: bytes, there: Collection[str], rules: RetentionRules) -> Mentions:
    """The entries that the text names.

    It names them by their whole names, or by numbers: those whose key says last, best or similar,
    or is the step itself, and a number that is the whole text. Other numbers are settings. Empty if
    the text names none, or too many.
    """
    text = raw.decode("utf-8", "replace")
    if not is_text(raw) or not text.strip():
        return Mentions()
    found = mentions_in_text(text, there)
    found.numbers = {*_find_pointing_numbers(text)}
    found.names = {name for name in found.names if not name.isdigit()}
    named = {
        parse_step_numbers(name) if (number := rules.step_number(name)) is None else number
        for name in there
        if rules.fits_name(name) and found.covers_name(name)
    }
    return found if 0 < len(named) <= MAX_NAMED_STEPS else Mentions()


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
