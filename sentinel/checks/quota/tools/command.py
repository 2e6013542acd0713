"""Numbers of a site's own tool (idrquota, VAST, Weka, NetApp): JSON, or a pattern with names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from sentinel.checks.quota.tools.quota import (
    UNLIMITED,
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
)
from sentinel.core.errors import Invalid
from sentinel.core.values import Size

GROUPS = ("name", "used", "limit", "soft", "entries", "entries_limit", "percent")
"""Names a pattern may give its groups; sizes with or without a unit, bytes where it has none."""


class CommandRow(Struct, frozen=True, kw_only=True):
    """One object of the JSON form; unknown keys are ignored, so that it may say more."""

    used_bytes: int
    limit_bytes: int = 0
    soft_bytes: int = 0
    grace_seconds: float | None = None
    entries: int | None = None
    entries_limit: int = 0
    name: str = ""


def from_json(text: str) -> list[QuotaRow]:
    """One object or a list of them, as `CommandRow` describes; raises UnexpectedQuotaOutput."""
    try:
        rows = msgspec.json.decode(text.encode(), type=CommandRow | list[CommandRow])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UnexpectedQuotaOutput(f"{text.strip()[:120]} ({error})") from None
    return [_quota(row) for row in (rows if isinstance(rows, list) else [rows])]


def from_text(text: str, pattern: re.Pattern[str]) -> list[QuotaRow]:
    """Every match of the pattern; none at all raises UnexpectedQuotaOutput, since that is no answer."""
    found = [_matched(match) for match in pattern.finditer(text)]
    if not found:
        raise UnexpectedQuotaOutput(text or "nothing at all")
    return found


def refuse(pattern: re.Pattern[str]) -> None:
    """Raises Invalid for a pattern without the numbers that are needed."""
    names = set(pattern.groupindex)
    if unknown := sorted(names - set(GROUPS)):
        known = ", ".join(GROUPS)
        raise Invalid(f"there is no group {unknown[0]!r}; known: {known}", "pattern")
    if "percent" not in names and not {"used", "limit"} <= names:
        raise Invalid("needs the groups (?P<used>…) and (?P<limit>…), or (?P<percent>…)", "pattern")


def _quota(row: CommandRow) -> QuotaRow:
    numbers = (row.used_bytes, row.limit_bytes, row.soft_bytes, row.entries or 0, row.entries_limit)
    if min(numbers) < 0:
        raise UnexpectedQuotaOutput(f"a negative number: {numbers}")
    space = QuotaAmount(
        used=row.used_bytes, soft=row.soft_bytes, hard=row.limit_bytes, grace=row.grace_seconds
    )
    files = None if row.entries is None else QuotaAmount(used=row.entries, hard=row.entries_limit)
    return QuotaRow(kind="command", name=row.name, space=space, entries=files)


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
        files = QuotaAmount(used=_bytes(words["entries"]), hard=_limit(words, "entries_limit"))
    name = words.get("name", "")
    return QuotaRow(kind="command", name=name, space=space, entries=files, share=share)


def tells_shares_alone(pattern: re.Pattern[str]) -> bool:
    """Whether no match of the pattern can say how many bytes are left."""
    return "limit" not in pattern.groupindex


def missing_rows(text: str, names: Iterable[str], found: Sequence[QuotaRow]) -> list[str]:
    """Names that the text still holds as a word, of which the pattern finds no row any more."""
    there = {quota.name for quota in found}
    gone = [name for name in names if name and name not in there]
    return [name for name in gone if re.search(rf"(?<!\S){re.escape(name)}(?!\S)", text)]


def _limit(words: Mapping[str, str], name: str) -> int:
    """`unlimited`, `none` and `-` are no limit, as in the tools that are known."""
    word = words.get(name, "0")
    return 0 if word.lower() in UNLIMITED else _bytes(word)


def _percentage(word: str) -> float:
    try:
        share = float(word.removesuffix("*").removesuffix("%"))
    except ValueError:
        raise UnexpectedQuotaOutput(word) from None
    if not 0 <= share < 1e6:  # nan and inf too
        raise UnexpectedQuotaOutput(word)
    return share


def _bytes(word: str) -> int:
    """Plain digits, or with a unit: `2.3TB`, `40T` and `40TiB` (a letter alone is 2^10n). A comma
    parts thousands; where it cannot, it may be a decimal one, and is not guessed at."""
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
