"""Selects the rows of a table that an address asks for, and renders a table as CSV (RFC 4180)."""

from __future__ import annotations

import csv
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import TypeVar

from msgspec import MsgspecError, Struct, json, to_builtins

from sentinel.alerting.incidents import rank_importance
from sentinel.core.text import escape_formula
from sentinel.status.types import AlertFact

Row = TypeVar("Row", bound=Struct)
FieldFilters = Mapping[str, Sequence[str]]
"""The accepted values of a field, by the field's name; all fields have to match."""


def filter_rows(rows: Sequence[Row], wanted: FieldFilters) -> list[Row]:
    """The rows whose fields have an accepted value, in the form that the JSON has."""
    return [
        r
        for r in rows
        if all(_format_field_value(getattr(r, name, None)) in w for name, w in wanted.items())
    ]


SIZE, MOST = 200, 1000
"""Alerts on a page, and how many a request may ask for at most."""

SortPlace = tuple[bool, bool, int, float]
"""The order of alerts: firing before pending, unacknowledged and unsilenced ones first, then by
importance, the oldest first. Trainings that stand still may change their order."""


def slice_page(
    alerts: Sequence[AlertFact], size: int, after: str | None = None
) -> tuple[Sequence[AlertFact], str]:
    """The alerts after that cursor, and the cursor for the next page (empty if this is the last).

    The cursor names the last alert and its place. So an alert that keeps its place is shown once,
    whatever begins or ends before it meanwhile. Raises ValueError for an invalid cursor."""
    start = 0
    if after is not None:
        last, name = _decode_cursor(after)
        places = [_compute_sort_place(a) for a in alerts]
        start, end = bisect_left(places, last), bisect_right(places, last)
        start = next((n + 1 for n in range(start, end) if alerts[n].id == name), start)
    some = alerts[start : start + size]
    more = bool(some) and start + size < len(alerts)
    told = json.encode((_compute_sort_place(some[-1]), some[-1].id)) if more else b""
    return some, urlsafe_b64encode(told).decode().rstrip("=")


def _compute_sort_place(a: AlertFact) -> SortPlace:
    weight = rank_importance(a.kind, a.subject, a.severity, a.status)[0]
    return a.state != "firing", a.quiet, weight, a.since if weight else 0.0


def _decode_cursor(text: str) -> tuple[SortPlace, str]:
    try:
        told = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        place, name = json.decode(told, type=tuple[SortPlace, str])
    except (ValueError, MsgspecError) as error:
        raise ValueError("no cursor of this list") from error
    return place, name


def render_csv(kind: type[Struct], rows: Sequence[Struct]) -> str:
    """The rows as CSV with a line of names."""
    out, names = StringIO(), kind.__struct_fields__
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_make_cell(getattr(row, name)) for name in names] for row in rows)
    return out.getvalue()


def _make_cell(value: object) -> str:
    return escape_formula(value) if isinstance(value, str) else _format_field_value(value)


def _format_field_value(value: object) -> str:
    plain = to_builtins(value)
    if plain is None or isinstance(plain, str):
        return plain or ""
    return json.encode(plain).decode()
