"""Reads the files of a checkpoint that name its other files. Pure, and run in the child that reads texts."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from sentinel.core.checkpoint_names import name_form

NamedFiles = tuple[list[str], list[str], str]
"""What one such file says of those beside and below it: those that it names; those with the form of a named
one that it does not name; and the first that it names and that is not there, empty if none is."""


def compare_index(index: bytes, there: Collection[str]) -> NamedFiles | None:
    """What an index in the form of Hugging Face says of these files. None if it cannot be read."""
    try:
        wanted = set(json.loads(index)["weight_map"].values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return _compare({one for one in wanted if isinstance(one, str)}, there)


def compare_metadata(metadata: bytes, there: Collection[str]) -> NamedFiles | None:
    """What torch DCP's metadata says of them, which is a pickle. None if it names no file."""
    named = {name.decode() for name in re.findall(rb"__[0-9]+_[0-9]+\.distcp", metadata)}
    return _compare(named, there) if named else None


def _compare(named: set[str], there: Collection[str]) -> NamedFiles:
    forms = {name_form(one) for one in named}
    others = sorted(one for one in there if one not in named and name_form(one) in forms)
    return sorted(named.intersection(there)), others, min(named.difference(there), default="")
