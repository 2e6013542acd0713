"""Makes the JSON object for programs: one per alert, without control characters, of limited size."""

import msgspec
from msgspec.structs import astuple

from sentinel.core.guidance import Guidance
from sentinel.core.model import Notification, Value
from sentinel.core.text import keep_whole_commands, shorten_to_line, visible_lines

_TEXT, _DETAILS, _COUNT = 4000, 20_000, 64


def json_record(notification: Notification) -> bytes:
    """The JSON object in one line. The documented fields come first."""
    return msgspec.json.encode(make_inert(notification))


def make_inert(notification: Notification) -> Notification:
    """The notification with cut texts and without control characters, because a log viewer prints
    it to a terminal.

    The limits: 4,000 characters per line, the last 20,000 of the details, and 64 each of labels,
    values and commands. A longer command is left out.
    """
    n = notification
    lines = {name: shorten_to_line(getattr(n, name), _TEXT) for name in _LINES}
    return msgspec.structs.replace(
        n,
        **lines,
        links={},
        guidance=Guidance(*(shorten_to_line(t, _TEXT) for t in astuple(n.guidance))),
        details=visible_lines(n.details[-_DETAILS:]),
        commands=keep_whole_commands(n.commands[:_COUNT], _TEXT),
        acts=keep_whole_commands(n.acts[:_COUNT], _TEXT),
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
    "noticed",
    "key",
    "alert",
    "incident",
    "runbook",
    "note",
    "page",
    "setup_place",
    "config",
)


def _inert_value(value: Value) -> Value:
    return shorten_to_line(value, _TEXT) if isinstance(value, str) else value
