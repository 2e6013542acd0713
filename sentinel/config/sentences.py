"""What each field of a settings class is for: the one source of help and of the JSON Schema."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sentinel.config.shapes import settings_fields
from sentinel.core.lazy_pattern import lazy_pattern

_BEGIN = lazy_pattern(r"(\w+): (\S.*)")


@lru_cache(maxsize=256)
def field_sentences(cls: Any) -> dict[str, str]:
    """By key as users write it: the lines `key: Sentence.` of the class's docstring, those of its
    bases included. A line that is indented goes on with the one above.

    A field without such a line is left out; so is everything where Python runs with -OO.
    """
    from inspect import cleandoc  # slow to import, and needed only for help

    names = {key: (key, info.name) for key, info in settings_fields(cls).items()}
    keys = {name: key for key, both in names.items() for name in both}
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        key = ""
        for line in cleandoc(base.__dict__.get("__doc__") or "").splitlines():
            begin = _BEGIN.fullmatch(line)
            if begin and begin[1] in keys:
                key = keys[begin[1]]
                found[key] = begin[2]
            elif key and line.startswith(" "):
                found[key] += f" {line.strip()}"
            else:
                key = ""
    return found
