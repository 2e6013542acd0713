"""Formats alerts for people: one card per alert, a subject line and plain text.

Control characters are removed, and long texts are cut. The modules html and blocks show the same
cards.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sentinel.alerting.incidents import is_standstill
from sentinel.alerting.outbox import is_ending
from sentinel.alerting.owners import OWNER_LABEL
from sentinel.channels.format.facts import make_facts
from sentinel.channels.format.moments import age_text, clock_text, moment_text, told_time
from sentinel.channels.format.titles import card_title, short_word
from sentinel.core.command_places import SETUP_PLACE, PlacedCommands, group_by_place
from sentinel.core.guidance import UNSEEN_IMPACT, name_config, quote_command
from sentinel.core.letters import WISH_REASON
from sentinel.core.model import ACK_ALL, Notification, Status
from sentinel.core.text import (
    keep_whole_commands,
    natural_sort_key,
    shorten_to_clauses,
    shorten_to_line,
    shortened,
    strip_names,
    visible,
)
from sentinel.core.turns import interleave

HISTORY_HEADING = "Full history"
MORE_HEADING = f"{HISTORY_HEADING}, and how to stop reminders"
LINES = 12
COMMANDS = 8
COMMANDS_HEADING, ACTS_HEADING = "Look closer", "Act on it"
_LINE, _SUMMARY = 300, 600
_COMMAND = 1000
_MAX_SEARCHED, _MIN_SAID = 20_000, 8  # characters of the details, and of one of their lines
_REASONS = {"ack": "acknowledged", WISH_REASON: "your wish"}
_WORDS = {
    "resolved": "RESOLVED",
    "gone": "OVER",
    "test": "TEST",
    "action": "ACTION",
    "digest": "REPORT",
}


class AlertCard(Struct, frozen=True, kw_only=True):
    """One alert in words.

    `word` is the status (CRITICAL, RESOLVED …), `headline` what has happened (DIED, HANGS …) where
    that has a word, and `tone` the colour (critical, warning, unknown, ok, info). `title` is the
    check with its subject, `thing` the title without the check. `age` is the duration so far,
    `shared` is what alike alerts have in common, `clock` the beginning in short, `noticed` when sentinel first saw it, `told` the time of this
    message. `note` says more about the message, e.g. a silence, or who acknowledged. `lines` are the
    end of a log or other details, below `heading`. `more` are commands that show the rest. `links`
    are words with addresses. `picture` is a chart as PNG. `count` is how many similar alerts the
    card stands for.
    """

    word: str
    tone: str
    title: str
    thing: str
    cluster: str  # Name of the cluster.
    summary: str  # One line: the problem now.
    shared: str
    impact: str  # What happens if nobody acts.
    steps: tuple[str, ...]  # What to do, in sentences.
    told: str
    began: str  # When it began, as people write it.
    noticed: str
    clock: str
    age: str
    ended: bool  # Whether it is over.
    dry_run: bool  # Whether actions were only simulated.
    facts: tuple[tuple[str, str], ...]  # Names and values for a table.
    lines: tuple[str, ...]
    commands: tuple[str, ...]  # Commands that a person would run next.
    command_groups: tuple[PlacedCommands, ...]  # The same by where and as whom they are run.
    act_groups: tuple[PlacedCommands, ...]  # Those that change something.
    runbook: str  # Page with instructions.
    note: str
    more: tuple[str, ...]
    setup_place: str  # Where and as whom the commands of sentinel are run.
    links: tuple[tuple[str, str], ...] = ()
    heading: str = "Details"
    headline: str = ""
    config: str = ""  # The file that commands of sentinel name by -c.
    ack_all: str = ""  # The link that acknowledges all alerts of the message.
    picture: bytes = b""
    count: int = 1
    owner: str = ""  # Whose job it is about. Empty if it is no user's.


def make_card(notification: Notification) -> AlertCard:
    """The card for one notification, whatever its texts contain. The cards of an end and of an
    acknowledgement are short."""
    n, ended, title = notification, is_ending(notification), card_title(notification)
    # Who reads that somebody has it knows the rest, and shall not submit it a second time.
    short = ended or n.reason == "ack"
    commands = () if short else keep_whole_commands(n.commands, _COMMAND)[:COMMANDS]
    host = str(n.values.get("host") or "")
    setup = shorten_to_line(n.setup_place, _LINE) or SETUP_PLACE
    groups = group_by_place(commands, host, n.labels.get(OWNER_LABEL, ""), setup)
    acts = () if short else keep_whole_commands(n.acts, _COMMAND)[:COMMANDS]
    return AlertCard(
        word=_status_word(n),
        tone=message_tone(n),
        title=title,
        thing=title.removeprefix(f"{short_word(n.check)} "),
        cluster=short_word(n.cluster),
        summary=shorten_to_line(n.summary, _SUMMARY),
        shared=shorten_to_line(
            str((n.kind == "job" and n.values.get("end")) or n.summary.partition(";")[0]), _SUMMARY
        ),
        impact="" if short else _impact_text(n),
        steps=() if short else _list_steps(n),
        told=told_time(n),
        began=moment_text(n.since),
        noticed=moment_text(n.noticed),
        clock=clock_text(n),
        age=age_text(n),
        ended=ended,
        dry_run=n.dry_run,
        facts=make_facts(n, title),
        lines=() if short else last_lines(_details_beyond_summary(n)),
        commands=tuple(command for _, group in groups for command in group),
        command_groups=groups,
        act_groups=group_by_place(acts, host, n.labels.get(OWNER_LABEL, ""), setup),
        runbook="" if ended else shorten_to_line(n.runbook, _SUMMARY),
        note=shorten_to_line(n.note, _SUMMARY),
        more=_more_commands(n, short or n.reason == "action"),
        setup_place=setup,
        links=() if ended else _card_links(n),
        heading="Last lines" if n.kind == "log" else "Details",
        headline=_headline(n),
        config=n.config,
        ack_all=n.links.get(ACK_ALL, ""),
        picture=n.picture or b"",
        owner=n.labels.get(OWNER_LABEL, ""),
    )


def _impact_text(n: Notification) -> str:
    """What happens if nobody acts. The text is the same for everything that could not be checked."""
    blind = n.status is Status.UNKNOWN and n.reason != "action"
    return shorten_to_line(n.guidance.impact or (UNSEEN_IMPACT if blind else ""), _SUMMARY)


def _list_steps(n: Notification) -> tuple[str, ...]:
    place = f"{n.cluster} {n.values.get('host') or ''}".strip()
    return tuple(shorten_to_line(step, _SUMMARY) for step in n.guidance.list_steps(place))


def _details_beyond_summary(n: Notification) -> str:
    """The details. Empty if the summary already contains all of their lines."""
    if len(n.details) > _MAX_SEARCHED:
        return n.details
    lines = n.details.split("\n")
    return "" if all(_has_words(n.summary, line.strip()) for line in lines) else n.details


def _has_words(summary: str, line: str) -> bool:
    return len(line) > _MIN_SAID and line in summary


def _card_links(n: Notification) -> tuple[tuple[str, str], ...]:
    page = shorten_to_line(n.page, _SUMMARY)
    own = ((word, link) for word, link in n.links.items() if word != ACK_ALL)
    return (*own, *([("Open", page)] if page else []))


def last_lines(text: str, count: int = LINES) -> tuple[str, ...]:
    """The last lines of a text, without control characters, each cut. An ellipsis stands for the
    lines before.

    Only LF ends a line, as in `visible_lines`. Indentation is kept.
    """
    tail = text[-count * _LINE * 4 :]
    lines = [
        shortened(visible(line[: _LINE + 1].expandtabs().rstrip()), _LINE)
        for line in (tail.rstrip().split("\n") if tail.strip() else ())
    ]
    cut = len(lines) > count or len(tail) < len(text)
    return ("…", *lines[-count:]) if cut else tuple(lines)


def _status_word(n: Notification, headline: str = "") -> str:
    """The status, or what has happened instead of it; then why it is told again."""
    if n.reason in _WORDS:
        return _WORDS[n.reason]
    if is_ending(n):
        return f"RESOLVED ({short_word(n.reason)})"
    degree = n.status if n.status is Status.UNKNOWN else n.severity
    reason = "again" if n.reason == "flapping" else n.reason
    extra = "" if reason == "firing" else f" ({_REASONS.get(reason) or short_word(reason)})"
    return (short_word(headline) or degree.value.upper()) + extra


def _headline(n: Notification) -> str:
    """What has happened, as the subject begins. Empty where the message is about something else."""
    word = "" if is_ending(n) or n.reason in _WORDS else n.guidance.headline
    return _status_word(n, word) if word else ""


def message_tone(n: Notification) -> str:
    """The severity for the colour: critical, warning, unknown, ok or info."""
    if n.reason in ("test", "digest"):
        return "info"
    if is_ending(n):
        return "ok"
    if n.reason == "action":
        return "info" if n.status is Status.OK else n.status.value
    return (n.status if n.status is Status.UNKNOWN else n.severity).value


def _more_commands(n: Notification, over: bool) -> tuple[str, ...]:
    if not n.alert or n.reason == "test":
        return ()
    verbs = (("explain",),) if over else (("explain",), ("alerts", "ack"))
    return tuple(
        name_config(quote_command("sentinel", *verb, short_word(n.alert)), n.config)
        for verb in verbs
    )


SUBJECT = 180
SUBJECT_OF_ONE = 80
"""Characters of the subject of one alert, unless its names alone are long."""
_MIN_SUBJECT_SUMMARY = 30
FULL = 20
LISTED = 100
_TONES = ("critical", "unknown", "warning", "info", "ok")


def subject_line(notifications: Sequence[Notification]) -> str:
    """One line: severity, place, problem, and if there is room the beginning."""
    return subject_of_cards(rank_cards(notifications))


def subject_of_cards(cards: Sequence[AlertCard]) -> str:
    """The same for cards that are sorted already."""
    mark = "[dry run] " if cards[0].dry_run else ""
    return mark + (_single_subject(cards[0]) if len(cards) == 1 else _several_subject(cards))


def render_text(notifications: Sequence[Notification]) -> str:
    """The plain text of the body. Each alert is written in full. If there are very many, the later
    ones get one line each."""
    return render_cards_text(rank_cards(notifications))


def render_cards_text(cards: Sequence[AlertCard]) -> str:
    """The same for cards that are sorted already."""
    link = f"\n\n{ACK_ALL}: {cards[0].ack_all}" if cards[0].ack_all else ""
    parts = [f"{overview_line(cards)}:{link}"] if len(cards) > 1 or link else []
    parts += ["\n".join(_card_paragraphs(c)) for c in cards[:FULL]]
    if rest := list(further_lines(cards)):
        parts.append("\n".join(["Further:", *(f"  {line}" for line in rest)]))
    return ("\n\n" + "-" * 72 + "\n\n").join(parts) + "\n"


def sort_worst_first(notifications: Sequence[Notification]) -> list[Notification]:
    """Sort alerts: stopped trainings first, because only the first alerts are shown in full. Among
    equal alerts, each user's first one comes before anybody's second one. Of one check, the larger
    training comes first, then n2 before n10."""
    ranks = {
        id(n): (not _is_standing_still(n), _TONES.index(message_tone(n))) for n in notifications
    }
    alike = len({n.check for n in notifications}) == 1
    by_name = sorted(notifications, key=_name_key) if alike else notifications
    users = interleave(by_name, lambda n: (ranks[id(n)], n.labels.get(OWNER_LABEL, "")))
    return sorted(users, key=lambda n: ranks[id(n)])


def _name_key(n: Notification) -> tuple[float, object]:
    gpus = n.values.get("gpus")
    return -gpus if isinstance(gpus, int | float) else 0, natural_sort_key(n.subject)


def _is_standing_still(n: Notification) -> bool:
    return not is_ending(n) and is_standstill(n.kind, n.subject, n.severity)


def rank_cards(notifications: Sequence[Notification]) -> list[AlertCard]:
    """One card per alert, the worst first. If there are more than FULL, similar alerts share a
    card, except stopped trainings."""
    groups: dict[tuple[object, ...], list[Notification]] = {}
    for number, n in enumerate(sort_worst_first(notifications)):
        alone = number if len(notifications) <= FULL or _is_standing_still(n) else None
        words = strip_names(n.summary[:_SUMMARY], [n.subject, *n.labels.values()])
        groups.setdefault((n.check, n.reason, message_tone(n), alone, words), []).append(n)
    return [_shared_card(alike) for alike in groups.values()]


def _shared_card(alike: Sequence[Notification]) -> AlertCard:
    first, others = make_card(alike[0]), [short_word(n.subject or n.check) for n in alike[1:]]
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
    """For example `3 alerts on h100-prod: 2 critical, 1 ok`, the worst first; then what all of them
    share, and when they began: `20 alerts on lab: 20 critical, each: FAILED (03:12 to 03:14 UTC)`."""
    clusters = sorted({c.cluster for c in cards if c.cluster})
    where = f" on {clusters[0]}" if len(clusters) == 1 else ""
    counts = ", ".join(_tone_counts(cards))
    return f"{sum(c.count for c in cards)} alerts{where}: {counts}{_describe_shared(cards)}"


def _describe_shared(cards: Sequence[AlertCard]) -> str:
    """What all of them share, and from when to when they began: how a job ended, or the first clause
    of the summary."""
    first = {(c.word, c.shared) for c in cards}
    if len(first) > 1 or any(c.ended or c.count > 1 for c in cards):
        return ""
    began = sorted({c.clock for c in cards if c.clock})
    when = f" ({began[0]})" if len(began) == 1 else ""
    if len(began) > 1 and len({clock.partition(" ")[2] for clock in began}) == 1:
        when = f" ({began[0].partition(' ')[0]} to {began[-1]})"
    return f", each: {shorten_to_clauses(first.pop()[1], _MIN_SUBJECT_SUMMARY)}{when}"


def list_turns(cards: Sequence[AlertCard]) -> list[int]:
    """The turn of each card if the users take turns. Where there is no room for all, those of the last
    turns are left out: many alerts of one user hide no other's, however bad they are."""
    order = interleave(range(len(cards)), lambda place: cards[place].owner)
    turns = [0] * len(cards)
    for turn, place in enumerate(order):
        turns[place] = turn
    return turns


