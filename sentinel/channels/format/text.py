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

from sentinel.alerting.incidents import is_standstill
from sentinel.alerting.outbox import is_ending
from sentinel.core.model import Notification, Status, Value
from sentinel.core.text import shorten_to_line, shortened, strip_names, visible
from sentinel.core.values import duration_text, format_percent, size_text

LINES = 12
FACTS = 24
COMMANDS = 8
_LINE, _SUMMARY, _WORD, _NAME = 300, 600, 80, 32
_COMMAND = 1000  # one that is cut cannot be pasted
_REASONS = {"ack": "acknowledged"}
_WORDS = {"resolved": "RESOLVED", "gone": "GONE", "test": "TEST", "action": "ACTION"}


class AlertCard(Struct, frozen=True, kw_only=True):
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


def make_card(notification: Notification) -> AlertCard:
    """The words for one notification, whatever its texts hold. An end is told briefly."""
    n, ended = notification, is_ending(notification)
    return AlertCard(
        word=_status_word(n),
        tone=message_tone(n),
        title=" ".join(dict.fromkeys(filter(None, (_short_word(n.check), _short_word(n.subject))))),
        cluster=_short_word(n.cluster),
        summary=shorten_to_line(n.summary, _SUMMARY),
        told=_told_time(n),
        began=_began_text(n),
        clock=_clock_text(n),
        age=_age_text(n),
        ended=ended,
        dry_run=n.dry_run,
        facts=tuple(_merge_facts(_value_facts(n)))[:FACTS],
        lines=() if ended else last_lines(n.details),
        commands=()
        if ended
        else tuple(shorten_to_line(c, _COMMAND) for c in n.commands[:COMMANDS]),
        runbook="" if ended else shorten_to_line(n.runbook, _SUMMARY),
        note=shorten_to_line(n.note, _SUMMARY),
        more=_more_commands(n, ended or n.reason in ("action", "ack")),
        links=() if ended else _card_links(n),
        heading="Last lines" if n.kind == "log" else "Details",
        picture=n.picture or b"",
    )


def _card_links(n: Notification) -> tuple[tuple[str, str], ...]:
    page = shorten_to_line(n.page, _SUMMARY)
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


def format_fact(name: str, value: Value) -> tuple[str, str]:
    """A measured value in words; the unit is the end of its name (`used_percent`)."""
    match = re.fullmatch(r"(.+)_(percent|bytes|seconds|s)", name)
    unit = match[2] if match and isinstance(value, int | float) else ""
    label = match[1] if match and unit else name
    return shorten_to_line(label.replace("_", " "), _NAME), shortened(
        _format_amount(value, unit), _LINE
    )


def _format_amount(value: Value, unit: str) -> str:
    if value is None or isinstance(value, bool):
        return {None: "unknown", True: "yes", False: "no"}[value]
    if isinstance(value, str):
        return shorten_to_line(value, _LINE)
    if not math.isfinite(value):
        return str(value)
    if unit == "percent":
        return format_percent(value)
    if unit == "bytes":
        return size_text(value)
    if unit:
        return duration_text(value)
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _value_facts(n: Notification) -> Iterator[tuple[str, str]]:
    if n.status is Status.UNKNOWN and not is_ending(n):
        yield "severity", n.severity.value
    for name, value in n.values.items():
        if value is not None and (value != 0 or isinstance(value, bool)):  # nothing to know
            yield format_fact(name, value)
    for name, label in n.labels.items():
        if name not in n.values:
            yield shorten_to_line(name, _NAME), shorten_to_line(label, _LINE)


