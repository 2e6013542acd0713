"""Parses the words of a match: `gpu-[01-16]`, `disk-*`, `!=gpu-1`, `=~gpu-.*`, `"as it is"`. Pure.

Operators, quotes and backslashes work as in Alertmanager
(https://prometheus.io/docs/alerting/latest/configuration/#matcher, pkg/labels/parse.go).
docs/alerts-match.md lists the differences.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache

from msgspec import Struct

from sentinel.alerting.settings import Match
from sentinel.core import hostlist, patterns
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.model import Alert
from sentinel.core.text import shortened

NODE_LABEL = "node"
"""The label that holds names of nodes. Its words are read as host lists."""

LIST_LABELS = frozenset({"partition"})
"""Labels that hold several names separated by commas. Each name is compared separately. The name of
a partition contains no comma (slurm.conf(5), PartitionName)."""

MAX_PATTERN_CHARS = 1000
"""The longest regular expression, in characters."""

_OPERATOR_PATTERN = lazy_pattern(r"\s*(=~|!~|!=|=)\s*")
_NAME_PATTERN = r'[A-Za-z_:][A-Za-z0-9_:.-]*|"(?:\\.|[^"\\])*"'
_MATCHER_PATTERN = lazy_pattern(rf"\s*({_NAME_PATTERN})\s*((?:=~|!~|!=|=).*?)\s*", re.DOTALL)
_PIECE_PATTERN = lazy_pattern(r'\\.|"(?:\\.|[^"\\])*"|.', re.DOTALL)
_CHARACTER_PATTERN = lazy_pattern(r"\\.|.", re.DOTALL)
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
_SAFE_PATTERN = lazy_pattern(r"[A-Za-z0-9_/.][A-Za-z0-9_/.:@ +-]*")
_NUMERIC_LABELS = lazy_pattern(r"\[[0-9,-]*(?:[0-9]{2}-[0-9]|[0-9]-[0-9]{2}|,)[0-9,-]*\]")


class ParsedWord(Struct, frozen=True):
    """A parsed word. A value matches if `hits(value)` differs from `negated`."""

    negated: bool
    hits: Callable[[str], bool]  # Whether the value matches, before `negated` is applied.


class Matcher(Struct, frozen=True):
    """The name of a label, and the word with its operator: `node` and `=~gpu-.*`."""

    name: str  # Name of the label.
    word: str  # The word, with its operator.


def is_matcher(text: str) -> bool:
    """Whether the text begins with a name and an operator."""
    return text.lstrip().startswith("{") or bool(_MATCHER_PATTERN.fullmatch(text))


def parse_matchers(text: str) -> list[Matcher]:
    """Parse `node=~"gpu-.*", severity!=warning`, with or without braces. Raises Invalid.

    A comma separates two matchers only if a name and an operator follow it. So `node=gpu[1,3],gpu7`
    is one matcher.
    """
    whole = text.strip()
    if whole.startswith("{"):
        if not whole.endswith("}") or len(whole) < 2:
            raise Invalid(f"{_quote_short(text)}: the closing brace is missing")
        whole = whole[1:-1]
    found = [_parse_matcher(part) for part in _split_matchers(whole)]
    if not found:
        raise Invalid("no matcher is given: it would be about everything")
    for one in found:
        parse_word(one.name, one.word)
    return found


@lru_cache(maxsize=4096)
def parse_word(name: str, text: str) -> ParsedWord:
    """Parse a word for the label `name`. Raises Invalid if the word makes no sense there."""
    operator = _OPERATOR_PATTERN.match(text)
    op, raw = (operator[1], text[operator.end() :]) if operator else ("=", text)
    if op in ("=~", "!~"):
        hits = _compile_pattern(_strip_quotes(raw))
    elif name in LIST_LABELS and "," in raw:
        several = "|".join(part.strip(' "') for part in raw.split(","))
        raise Invalid(
            f"{_quote_short(raw)}: no {name} has a comma; write {name}=~{several} for any"
        )
    elif raw.startswith('"'):
        hits = (
            _node_predicate(_strip_quotes(raw), raw)
            if name == NODE_LABEL
            else _strip_quotes(raw).__eq__
        )
    else:
        hits = _plain_predicate(name, raw)
    return ParsedWord(op.startswith("!"), hits)


def escape_literal(text: str) -> str:
    """A word that matches exactly this text, whatever characters it contains. Not for the label
    NODE_LABEL."""
    if _SAFE_PATTERN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _split_matchers(text: str) -> list[str]:
    """Split at commas outside of quotes. A part that does not begin a matcher is joined to the part
    before it."""
    pieces = [""]
    for piece in _PIECE_PATTERN.findall(text):
        if piece == ",":
            pieces.append("")
        else:
            pieces[-1] += piece
    if not pieces[-1].strip():
        pieces.pop()
    parts: list[str] = []
    for piece in pieces:
        if parts and piece.strip() and not _MATCHER_PATTERN.fullmatch(piece):
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    return parts


def _parse_matcher(part: str) -> Matcher:
    match = _MATCHER_PATTERN.fullmatch(part)
    if not match:
        raise Invalid(
            f"{_quote_short(part)} is no matcher such as node=gpu-[01-16] or check!=scratch "
            "(=, !=, =~ and !~)"
        )
    return Matcher(_strip_quotes(match[1]), match[2])


def _strip_quotes(raw: str) -> str:
    """The text without its quotes and escapes. A backslash stands for itself, unless `n`, a quote
    or a backslash follows. Raises Invalid."""
    characters: list[str] = _CHARACTER_PATTERN.findall(raw)
    if characters[:1] == ['"']:
        if len(characters) < 2 or characters.pop() != '"':
            raise Invalid(f"{_quote_short(raw)}: the closing quote is missing")
        del characters[0]
    if '"' in characters:
        raise Invalid(f'{_quote_short(raw)}: a quote within a text is written \\"')
    return "".join(_ESCAPES.get(c, c) for c in characters)


def _compile_pattern(text: str) -> Callable[[str], bool]:
    """Compile a pattern that must match the whole value, as in Alertmanager."""
    if len(text) > MAX_PATTERN_CHARS:
        raise Invalid(f"the regular expression is longer than {MAX_PATTERN_CHARS} characters")
    if "[[:" in text:
        raise Invalid(f"{_quote_short(text)}: write [0-9] for [[:digit:]], [a-z] for [[:lower:]]")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = patterns.compile_pattern(text)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise Invalid(f"{_quote_short(text)} is no regular expression: {error}") from None
    return lambda value: bool(compiled.fullmatch(value))


def _plain_predicate(name: str, text: str) -> Callable[[str], bool]:
    if not text:
        raise Invalid(f'a value is missing; {name}="" means those without one')
    if '"' in text:
        raise Invalid(f"{_quote_short(text)}: write {name}={escape_literal(text)}")
    if name == NODE_LABEL:
        return _node_predicate(text, text)
    if _NUMERIC_LABELS.search(text):
        raise Invalid(
            f"{_quote_short(text)}: brackets stand for one character here, not for numbers; "
            f"write node={text} for nodes, or {name}=~ and a regular expression"
        )
    fits = re.compile(translate(text)).match
    return lambda value: bool(fits(value))


def _node_predicate(text: str, raw: str) -> Callable[[str], bool]:
    """Match a node name against a host list, or against the wildcards * and ?. In quotes, neither
    has a meaning."""
    if not text:
        return text.__eq__
    if text == raw and re.search(r"[*?]", text) and not re.search(r"[][,!\s]", text):
        fits = re.compile(translate(text)).match
        return lambda value: bool(fits(value))
    try:
        return frozenset(hostlist.expand_hostlist(text)).__contains__
    except Invalid as error:
        raise Invalid(f"{error}; for a pattern write node=~REGEX") from None


def _quote_short(text: str) -> str:
    return repr(shortened(text, 60))


ALERT_FACTS: Mapping[str, Callable[[Alert], str]] = {
    "severity": lambda a: a.severity.value,
    "status": lambda a: a.status.value,
    "check": lambda a: a.key.check,
    "kind": lambda a: a.kind,
    "cluster": lambda a: a.key.cluster,
    "subject": lambda a: a.key.subject,
    "node": lambda a: a.labels.get("node", ""),
    "user": lambda a: a.labels.get("user", ""),
    "partition": lambda a: a.labels.get("partition", ""),
    "job": lambda a: a.labels.get("job", ""),
}


def matches_alert(match: Match, alert: Alert) -> bool | None:
    """Whether every given key matches. None if a pattern did not finish in time.

    A word that cannot be parsed matches nothing. The check of the configuration reports it to its
    author, and it never keeps an alert from being sent.
    """
    unsure = False
    for fit in _fits_of(match, alert):
        if fit is False:
            return False
        unsure = unsure or fit is None
    return None if unsure else True


def _fits_of(match: Match, alert: Alert) -> Iterator[bool | None]:
    for key, fact in ALERT_FACTS.items():
        if (want := getattr(match, key)) is not None:
            yield fits_words(key, want, fact(alert))
    for name, want in match.labels.items():
        yield fits_words(name, want, label_value(alert, name))
    for text in match.matchers:
        found = _cached_matchers(text)
        yield found is not None
        yield from (fits_words(m.name, m.word, label_value(alert, m.name)) for m in found or ())


def label_value(alert: Alert, name: str) -> str:
    """The value of an alert's own field or label with this name. Empty if it has none."""
    fact = ALERT_FACTS.get(name)
    return fact(alert) if fact else alert.labels.get(name, "")


