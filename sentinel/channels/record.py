"""The JSON object that machines are given: one per alert, every text inert and bounded."""

import msgspec

from sentinel.core.model import Notification, Value
from sentinel.core.text import shorten_to_line, visible_lines

_TEXT, _DETAILS, _COUNT = 4000, 20_000, 64


def json_record(notification: Notification) -> bytes:
    """One inert JSON object without line breaks; its first fields are the documented ones."""
    return msgspec.json.encode(make_inert(notification))


def make_inert(notification: Notification) -> Notification:
    """The same with every text inert (a log viewer prints it to a terminal) and cut: 4,000
    characters a line, 20,000 of the end of the details, 64 labels, values and commands each."""
    n = notification
    lines = {name: shorten_to_line(getattr(n, name), _TEXT) for name in _LINES}
    return msgspec.structs.replace(
        n,
        **lines,
        links={},
        details=visible_lines(n.details[-_DETAILS:]),
        commands=tuple(shorten_to_line(c, _TEXT) for c in n.commands[:_COUNT]),
        labels={
            shorten_to_line(k, 200): shorten_to_line(v, _TEXT)
            for k, v in [*n.labels.items()][:_COUNT]
        },
        values={shorten_to_line(k, 200): _inert_value(v) for k, v in [*n.values.items()][:_COUNT]},
    )


_LINES = (
    "at",
    "cluster",
    "check",
    "kind",
    "subject",
    "reason",
    "summary",
    "since",
    "key",
    "alert",
    "incident",
    "runbook",
    "note",
    "page",
)


def _inert_value(value: Value) -> Value:
    return shorten_to_line(value, _TEXT) if isinstance(value, str) else value