def further_lines(cards: Sequence[AlertCard]) -> Iterator[str]:
    """One line for each alert that is not shown in full, up to a limit."""
    rest = cards[FULL:]
    turns = list_turns(rest)
    for c, turn in zip(rest, turns, strict=True):
        if turn < LISTED:
            yield f"{c.word} {c.title}: {shortened(c.summary, 120)}"
    if len(rest) > LISTED:
        left = sum(c.count for c, turn in zip(rest, turns, strict=True) if turn >= LISTED)
        yield f"and {left} more: {name_config('sentinel alerts list', cards[0].config)}"


def card_sections(c: AlertCard) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The parts of a card below its facts, in the order in which people need them. Each has a
    heading and lines. Empty parts are left out."""
    parts = (
        ("Runbook", (c.runbook,) if c.runbook else ()),
        ("What to do", c.steps),
        *(
            (f"{COMMANDS_HEADING} ({at})" if at else COMMANDS_HEADING, g)
            for at, g in c.command_groups
        ),
        *((f"{ACTS_HEADING} ({at})" if at else ACTS_HEADING, g) for at, g in c.act_groups),
        (c.heading, c.lines),
        (f"{MORE_HEADING if len(c.more) > 1 else HISTORY_HEADING} ({c.setup_place})", c.more),
    )
    return (part for part in parts if part[1])


def more_commands(c: AlertCard) -> tuple[PlacedCommands, ...]:
    """The commands that show the rest, with where and as whom they are run, unless the commands
    before them say the same."""
    said = bool(c.command_groups) and c.command_groups[-1][0] == c.setup_place
    return (("" if said else c.setup_place, c.more),) if c.more else ()


def card_facts(c: AlertCard) -> list[tuple[str, str]]:
    """Time and place first, then the measured values."""
    return [*_list_moments(c), *c.facts, *([("cluster", c.cluster)] if c.cluster else [])]


def _list_moments(c: AlertCard) -> list[tuple[str, str]]:
    """When it began, where that is known, and when sentinel noticed it."""
    if c.ended and c.age:
        return [("lasted", f"{c.age}, since {c.began}")]
    # A mail is read hours later. The age is that at the time of the message.
    age = f" ({c.age} before this message)" if c.age not in ("", "0s") else ""
    if not c.noticed:
        return [("since", f"{c.began}{age}")]
    if c.noticed == c.began:
        word = "first noticed" if c.word.endswith("(worse)") else "noticed"
        return [(word, f"{c.noticed}{age}")]
    return [("began", f"{c.began}{age}"), ("noticed", c.noticed)]


def _single_subject(c: AlertCard) -> str:
    parts = (c.headline, c.thing, c.cluster and f"({c.cluster})")
    place = " ".join(filter(None, parts if c.headline else (c.word, c.cluster, c.title)))
    end = _since_text(c)
    taken = len(end) if c.ended else 0
    room = max(SUBJECT_OF_ONE - len(place) - 2 - taken, _MIN_SUBJECT_SUMMARY)
    line = shortened(f"{place}: {shorten_to_clauses(c.summary, room)}", SUBJECT - taken)
    fits = len(line + end) <= SUBJECT_OF_ONE and " since " not in line
    return line + end if c.ended or fits else line


def _since_text(c: AlertCard) -> str:
    if c.ended:
        return f" (after {c.age})" if c.age else ""
    return f" (since {c.clock})" if c.clock else ""


def _several_subject(cards: Sequence[AlertCard]) -> str:
    headlines = {c.headline for c in cards}
    word = (headlines.pop() if len(headlines) == 1 else "") or cards[0].word
    word = "RESOLVED" if all(c.ended for c in cards) else word
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
    yield from (f"If nobody acts: {line}\n" for line in [c.impact] if line)
    yield from (f"Note: {line}\n" for line in [c.note] if line)
    if c.links:
        yield "\n".join(f"{word}: {url}" for word, url in c.links) + "\n"
    rows = card_facts(c)
    width = max(len(name) for name, _ in rows)
    yield from (f"{name:<{width}}  {value}" for name, value in rows)
    for heading, lines in card_sections(c):
        yield f"\n{heading}:"
        yield from (f"    {line}" for line in lines)