def _merge_facts(facts: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Facts of one name in one row: what is used as a share, and in bytes."""
    rows: dict[str, list[str]] = {}
    for name, value in facts:
        rows.setdefault(name, []).append(value)
    return ((name, ", ".join(values)) for name, values in rows.items())


def _status_word(n: Notification) -> str:
    if n.reason in _WORDS:
        return _WORDS[n.reason]
    if is_ending(n):
        return f"RESOLVED ({_short_word(n.reason)})"
    degree = n.status if n.status is Status.UNKNOWN else n.severity
    extra = "" if n.reason == "firing" else f" ({_REASONS.get(n.reason) or _short_word(n.reason)})"
    return degree.value.upper() + extra


def message_tone(n: Notification) -> str:
    """How bad it is: critical, warning, unknown, ok or info."""
    if n.reason == "test":
        return "info"
    if is_ending(n):
        return "ok"
    if n.reason == "action":
        return "info" if n.status is Status.OK else n.status.value
    return (n.status if n.status is Status.UNKNOWN else n.severity).value


def _told_time(n: Notification) -> str:
    at = parse_iso_time(n.at)
    return at.strftime("%H:%M:%S") if at else ""


def _began_text(n: Notification) -> str:
    since = parse_iso_time(n.since)
    return (
        since.strftime("%Y-%m-%d %H:%M:%S ") + _offset_text(since)
        if since
        else _short_word(n.since)
    )


def _clock_text(n: Notification) -> str:
    """The hour and minute, with the day where it was another one; none for what was just done."""
    at, since = parse_iso_time(n.at), parse_iso_time(n.since)
    if not at or not since or n.reason == "action":
        return ""
    return since.strftime("%H:%M" if at.date() == since.date() else "%m-%d %H:%M")


def _age_text(n: Notification) -> str:
    at, since = parse_iso_time(n.at), parse_iso_time(n.since)
    return duration_text(max(0.0, (at - since).total_seconds())) if at and since else ""


def parse_iso_time(text: str) -> datetime | None:
    """An aware time; None where the text is none (Python 3.10 does not read a `Z`)."""
    try:
        found = datetime.fromisoformat(re.sub("Z$", "+00:00", text))
    except ValueError:
        return None
    return found if found.tzinfo else None


def _offset_text(at: datetime) -> str:
    offset = at.isoformat()[-6:]
    return "UTC" if offset == "+00:00" else offset


def _more_commands(n: Notification, over: bool) -> tuple[str, ...]:
    if not n.alert or n.reason == "test":
        return ()
    name = quote(_short_word(n.alert))
    explain = f"sentinel explain {name}"
    return (explain,) if over else (explain, f"sentinel alerts ack {name}")


def _short_word(text: str) -> str:
    return shorten_to_line(text, _WORD)


SUBJECT = 180
FULL = 20
LISTED = 100
_TONES = ("critical", "unknown", "warning", "info", "ok")


def subject_line(notifications: Sequence[Notification]) -> str:
    """One inert line of at most 180 characters: how bad, where, what, since when."""
    return subject_of_cards(rank_cards(notifications))


def subject_of_cards(cards: Sequence[AlertCard]) -> str:
    """The same for those that are ranked."""
    mark = "[dry run] " if cards[0].dry_run else ""
    return mark + (_single_subject(cards[0]) if len(cards) == 1 else _several_subject(cards))


def render_text(notifications: Sequence[Notification]) -> str:
    """The plain text body; each alert in full, of very many the later ones in a line each."""
    return render_cards_text(rank_cards(notifications))


def render_cards_text(cards: Sequence[AlertCard]) -> str:
    """The same for those that are ranked."""
    parts = [overview_line(cards) + ":"] if len(cards) > 1 else []
    parts += ["\n".join(_card_paragraphs(c)) for c in cards[:FULL]]
    if rest := list(further_lines(cards)):
        parts.append("\n".join(["Further:", *(f"  {line}" for line in rest)]))
    return ("\n\n" + "-" * 72 + "\n\n").join(parts) + "\n"


def sort_worst_first(notifications: Sequence[Notification]) -> list[Notification]:
    """Trainings that stand still come first, equals as they were: of very many only the first are
    shown in full."""
    return sorted(
        notifications, key=lambda n: (not _is_standing_still(n), _TONES.index(message_tone(n)))
    )


def _is_standing_still(n: Notification) -> bool:
    return not is_ending(n) and is_standstill(n.kind, n.subject, n.severity)


def rank_cards(notifications: Sequence[Notification]) -> list[AlertCard]:
    """A card for each, the worst first; of more than FULL, alike ones share one, but for trainings that
    stand still."""
    groups: dict[tuple[object, ...], list[Notification]] = {}
    for number, n in enumerate(sort_worst_first(notifications)):
        alone = number if len(notifications) <= FULL or _is_standing_still(n) else None
        words = strip_names(n.summary[:_SUMMARY], [n.subject, *n.labels.values()])
        groups.setdefault((n.check, n.reason, message_tone(n), alone, words), []).append(n)
    return [_shared_card(alike) for alike in groups.values()]


def _shared_card(alike: Sequence[Notification]) -> AlertCard:
    first, others = make_card(alike[0]), [_short_word(n.subject or n.check) for n in alike[1:]]
    if not others:
        return first
    names = shortened(", ".join(others), _SUMMARY)
    return replace(
        first,
        count=len(alike),
        summary=f"[and {len(others)} more like it] {first.summary}",
        note="; ".join(filter(None, (first.note, f"the others: {names}"))),
    )


def overview_line(cards: Sequence[AlertCard]) -> str:
    """`3 alerts on h100-prod: 2 critical, 1 ok`, the worst first."""
    clusters = sorted({c.cluster for c in cards if c.cluster})
    where = f" on {clusters[0]}" if len(clusters) == 1 else ""
    return f"{sum(c.count for c in cards)} alerts{where}: {', '.join(_tone_counts(cards))}"


def further_lines(cards: Sequence[AlertCard]) -> Iterator[str]:
    """A line for each alert that is not shown in full, up to a bearable number."""
    for c in cards[FULL : FULL + LISTED]:
        yield f"{c.word} {c.title}: {shortened(c.summary, 120)}"
    if len(cards) > FULL + LISTED:
        rest = sum(c.count for c in cards[FULL + LISTED :])
        yield f"and {rest} more: sentinel alerts list"


def card_sections(c: AlertCard) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The parts of a card below its facts, in the order in which people need them: heading and
    lines, empty ones left out."""
    parts = (
        ("Runbook", (c.runbook,) if c.runbook else ()),
        ("What to do", c.commands),
        (c.heading, c.lines),
        ("More", c.more),
    )
    return (part for part in parts if part[1])


def card_facts(c: AlertCard) -> list[tuple[str, str]]:
    """When and where it is, then what was measured."""
    since = f"{c.began} ({c.age} ago)" if c.age else c.began
    rows = [("lasted", f"{c.age}, since {c.began}") if c.ended and c.age else ("since", since)]
    return [*rows, *c.facts, *([("cluster", c.cluster)] if c.cluster else [])]


def _single_subject(c: AlertCard) -> str:
    place = " ".join(part for part in (c.word, c.cluster, c.title) if part)
    end = _since_text(c)
    return shortened(f"{place}: {c.summary}", SUBJECT - len(end)) + end


def _since_text(c: AlertCard) -> str:
    if c.ended:
        return f" (after {c.age})" if c.age else ""
    return f" (since {c.clock})" if c.clock else ""


def _several_subject(cards: Sequence[AlertCard]) -> str:
    word = "RESOLVED" if all(c.ended for c in cards) else cards[0].word
    titles = ", ".join(dict.fromkeys(c.title for c in cards[:10]))
    return shortened(f"{word} {overview_line(cards)}: {titles}", SUBJECT)


def _tone_counts(cards: Sequence[AlertCard]) -> Iterator[str]:
    counted = Counter[str]()
    for c in cards:
        counted[_tone_word(c)] += c.count
    order = ("critical", "unknown", "warning", "action", "test", "resolved")
    for name in sorted(counted, key=lambda name: order.index(name) if name in order else 99):
        yield f"{counted[name]} {name}"


def _tone_word(c: AlertCard) -> str:
    if c.tone == "info":
        return c.word.lower()
    return "resolved" if c.tone == "ok" else c.tone


def _card_paragraphs(c: AlertCard) -> Iterator[str]:
    if c.dry_run:
        yield "DRY RUN: nothing was acted upon.\n"
    yield f"{c.word}  {c.title}"
    yield f"{c.summary}\n"
    yield from (f"Note: {line}\n" for line in [c.note] if line)
    if c.links:
        yield "\n".join(f"{word}: {url}" for word, url in c.links) + "\n"
    rows = card_facts(c)
    width = max(len(name) for name, _ in rows)
    yield from (f"{name:<{width}}  {value}" for name, value in rows)
    for heading, lines in card_sections(c):
        yield f"\n{heading}:"
        yield from (f"    {line}" for line in lines)
