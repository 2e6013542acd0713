"""Reads the files of a checkpoint that name its other files. Pure, and run in the child that reads texts."""

from __future__ import annotations

import json
import re
from collections.abc import Collection


def find_absent_file(index: bytes, there: Collection[str]) -> str | None:
    """The first file that an index in the form of Hugging Face names and that is not there. Empty if
    there is none, None if the index cannot be read."""
    try:
        wanted = set(json.loads(index)["weight_map"].values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    named = {one for one in wanted if isinstance(one, str)}
    return min(named.difference(there), default="")


def find_named_files(metadata: bytes, there: Collection[str]) -> list[str] | None:
    """Which of these files torch DCP's metadata names, which is a pickle. None if it names no file."""
    found = {name.decode() for name in re.findall(rb"__[0-9]+_[0-9]+\.distcp", metadata)}
    return sorted(found.intersection(there)) if found else None
