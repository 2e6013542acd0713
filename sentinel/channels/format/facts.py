"""The facts below an alert's summary, as names and values for people. Each fact appears once."""

import math
import re
from collections.abc import Callable, Iterator, Mapping

from sentinel.alerting.outbox import is_ending
from sentinel.channels.format.titles import is_called_by_slot
from sentinel.core.model import Notification, Status, Value
from sentinel.core.text import shorten_to_line, shortened
from sentinel.core.values import duration_text, format_percent, size_text

MAX_FACTS = 24
_MAX_VALUE_LENGTH, _MAX_NAME_LENGTH = 300, 32
_UNIT = re.compile(r"(.+)_(percent|bytes|seconds|s|w|c)")
_MACHINE_FACTS = frozenset(
    {
        "apparent_bytes",
        "critical_percent",
        "warn_percent",
        "bad",
        "calls",
        "complete",
        "count",
        "level",
        "needs_person",
        "oom_kills",
        "outcome",
        "pending",
        "step",
    }
    | {"unseen"}
)
"""Values that do not help people to decide, or that the summary contains in other words. They
remain in the JSON, in `explain` and on the page."""


def make_facts(n: Notification, title: str) -> tuple[tuple[str, str], ...]:
    """Names and values for a table, without those that are in the title or the summary."""
    rows = dict[str, list[str]]()
    for name, value in _list_facts(n, title):
        rows.setdefault(name, []).append(value)
    told = sorted(rows.items(), key=lambda row: _rank_fact(row[0]))
    return tuple((name, ", ".join(values)) for name, values in told)[:MAX_FACTS]


_INODE_KINDS = ("du", "quota")
_FIRST_FACTS = (
    "severity",
    "why now",
    "state",
    "at risk",
    "used",
    "free",
    "inodes used",
    "inodes",
    "inodes limit",
    "inodes free",
    "size",
    "temperature",
)
_LAST_FACTS = ("model", "slot", "serial", "GPU", "node", "host", "job", "partition", "user", "team")


def _rank_fact(name: str) -> int:
    """What helps to decide comes first, names of things last."""
    if name in _FIRST_FACTS:
        return _FIRST_FACTS.index(name) - len(_FIRST_FACTS)
    return 1 + _LAST_FACTS.index(name) if name in _LAST_FACTS else 0


def format_fact(name: str, value: Value) -> tuple[str, str]:
    """A measured value in words. The end of its name is the unit (`used_percent`)."""
    match = _UNIT.fullmatch(name)
    unit = match[2] if match and isinstance(value, int | float) else ""
    label = match[1] if match and unit else name
    text = shortened(_format_amount(value, unit), _MAX_VALUE_LENGTH)
    return shorten_to_line(label.replace("_", " "), _MAX_NAME_LENGTH), text


def _list_facts(n: Notification, title: str) -> Iterator[tuple[str, str]]:
    if n.status is Status.UNKNOWN and n.severity is not Status.UNKNOWN and not is_ending(n):
        yield "severity", n.severity.value
    is_known_kind = n.kind != "exec"  # a plugin may use any names for its numbers
    for name, value in n.values.items():
        # Empty values, True and False are left out: the summary says what matters about them.
        if is_known_kind and name in _MACHINE_FACTS:
            continue
        if not value or value is True or value == "unknown":
            continue
        # People search for inodes; `clean` counts what it may remove, each with all that is in it.
        word = name.replace("entries", "inodes") if n.kind in _INODE_KINDS else name
        fact = format_fact(word, value)
        if not _is_said(fact, f"{title}\n{n.summary}"):
            yield fact
    if is_called_by_slot(n):
        yield "GPU", shorten_to_line(n.subject, _MAX_VALUE_LENGTH)
    for name, label in n.labels.items():
        said = f"{title}\n{n.summary}" if name == "node" else title
        if name not in n.values and label and not _has_words(label, said):
            yield (
                shorten_to_line(name, _MAX_NAME_LENGTH),
                shorten_to_line(label, _MAX_VALUE_LENGTH),
            )


def _is_said(fact: tuple[str, str], text: str) -> bool:
    """Whether the summary contains the value. A short number may be there by chance, so its name
    must stand beside it."""
    name, value = fact
    if not value.isdigit() or len(value) > 3:
        return _has_words(value, text)
    return any(_has_words(words, text) for words in (f"{value} {name}", f"{name} {value}"))


def _has_words(words: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(words)}(?![\w%])", text))


def _format_amount(value: Value, unit: str) -> str:
    if value is None or isinstance(value, bool):
        return {None: "unknown", True: "yes", False: "no"}[value]
    if isinstance(value, str):
        return shorten_to_line(value, _MAX_VALUE_LENGTH)
    if not math.isfinite(value):
        return str(value)
    if unit in _UNIT_FORMATS:
        return _UNIT_FORMATS[unit](value)
    return str(value) if isinstance(value, int) else f"{value:.6g}"


_UNIT_FORMATS: Mapping[str, Callable[[float], str]] = {
    "percent": format_percent,
    "bytes": size_text,
    "seconds": duration_text,
    "s": duration_text,
    "w": lambda value: f"{value:.6g} W",
    "c": lambda value: f"{value:.6g}°C",
}
