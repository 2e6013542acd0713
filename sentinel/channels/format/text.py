"""What a person is shown about alerts: a card each, a subject line and plain text, every text inert and
cut to a bearable length. html and blocks show the same cards.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.incidents import stands_still
from sentinel.alerting.outbox import ends
from sentinel.core.model import Notification, Status, Value
from sentinel.core.text import gist, one_line, shortened, visible
from sentinel.core.values import duration_text, percent_text, size_text

LINES = 12
FACTS = 24
COMMANDS = 8
_LINE, _SUMMARY, _WORD, _NAME = 300, 600, 80, 32
_COMMAND = 1000  # one that is cut cannot be pasted
_REASONS = {"ack": "acknowledged"}
_WORDS = {"resolved": "RESOLVED", "gone": "GONE", "test": "TEST", "action": "ACTION"}


class Card(Struct, frozen=True, kw_only=True):
    """One alert in words. `word` is what it is (CRITICAL, RESOLVED …), `tone` its colour
    (critical, warning, unknown, ok, info), `title` the check with its subject, `age` how
    long it has lasted, `clock` its beginning in short and `told` the time of this message;
    `note` what else there is to know of the telling (a silence, who has it), `lines` the end
    of a log or other details below `heading`, `more` the commands that tell the rest, `links` words with their addresses, `picture` a PNG of how it went,
    `count` how many alike ones it stands for.
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
    heading: str = "Details"
    picture: bytes = b""
    count: int = 1


def card(notification: Notification) -> Card:
    """The words for one notification, whatever its texts hold. An end is told briefly."""
    n, ended = notification, ends(notification)
    return Card(
        word=_word(n),
        tone=tone(n),
        title=" ".join(dict.fromkeys(filter(None, (_short(n.check), _short(n.subject))))),
        cluster=_short(n.cluster),
        summary=one_line(n.summary, _SUMMARY),
        told=_told(n),
        began=_began(n),
        clock=_clock(n),
        age=_age(n),
        ended=ended,
        dry_run=n.dry_run,
        facts=tuple(_once(_facts(n)))[:FACTS],
        lines=() if ended else last_lines(n.details),
        commands=() if ended else tuple(one_line(c, _COMMAND) for c in n.commands[:COMMANDS]),
        runbook="" if ended else one_line(n.runbook, _SUMMARY),
        note=one_line(n.note, _SUMMARY),
        more=_more(n, ended or n.reason in ("action", "ack")),
        links=() if ended else _links(n),
        heading="Last lines" if n.kind == "log" else "Details",
        picture=n.picture or b"",
    )


def _links(n: Notification) -> tuple[tuple[str, str], ...]:
    page = one_line(n.page, _SUMMARY)
    return (*n.links.items(), *([("Open", page)] if page else []))


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
        return percent_text(value)
    if unit == "bytes":
        return size_text(value)
    if unit:
        return duration_text(value)
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _facts(n: Notification) -> Iterator[tuple[str, str]]:
    if n.status is Status.UNKNOWN and not ends(n):
        yield "severity", n.severity.value
    for name, value in n.values.items():
        if value is not None and (value != 0 or isinstance(value, bool)):  # nothing to know
            yield fact(name, value)
    for name, label in n.labels.items():
        if name not in n.values:
            yield one_line(name, _NAME), one_line(label, _LINE)