def fits_words(name: str, want: str | list[str], have: str) -> bool | None:
    """Whether any of the words matches, and none of those with != or !~.

    If a label is a list, one matching name is enough. None if a pattern did not finish in time.
    """
    words = [_cached_word(name, text) for text in ([want] if isinstance(want, str) else want)]
    wanted = [w for w in words if not w.negated]
    try:
        if any(w.negated and _hits_value(name, w, have) for w in words) or not words:
            return False
        return not wanted or any(_hits_value(name, w, have) for w in wanted)
    except CannotTell as error:
        _log_bad_word(str(error))
        return None


@lru_cache(maxsize=256)
def _log_bad_word(error: str) -> None:
    """Log a bad word once per pattern. Each pattern is applied to every alert of every pass."""
    logging.getLogger("sentinel").warning(
        "%s; until then it mutes no alert, and a route with it takes each", error
    )


def _hits_value(name: str, one: ParsedWord, have: str) -> bool:
    return any(one.hits(value) for value in (have.split(",") if name in LIST_LABELS else (have,)))


def is_wide(match: Match) -> bool:
    """Whether it matches an alert that has none of the named labels, as `node!=gpu-1` matches every
    alert without a node.

    Alertmanager refuses such a silence ("at least one matcher must not match the empty string").
    """
    given = {name: want for name in ALERT_FACTS if (want := getattr(match, name)) is not None}
    whole = [m for text in match.matchers for m in _cached_matchers(text) or ()]
    words = [*given.items(), *match.labels.items(), *((m.name, m.word) for m in whole)]
    return all(fits_words(name, want, "") for name, want in words)


@lru_cache(maxsize=4096)
def _cached_matchers(text: str) -> tuple[Matcher, ...] | None:
    try:
        return tuple(parse_matchers(text))
    except Invalid:
        return None


@lru_cache(maxsize=4096)
def _cached_word(name: str, text: str) -> ParsedWord:
    try:
        return parse_word(name, text)
    except Invalid:
        return ParsedWord(negated=False, hits=lambda _: False)
