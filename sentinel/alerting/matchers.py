"""What a word of a match means: `gpu-[01-16]`, `disk-*`, `!=gpu-1`, `=~gpu-.*`, `"as it is"`. Pure.

Operators, quotes and backslashes are Alertmanager's
(https://prometheus.io/docs/alerting/latest/configuration/#matcher, pkg/labels/parse.go); where
sentinel differs from it is in docs/alerts.md.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache

from msgspec import Struct

from sentinel.alerting.settings import Match
from sentinel.core import hostlist, patterns
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Alert
from sentinel.core.text import shortened

NODE_LABEL = "node"
"""The label that holds names of nodes: there a word is a host list."""

LIST_LABELS = frozenset({"partition"})
"""Labels that hold several names, with commas between them: each is compared by itself. No name of
a partition has a comma (slurm.conf(5), PartitionName)."""

MAX_PATTERN_CHARS = 1000
"""Characters of a regular expression."""

_OPERATOR_PATTERN = re.compile(r"\s*(=~|!~|!=|=)\s*")
_NAME_PATTERN = r'[A-Za-z_:][A-Za-z0-9_:.-]*|"(?:\\.|[^"\\])*"'
_MATCHER_PATTERN = re.compile(rf"\s*({_NAME_PATTERN})\s*((?:=~|!~|!=|=).*?)\s*", re.DOTALL)
_PIECE_PATTERN = re.compile(r'\\.|"(?:\\.|[^"\\])*"|.', re.DOTALL)
_CHARACTER_PATTERN = re.compile(r"\\.|.", re.DOTALL)
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
_SAFE_PATTERN = re.compile(r"[A-Za-z0-9_/.][A-Za-z0-9_/.:@ +-]*")
_NUMERIC_LABELS = re.compile(r"\[[0-9,-]*(?:[0-9]{2}-[0-9]|[0-9]-[0-9]{2}|,)[0-9,-]*\]")


class ParsedWord(Struct, frozen=True):
    """One word, understood: a value fits where `hits(value)` is not `negated`."""

    negated: bool
    hits: Callable[[str], bool]


class Matcher(Struct, frozen=True):
    """A label's name, and the word with its operator: `node` and `=~gpu-.*`."""

    name: str
    word: str


def is_matcher(text: str) -> bool:
    """Whether a name and an operator begin it."""
    return text.lstrip().startswith("{") or bool(_MATCHER_PATTERN.fullmatch(text))


def parse_matchers(text: str) -> list[Matcher]:
    """Those of `node=~"gpu-.*", severity!=warning`, in braces or without; raises Invalid.

    A comma separates two only where a name and an operator follow: `node=gpu[1,3],gpu7` is one.
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
    """What the word means for the label `name`; raises Invalid for what cannot be meant."""
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
    """The word that fits this text only, whatever is in it; for other labels than NODE."""
    if _SAFE_PATTERN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _split_matchers(text: str) -> list[str]:
    """What stands between commas outside of quotes, joined again where no matcher begins."""
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
    """The text in quotes or without, escapes undone; a lone backslash stands for itself."""
    characters: list[str] = _CHARACTER_PATTERN.findall(raw)
    if characters[:1] == ['"']:
        if len(characters) < 2 or characters.pop() != '"':
            raise Invalid(f"{_quote_short(raw)}: the closing quote is missing")
        del characters[0]
    if '"' in characters:
        raise Invalid(f'{_quote_short(raw)}: a quote within a text is written \\"')
    return "".join(_ESCAPES.get(c, c) for c in characters)


def _compile_pattern(text: str) -> Callable[[str], bool]:
    """Fits the whole value or not at all, as in Alertmanager."""
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
    """A host list; or the wildcards * and ?, which no name has; in quotes also none at all."""
    if not text:
        return text.__eq__
    if text == raw and re.search(r"[*?]", text) and not re.search(r"[][,!\s]", text):
        fits = re.compile(translate(text)).match
        return lambda value: bool(fits(value))
    try:
        return frozenset(hostlist.expand_hostlist(text)).__contains__
    except Invalid as error:
        raise Invalid(f"{error}; a pattern is written node=~ and a regular expression") from None


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
    """Whether every key given fits; None: nobody can tell, as a pattern found no end. A word that
    cannot be understood fits nothing: whoever wrote it is told by the configuration's own check,
    and nothing is kept from being told by it."""
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
    """What the alert has under this name, of itself or as a label; empty where it has none."""
    fact = ALERT_FACTS.get(name)
    return fact(alert) if fact else alert.labels.get(name, "")


def fits_words(name: str, want: str | list[str], have: str) -> bool | None:
    """One of the words, and none of those with != or !~. A label that is a list is hit where any
    of its names is. None: a pattern found no end."""
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
    """Once for each pattern: it is asked about every alert of every pass."""
    import logging

    logging.getLogger("sentinel").warning(
        "%s; until then it mutes no alert, and a route with it takes each", error
    )


def _hits_value(name: str, one: ParsedWord, have: str) -> bool:
    return any(one.hits(value) for value in (have.split(",") if name in LIST_LABELS else (have,)))


def is_wide(match: Match) -> bool:
    """Whether it fits what has nothing of all it names, as `node!=gpu-1` fits every alert without
    a node. Alertmanager takes no such silence ("at least one matcher must not match the empty
    string")."""
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
