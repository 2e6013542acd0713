"""Notifications as a subject line and plain text; core.render_html has the same as HTML."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sentinel.channels.format.summary import Card, card, tone
from sentinel.core.model import Notification
from sentinel.core.text import shortened

SUBJECT = 180
FULL = 20
LISTED = 100
_TONES = ("critical", "unknown", "warning", "info", "ok")


def subject(notifications: Sequence[Notification]) -> str:
    """One inert line of at most 180 characters: how bad, where, what, since when."""
    cards = ranked(notifications)
    mark = "[dry run] " if cards[0].dry_run else ""
    return mark + (_single(cards[0]) if len(cards) == 1 else _several(cards))


def text(notifications: Sequence[Notification]) -> str:
    """The plain text body; each alert in full, of very many the later ones in a line each."""
    cards = ranked(notifications)
    parts = [overview(cards) + ":"] if len(cards) > 1 else []
    parts += ["\n".join(_paragraphs(c)) for c in cards[:FULL]]
    if rest := list(further(cards)):
        parts.append("\n".join(["Further:", *(f"  {line}" for line in rest)]))
    return ("\n\n" + "-" * 72 + "\n\n").join(parts) + "\n"


def worst_first(notifications: Sequence[Notification]) -> list[Notification]:
    """As they were among equals: of very many only the first are shown in full."""
    return sorted(notifications, key=lambda n: _TONES.index(tone(n)))


def ranked(notifications: Sequence[Notification]) -> list[Card]:
    """A card for each, the worst first."""
    return [card(n) for n in worst_first(notifications)]


def overview(cards: Sequence[Card]) -> str:
    """`3 alerts on h100-prod: 2 critical, 1 ok`, the worst first."""
    clusters = sorted({c.cluster for c in cards if c.cluster})
    where = f" on {clusters[0]}" if len(clusters) == 1 else ""
    return f"{len(cards)} alerts{where}: {', '.join(_counts(cards))}"


def further(cards: Sequence[Card]) -> Iterator[str]:
    """A line for each alert that is not shown in full, up to a bearable number."""
    for c in cards[FULL : FULL + LISTED]:
        yield f"{c.word} {c.title}: {shortened(c.summary, 120)}"
    if len(cards) > FULL + LISTED:
        yield f"and {len(cards) - FULL - LISTED} more: sentinel alerts list"


def sections(c: Card) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The parts of a card below its facts: heading and lines, empty ones left out."""
    parts = (
        ("Last lines", c.lines),
        ("Look closer", c.commands),
        ("Note", (c.note,) if c.note else ()),
        ("Runbook", (c.runbook,) if c.runbook else ()),
        ("Answer", tuple(f"{word}: {url}" for word, url in c.links)),
        ("More", c.more),
    )
    return (part for part in parts if part[1])


def facts(c: Card) -> list[tuple[str, str]]:
    """When and where it is, then what was measured."""
    since = f"{c.began} ({c.age} ago)" if c.age else c.began
    rows = [("lasted", f"{c.age}, since {c.began}") if c.ended and c.age else ("since", since)]
    return [*rows, *([("cluster", c.cluster)] if c.cluster else []), *c.facts]


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
    counted = Counter(_counted(c) for c in cards)
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
    rows = facts(c)
    width = max(len(name) for name, _ in rows)
    yield from (f"{name:<{width}}  {value}" for name, value in rows)
    for heading, lines in sections(c):
        yield f"\n{heading}:"
        yield from (f"    {line}" for line in lines)
