"""Makes a Document from the output of `dcgmi diag`: from JSON in it, else from a table. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sentinel.core.text import shortened, visible
from sentinel.gpu.dcgm import documents, table
from sentinel.gpu.dcgm.model import Document
from sentinel.gpu.errors import Unreadable

LONGEST = 64 * 2**20
_ROOT = re.compile(
    r'\{\s*"(?:DCGM (?:GPU )?Diagnostic|Overall Result|iterations|entity_groups|metadata)"'
)


def parse(text: str) -> Document:
    """The document in the output. Raises Unreadable, and nothing else, unless the text is one
    complete output.

    Text may precede and follow the JSON: DCGM's own tests cut from the first `{` to the last `}`.
    Several documents in one output count together."""
    if len(text) > LONGEST:
        raise Unreadable("dcgmi diag printed more than 64 MB")
    found = list(_jsons(text)) or _stranger(text)
    if found:
        try:
            return documents.document(found)
        except Unreadable as error:
            more = documents.salvage(found)
            raise Unreadable(f"{error}{': ' if more else ''}{more}") from error
    if '"DCGM ' in text and "{" in text:
        raise Unreadable("dcgmi diag printed JSON of an unknown shape")
    if table.RULE in text or table.looks_like(text):
        return table.document(text)
    first = visible(shortened(text.strip().partition("\n")[0], 120))
    raise Unreadable(f"no output of dcgmi diag: {first or 'nothing'}")


def _jsons(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    at = 0
    while found := _ROOT.search(text, at):
        try:
            value, at = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"dcgmi diag printed broken JSON: {_said(error)}") from error
        yield value


def _stranger(text: str) -> list[dict[str, Any]]:
    """A document that begins in a way that no known version does; empty if there is none."""
    if '"DCGM ' not in text:
        return []
    try:
        value, _ = json.JSONDecoder(object_pairs_hook=_unique).raw_decode(text, text.find("{"))
    except (ValueError, RecursionError):
        return []
    return [value] if isinstance(value, dict) else []


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs. Raises ValueError for a key that comes twice, which could hide a
    failure behind a pass."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice in one object")
    return found


def _said(error: Exception) -> str:
    return visible(shortened(str(error), 100)) or type(error).__name__