def _once(facts: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Facts of one name in one row: what is used as a share, and in bytes."""
    rows: dict[str, list[str]] = {}
    for name, value in facts:
        rows.setdefault(name, []).append(value)
    return ((name, ", ".join(values)) for name, values in rows.items())


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


SUBJECT = 180
FULL = 20
LISTED = 100
_TONES = ("critical", "unknown", "warning", "info", "ok")


def subject(notifications: Sequence[Notification]) -> str:
    """One inert line of at most 180 characters: how bad, where, what, since when."""
    return subject_of(ranked(notifications))


def subject_of(cards: Sequence[Card]) -> str:
    """The same for those that are ranked."""
    mark = "[dry run] " if cards[0].dry_run else ""
    return mark + (_single(cards[0]) if len(cards) == 1 else _several(cards))


def text(notifications: Sequence[Notification]) -> str:
    """The plain text body; each alert in full, of very many the later ones in a line each."""
    return text_of(ranked(notifications))


def text_of(cards: Sequence[Card]) -> str:
    """The same for those that are ranked."""
    parts = [overview(cards) + ":"] if len(cards) > 1 else []
    parts += ["\n".join(_paragraphs(c)) for c in cards[:FULL]]
    if rest := list(further(cards)):
        parts.append("\n".join(["Further:", *(f"  {line}" for line in rest)]))
    return ("\n\n" + "-" * 72 + "\n\n").join(parts) + "\n"


def worst_first(notifications: Sequence[Notification]) -> list[Notification]:
    """Trainings that stand still come first, equals as they were: of very many only the first are
    shown in full."""
    return sorted(notifications, key=lambda n: (not _stands_still(n), _TONES.index(tone(n))))


def _stands_still(n: Notification) -> bool:
    return not ends(n) and stands_still(n.kind, n.subject, n.severity)


def ranked(notifications: Sequence[Notification]) -> list[Card]:
    """A card for each, the worst first; of more than FULL, alike ones share one, but for trainings that
    stand still."""
    groups: dict[tuple[object, ...], list[Notification]] = {}
    for number, n in enumerate(worst_first(notifications)):
        alone = number if len(notifications) <= FULL or _stands_still(n) else None
        words = gist(n.summary[:_SUMMARY], [n.subject, *n.labels.values()])
        groups.setdefault((n.check, n.reason, tone(n), alone, words), []).append(n)
    return [_shared(alike) for alike in groups.values()]


def _shared(alike: Sequence[Notification]) -> Card:
    first, others = card(alike[0]), [_short(n.subject or n.check) for n in alike[1:]]
    if not others:
        return first
    names = shortened(", ".join(others), _SUMMARY)
    return replace(
        first,
        count=len(alike),
        summary=f"[and {len(others)} more like it] {first.summary}",
        note="; ".join(filter(None, (first.note, f"the others: {names}"))),
    )


def overview(cards: Sequence[Card]) -> str:
    """`3 alerts on h100-prod: 2 critical, 1 ok`, the worst first."""
    clusters = sorted({c.cluster for c in cards if c.cluster})
    where = f" on {clusters[0]}" if len(clusters) == 1 else ""
    return f"{sum(c.count for c in cards)} alerts{where}: {', '.join(_counts(cards))}"


def further(cards: Sequence[Card]) -> Iterator[str]:
    """A line for each alert that is not shown in full, up to a bearable number."""
    for c in cards[FULL : FULL + LISTED]:
        yield f"{c.word} {c.title}: {shortened(c.summary, 120)}"
    if len(cards) > FULL + LISTED:
        rest = sum(c.count for c in cards[FULL + LISTED :])
        yield f"and {rest} more: sentinel alerts list"


def sections(c: Card) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The parts of a card below its facts, in the order in which people need them: heading and
    lines, empty ones left out."""
    parts = (
        ("Runbook", (c.runbook,) if c.runbook else ()),
        ("What to do", c.commands),
        (c.heading, c.lines),
        ("More", c.more),
    )
    return (part for part in parts if part[1])


def facts(c: Card) -> list[tuple[str, str]]:
    """When and where it is, then what was measured."""
    since = f"{c.began} ({c.age} ago)" if c.age else c.began
    rows = [("lasted", f"{c.age}, since {c.began}") if c.ended and c.age else ("since", since)]
    return [*rows, *c.facts, *([("cluster", c.cluster)] if c.cluster else [])]


def _single(c: Card) -> str:
    place = " ".join(part for part in (c.word, c.cluster, c.title) if part)
    end = _since(c)
    return shortened(f"{place}: {c.summary}", SUBJECT - len(end)) + end


def _since(c: Card) -> str:
    if c.ended:
        return f" (after {c.age})" if c.age else ""
    return f" (since {c.clock})" if c.clock else ""


def _several(cards: Sequence[Card]) -> str:
    word = "RESOLVED" if all(c.ended for c in cards) else cards[0].word
    titles = ", ".join(dict.fromkeys(c.title for c in cards[:10]))
    return shortened(f"{word} {overview(cards)}: {titles}", SUBJECT)


def _counts(cards: Sequence[Card]) -> Iterator[str]:
    counted = Counter[str]()
    for c in cards:
        counted[_counted(c)] += c.count
    order = ("critical", "unknown", "warning", "action", "test", "resolved")
    for name in sorted(counted, key=lambda name: order.index(name) if name in order else 99):
        yield f"{counted[name]} {name}"


def _counted(c: Card) -> str:
    if c.tone == "info":
        return c.word.lower()
    return "resolved" if c.tone == "ok" else c.tone


def _paragraphs(c: Card) -> Iterator[str]:
    if c.dry_run:
        yield "DRY RUN: nothing was acted upon.\n"
    yield f"{c.word}  {c.title}"
    yield f"{c.summary}\n"
    yield from (f"Note: {line}\n" for line in [c.note] if line)
    if c.links:
        yield "\n".join(f"{word}: {url}" for word, url in c.links) + "\n"
    rows = facts(c)
    width = max(len(name) for name, _ in rows)
    yield from (f"{name:<{width}}  {value}" for name, value in rows)
    for heading, lines in sections(c):
        yield f"\n{heading}:"
        yield from (f"    {line}" for line in lines)
