"""The rows of a table that an address asks for, and a table as CSV (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import TypeVar

from msgspec import Struct, json, to_builtins

Row = TypeVar("Row", bound=Struct)
Wanted = Mapping[str, Sequence[str]]
"""The values that a field may have, by its name; all fields have to fit."""


def chosen(rows: Sequence[Row], wanted: Wanted) -> list[Row]:
    """Those whose fields have one of the values, as the JSON words them."""
    return [
        r for r in rows if all(_text(getattr(r, name, None)) in w for name, w in wanted.items())
    ]


def as_csv(kind: type[Struct], rows: Sequence[Struct]) -> str:
    """With a line of names; what a spreadsheet would take for a formula is marked as text
    (https://owasp.org/www-community/attacks/CSV_Injection)."""
    out, names = StringIO(), kind.__struct_fields__
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_inert(getattr(row, name)) for name in names] for row in rows)
    return out.getvalue()


def _inert(value: object) -> str:
    text = _text(value)
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@") else text


def _text(value: object) -> str:
    plain = to_builtins(value)
    if plain is None or isinstance(plain, str):
        return plain or ""
    return json.encode(plain).decode()
