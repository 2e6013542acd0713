"""Reads the output of a site's own tool (idrquota, VAST, Weka, NetApp): JSON, or by a pattern with
named groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sentinel.checks.quota.tools.quota import (
    UNLIMITED,
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
    unread_row,
)
from sentinel.core.errors import Invalid
from sentinel.core.patterns import compile_by_line
from sentinel.core.struct_types import convert_value
from sentinel.core.values import Size

GROUPS = ("name", "used", "limit", "soft", "entries", "entries_limit", "percent")
"""Names that the groups of a pattern may have. Sizes may have a unit; without one they are
bytes."""


class CommandRow(Struct, frozen=True, kw_only=True):
    """One object of the JSON form. Unknown keys are ignored, so the tool may print more."""

    used_bytes: int
    """Bytes."""
    limit_bytes: int | None = 0
    """Bytes; null, 0 and -1 are no limit."""
    soft_bytes: int | None = 0
    """Bytes, as `limit_bytes`."""
    grace_seconds: float | None = None
    """Seconds until the soft limit becomes a hard one."""
    entries: int | None = None
    """Files and directories."""
    entries_limit: int | None = 0
    """How many of them, as `limit_bytes`."""
    name: str | None = ""
    """The user, group or project of the quota."""


_LIMITS = ("limit_bytes", "soft_bytes", "entries_limit")


def from_json(text: str) -> list[QuotaRow]:
    """The quotas in the JSON: one object or a list of them, as `CommandRow` describes. Raises
    UnexpectedQuotaOutput if none can be read; a single bad one becomes an unread row."""
    try:
        given = msgspec.json.decode(text.encode(), type=dict[str, Any] | list[dict[str, Any]])
        rows = given if isinstance(given, list) else [given]
        found = [_json_row(row) for row in rows]
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UnexpectedQuotaOutput(f"{text.strip()[:120]} ({error})") from None
    if not any(name in row for row in rows for name in _LIMITS):
        raise UnexpectedQuotaOutput(f"{text.strip()[:120]} (it names no limit; 0 or null is none)")
    if all(row.unread for row in found) and found:
        raise UnexpectedQuotaOutput(f"{text.strip()[:120]} ({found[0].unread})")
    return found


def _json_row(row: Mapping[str, Any]) -> QuotaRow:
    """The quota in an object. Whole numbers may be written as floats (9.6e12)."""
    try:
        whole = {
            key: int(value) if isinstance(value, float) and value.is_integer() else value
            for key, value in row.items()
        }
        return _quota(convert_value(whole, CommandRow))
    except (msgspec.ValidationError, UnexpectedQuotaOutput) as error:
        name = row.get("name")
        return unread_row("command", name if isinstance(name, str) else "", str(error))


def from_text(text: str, pattern: re.Pattern[str]) -> list[QuotaRow]:
    """A quota for every match of the pattern, in which ^ and $ mean lines. Raises
    UnexpectedQuotaOutput if none can be read; a single bad one becomes an unread row, and so does a
    row like a matched one that does not match."""
    by_line = compile_by_line(pattern)
    matches = [*by_line.finditer(text)]
    found = [_text_row(match) for match in matches]
    if all(row.unread for row in found):
        raise UnexpectedQuotaOutput(found[0].unread if found else text or "nothing at all")
    left = _rows_left_out(text, matches, by_line)
    return [*found, *(unread_row("command", name, line) for name, line in left)]


def _rows_left_out(
    text: str, matches: Sequence[re.Match[str]], pattern: re.Pattern[str]
) -> Iterator[tuple[str, str]]:
    """Name and line of each row that is like a matched one, with numbers in the same columns, and
    does not match. A row that the pattern leaves out on purpose, by its name or file system, would
    match with the words that the matched one has before its first number."""
    name = (matches[0].groupdict().get("name") or "").strip()
    begin = text.rfind("\n", 0, matches[0].start()) + 1
    first = text[begin:].split("\n", 1)[0]
    sample = _columns(first)
    numbers = [i for i, word in enumerate(sample) if _is_number(word)]
    if name not in sample or not numbers or "\n" in matches[0][0]:
        return
    at, head = sample.index(name), _split_at(first, numbers[0])[0]
    covered = {m.start() for m in matches}
    position = 0
    for line in text.split("\n"):
        words, span = _columns(line), range(position, position + len(line) + 1)
        position = span.stop
        if len(words) != len(sample) or not covered.isdisjoint(span):
            continue
        wrong = sum(not _is_number(words[i]) for i in numbers)
        parts = re.split(r"(\s+)", _split_at(line, numbers[0])[1])
        renamed = head + "".join(name if part == words[at] else part for part in parts)
        if wrong <= 1 and wrong < len(numbers) and not pattern.search(renamed):
            yield words[at], line


def _split_at(line: str, count: int) -> tuple[str, str]:
    """The line up to the end of so many of its columns, and the rest."""
    end = 0
    for word in _columns(line)[:count]:
        end = line.index(word, end) + len(word)
    return line[:end], line[end:]


def _columns(line: str) -> list[str]:
    """The words of a row, without marks that stand alone, such as a star."""
    return [word for word in line.split() if re.search(r"\w|-", word)]


def _is_number(word: str) -> bool:
    return bool(re.fullmatch(r"\d[\d.,]*[A-Za-z%]{0,4}\W?", word)) or word.lower() in UNLIMITED


def _text_row(match: re.Match[str]) -> QuotaRow:
    try:
        return _matched(match)
    except UnexpectedQuotaOutput:
        name = (match.groupdict().get("name") or "").strip()
        return unread_row("command", name, match[0])


def refuse(pattern: re.Pattern[str]) -> None:
    """Raise Invalid for a pattern that lacks the necessary groups."""
    names = set(pattern.groupindex)
    if unknown := sorted(names - set(GROUPS)):
        known = ", ".join(GROUPS)
        raise Invalid(f"there is no group {unknown[0]!r}; known: {known}", "pattern")
    if "percent" not in names and not {"used", "limit"} <= names:
        raise Invalid("needs the groups (?P<used>…) and (?P<limit>…), or (?P<percent>…)", "pattern")


def _quota(row: CommandRow) -> QuotaRow:
    if min(row.used_bytes, row.entries or 0) < 0:  # tools print -1 for an unknown value
        raise UnexpectedQuotaOutput(f"a negative number: {row.used_bytes}, {row.entries}")
    space = QuotaAmount(
        used=row.used_bytes,
        soft=_json_limit(row.soft_bytes),
        hard=_json_limit(row.limit_bytes),
        grace=row.grace_seconds,
    )
    files = None
    if row.entries is not None:
        files = QuotaAmount(used=row.entries, hard=_json_limit(row.entries_limit))
    return QuotaRow(kind="command", name=row.name or "", space=space, entries=files)


def _json_limit(number: int | None) -> int:
    """The limit; 0 (none) for null and -1. Raises UnexpectedQuotaOutput for another negative
    number."""
    if number in (None, -1):
        return 0
    if number is None or number < 0:
        raise UnexpectedQuotaOutput(f"a negative limit: {number}")
    return number


def _matched(match: re.Match[str]) -> QuotaRow:
    words = {name: text.strip() for name, text in match.groupdict().items() if text}
    share = None
    if "percent" in words and "limit" not in words:
        share, space = _percentage(words["percent"]), QuotaAmount(used=0)
    else:
        used = _bytes(words.get("used", "0"))
        space = QuotaAmount(used=used, hard=_limit(words, "limit"), soft=_limit(words, "soft"))
    files = None
    if "entries" in words:
        files = QuotaAmount(
            used=_count(words["entries"]), hard=_limit(words, "entries_limit", _count)
        )
    name = words.get("name", "")
    return QuotaRow(kind="command", name=name, space=space, entries=files, share=share)


def tells_shares_alone(pattern: re.Pattern[str]) -> bool:
    """Whether no match of the pattern can say how many bytes are left."""
    return "limit" not in pattern.groupindex


def missing_rows(text: str, names: Iterable[str], found: Sequence[QuotaRow]) -> list[str]:
    """Names that are still in the text as a word, but for which the pattern finds no row."""
    there = {quota.name for quota in found}
    gone = [name for name in names if name and name not in there]
    return [name for name in gone if re.search(rf"(?<!\S){re.escape(name)}(?!\S)", text)]


def _limit(words: Mapping[str, str], name: str, read: Callable[[str], int] | None = None) -> int:
    """The limit; `unlimited`, `none` and `-` mean no limit, as in the known tools."""
    word = words.get(name, "0")
    return 0 if word.lower() in UNLIMITED else (read or _bytes)(word)


def _count(word: str) -> int:
    """How many files: a letter is a thousand or a power of it, as in `1.00M` of NERSC's showquota and
    `1000k` of quota(1)."""
    letter = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMGTP])\*?", word)
    if not letter:
        return _bytes(word)
    return round(float(letter[1]) * 10.0 ** (3 * "KMGTP".index(letter[2].upper()) + 3))


def _percentage(word: str) -> float:
    try:
        share = float(word.removesuffix("*").removesuffix("%"))
    except ValueError:
        raise UnexpectedQuotaOutput(word) from None
    if not 0 <= share < 1e6:  # this also excludes nan and inf
        raise UnexpectedQuotaOutput(word)
    return share


def _bytes(word: str) -> int:
    """Bytes of a number, plain or with a unit: `2.3TB`, `40T` and `40TiB` (a letter alone is
    2^10n). A comma separates thousands; if it cannot, it may be a decimal one, so the number is
    refused."""
    if "," in word and not re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?\D*", word):
        raise UnexpectedQuotaOutput(word)
    clean = word.replace(",", "").strip().removesuffix("*")
    try:
        if clean.isdigit():
            return int(clean)
        letter = re.fullmatch(r"([\d.]+)\s*([KMGTPE])", clean, re.I)
        return Size.parse(f"{letter[1]}{letter[2].upper()}iB" if letter else clean)
    except Invalid as error:
        raise UnexpectedQuotaOutput(f"{word} ({error})") from None
