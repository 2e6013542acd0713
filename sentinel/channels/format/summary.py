"""What a person is shown about one alert: every text inert and cut to a bearable length."""

import math
import re
from collections.abc import Iterator
from datetime import datetime
from shlex import quote

from msgspec import Struct

from sentinel.alerting.outbox import ends
from sentinel.core.model import Notification, Status, Value
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text, size_text

LINES = 12
FACTS = 24
COMMANDS = 8
_LINE, _SUMMARY, _WORD, _NAME = 300, 600, 80, 32
_REASONS = {"ack": "acknowledged"}
_WORDS = {"resolved": "RESOLVED", "gone": "GONE", "test": "TEST", "action": "ACTION"}


class Card(Struct, frozen=True, kw_only=True):
    """One alert in words. `word` is what it is (CRITICAL, RESOLVED …), `tone` its colour
    (critical, warning, unknown, ok, info), `title` the check with its subject, `age` how
    long it has lasted, `clock` its beginning in short and `told` the time of this message;
    `note` what else there is to know of the telling (a silence, who has it), `lines` the end
    of a log, `more` the commands that tell the rest, `links` words with their addresses.
    """

    word: str
    tone: str
    title: str
    cluster: str
    summary: str
    told: str
    began: str
    clock: str
    age: str
    ended: bool
    dry_run: bool
    facts: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    commands: tuple[str, ...]
    runbook: str
    note: str
    more: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()


def card(notification: Notification) -> Card:
    """The words for one notification, whatever its texts hold. An end is told briefly."""
    n, ended = notification, ends(notification)
    return Card(
        word=_word(n),
        tone=tone(n),
        title=" ".join(part for part in (_short(n.check), _short(n.subject)) if part),
        cluster=_short(n.cluster),
        summary=one_line(n.summary, _SUMMARY),
        told=_told(n),
        began=_began(n),
        clock=_clock(n),
        age=_age(n),
        ended=ended,
        dry_run=n.dry_run,
        facts=tuple(_facts(n))[:FACTS],
        lines=() if ended else last_lines(n.details),
        commands=() if ended else tuple(one_line(c, _LINE) for c in n.commands[:COMMANDS]),
        runbook="" if ended else one_line(n.runbook, _SUMMARY),
        note=one_line(n.note, _SUMMARY),
        more=_more(n, ended or n.reason in ("action", "ack")),
        links=() if ended else tuple(n.links.items()),
    )


def one_line(text: str, limit: int) -> str:
    """Inert, on one line, at most `limit` characters; never looks at megabytes."""
    return shortened(visible(text[: limit + 1].strip()), limit)


def last_lines(text: str, count: int = LINES) -> tuple[str, ...]:
    """The last lines of a text, inert, each cut; an ellipsis stands for those before.

    Only LF ends a line, as in `visible_lines`; indentation stays.
    """
    tail = text[-count * _LINE * 4 :]
    lines = [_log_line(line) for line in tail.rstrip().split("\n")] if tail.strip() else []
    cut = len(lines) > count or len(tail) < len(text)
    return ("…", *lines[-count:]) if cut else tuple(lines)


def _log_line(line: str) -> str:
    return shortened(visible(line[: _LINE + 1].expandtabs().rstrip()), _LINE)


def fact(name: str, value: Value) -> tuple[str, str]:
    """A measured value in words; the unit is the end of its name (`used_percent`)."""
    match = re.fullmatch(r"(.+)_(percent|bytes|seconds|s)", name)
    unit = match[2] if match and isinstance(value, int | float) else ""
    label = match[1] if match and unit else name
    return one_line(label.replace("_", " "), _NAME), shortened(_amount(value, unit), _LINE)


def _amount(value: Value, unit: str) -> str:
    if value is None or isinstance(value, bool):
        return {None: "unknown", True: "yes", False: "no"}[value]
    if isinstance(value, str):
        return one_line(value, _LINE)
    if not math.isfinite(value):
        return str(value)
    if unit == "percent":
        return f"{value:.4g}%"
    if unit == "bytes":
        return size_text(value)
    if unit:
        return duration_text(value)
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _facts(n: Notification) -> Iterator[tuple[str, str]]:
    if n.status is Status.UNKNOWN and not ends(n):
        yield "severity", n.severity.value
    for name, value in n.values.items():
        if value != 0 or isinstance(value, bool):  # nothing to know, and six of them with a job
            yield fact(name, value)
    for name, label in n.labels.items():
        if name not in n.values:
            yield one_line(name, _NAME), one_line(label, _LINE)


def _word(n: Notification) -> str:
    if n.reason in _WORDS:
        return _WORDS[n.reason]
    if ends(n):
        return f"RESOLVED ({_short(n.reason)})"
    degree = n.status if n.status is Status.UNKNOWN else n.severity
    extra = "" if n.reason == "firing" else f" ({_REASONS.get(n.reason) or _short(n.reason)})"
    return degree.value.upper() + extra


def tone(n: Notification) -> str:
    """How bad it is: critical, warning, unknown, ok or info."""
    if n.reason == "test":
        return "info"
    if ends(n):
        return "ok"
    if n.reason == "action":
        return "info" if n.status is Status.OK else n.status.value
    return (n.status if n.status is Status.UNKNOWN else n.severity).value


def _told(n: Notification) -> str:
    at = moment(n.at)
    return at.strftime("%H:%M:%S") if at else ""


def _began(n: Notification) -> str:
    since = moment(n.since)
    return since.strftime("%Y-%m-%d %H:%M:%S ") + _offset(since) if since else _short(n.since)


def _clock(n: Notification) -> str:
    """The hour and minute, with the day where it was another one; none for what was just done."""
    at, since = moment(n.at), moment(n.since)
    if not at or not since or n.reason == "action":
        return ""
    return since.strftime("%H:%M" if at.date() == since.date() else "%m-%d %H:%M")


def _age(n: Notification) -> str:
    at, since = moment(n.at), moment(n.since)
    return duration_text(max(0.0, (at - since).total_seconds())) if at and since else ""


def moment(text: str) -> datetime | None:
    """An aware time; None where the text is none (Python 3.10 does not read a `Z`)."""
    try:
        found = datetime.fromisoformat(re.sub("Z$", "+00:00", text))
    except ValueError:
        return None
    return found if found.tzinfo else None


def _offset(at: datetime) -> str:
    offset = at.isoformat()[-6:]
    return "UTC" if offset == "+00:00" else offset


def _more(n: Notification, over: bool) -> tuple[str, ...]:
    if not n.alert or n.reason == "test":
        return ()
    name = quote(_short(n.alert))
    explain = f"sentinel explain {name}"
    return (explain,) if over else (explain, f"sentinel alerts ack {name}")


def _short(text: str) -> str:
    return one_line(text, _WORD)
