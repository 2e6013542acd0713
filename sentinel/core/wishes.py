"""What users ask of sentinel about their own jobs when they submit them: the grammar of wishes. Pure.

A wish is text of a user. It changes only messages to its author; it names no path and no recipient.
Each word stands by itself: a refused one is reported to its author, and the others are followed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from sentinel.core.cluster import MAX_WISH_CHARS, WISH_MARK
from sentinel.core.errors import Invalid
from sentinel.core.patterns import compile_pattern
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, duration_text

SCRIPT_MARK = "#SENTINEL"
"""A line of a batch script that begins with it holds a wish."""

MAX_PATTERN_CHARS = 256
_TOO_LONG_PATTERN = f"progress= is longer than {MAX_PATTERN_CHARS} characters"
MIN_STALE_S, MAX_STALE_S = 60.0, 7 * 86400.0
MAX_SCRIPT_BYTES = 4 << 20
"""Slurm's default for max_script_size (slurm.conf(5)); no more of a script is read."""

WISH_WORDS = ("off", "stale=", "progress=")
"""All words of the grammar; docs/wishes.md has the table."""

MAX_REASONS = 3
"""Reasons of refusals that are kept of one wish."""

_SHOWN_CHARS = 60


class Wish(Struct, frozen=True):
    """The words of a wish that can be followed, and why the others cannot."""

    off: bool = False  # The author wants no messages about this job.
    stale: float | None = None  # Seconds without progress after which the author is told.
    progress: str = ""  # A regular expression; its first group captures the number that advances.
    refused: tuple[str, ...] = ()  # Why words are not followed, for the author.

    @property
    def is_own_watch(self) -> bool:
        """Whether the author is told of a standstill by limits of their own."""
        return self.stale is not None or bool(self.progress)


def is_wish(text: str) -> bool:
    """Whether a job's comment is a wish."""
    return text.lstrip()[: len(WISH_MARK)].lower() == WISH_MARK


@lru_cache(maxsize=1 << 14)  # 10,000 jobs with a text of their own each are parsed once
def parse_wish(text: str) -> Wish | None:
    """The wish in a job's comment. None if the comment is no wish. The pattern is not compiled here,
    because that takes time that its author has to pay for: see `refuse_pattern`."""
    return parse_words(text.lstrip()[len(WISH_MARK) :]) if is_wish(text) else None


def parse_words(text: str) -> Wish:
    """The wish in the words behind a mark."""
    if len(text) > MAX_WISH_CHARS:
        return Wish(refused=(f"is longer than {MAX_WISH_CHARS} characters",))
    found: dict[str, str] = {}
    refused: list[str] = []
    for name, value in _split_words(text):
        why = _refuse_word(name, value) or (f"{name} is there twice" if name in found else "")
        if why:
            refused.append(why)
        else:
            found[name] = value
    if not found and not refused:
        refused.append(f"asks for nothing; the words are {', '.join(WISH_WORDS)}")
    return Wish(
        off="off" in found,
        stale=float(Duration.parse(found["stale="])) if "stale=" in found else None,
        progress=found.get("progress=", ""),
        refused=tuple(refused[:MAX_REASONS]),
    )


def refuse_pattern(text: str) -> str:
    """Why a pattern cannot be used; empty if it can. This compiles it, unless it is too long."""
    if len(text) > MAX_PATTERN_CHARS:
        return _TOO_LONG_PATTERN
    try:
        pattern = compile_pattern(text)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        return f"progress={_quote_word(text)} is no regular expression: {visible(str(error))}"
    if not pattern.groups:
        return (
            f"progress={_quote_word(text)} captures nothing; put the number in a group, as (\\d+)"
        )
    return ""


def find_script_words(script: bytes) -> str | None:
    """The words of the `#SENTINEL` line of a batch script; None if there is none.

    As with `#SBATCH`, only lines before the first command count. Raises Invalid if there are
    several."""
    found = [
        line[len(SCRIPT_MARK) :] for line in script_head(script) if _is_marked(line, SCRIPT_MARK)
    ]
    if len(found) > 1:
        raise Invalid(f"has {len(found)} lines that begin with {SCRIPT_MARK}; one may")
    return found[0].strip() if found else None


def script_head(script: bytes) -> Iterator[str]:
    """The lines of a batch script before its first command, as sbatch reads them."""
    for line in script[:MAX_SCRIPT_BYTES].decode("utf-8", "backslashreplace").split("\n"):
        if line.strip() and not line.startswith("#"):
            return
        yield line.rstrip("\r")


def _is_marked(line: str, mark: str) -> bool:
    return line.startswith(mark) and line[len(mark) : len(mark) + 1] in ("", " ", "\t")


def _split_words(text: str) -> Iterator[tuple[str, str]]:
    """Each word as its name and value. The name of a value ends with `=`. A quote that is not
    closed makes a name of its own, which nobody knows."""
    at, end = 0, len(text)
    while at < end:
        if text[at].isspace():
            at += 1
            continue
        start = at
        while at < end and not text[at].isspace() and text[at] != "=":
            at += 1
        name = text[start:at]
        if at == end or text[at].isspace():
            yield name, ""
            continue
        at += 1
        quote = text[at : at + 1]
        if quote not in ('"', "'") or not quote:
            start = at
            while at < end and not text[at].isspace():
                at += 1
            yield f"{name}=", text[start:at]
            continue
        value, at = _read_quoted(text, at + 1, quote)
        if at > end or (at < end and not text[at].isspace()):
            yield f"{name}={quote}", value
            return
        yield f"{name}=", value


def _read_quoted(text: str, at: int, quote: str) -> tuple[str, int]:
    """A value up to its closing quote, and the place behind it; beyond the end if there is none.
    A backslash stays, because patterns need it, unless it stands before the quote."""
    value: list[str] = []
    while at < len(text):
        if text[at] == quote:
            return "".join(value), at + 1
        if text[at] == "\\" and text[at + 1 : at + 2]:
            value.append(quote if text[at + 1] == quote else text[at : at + 2])
            at += 2
            continue
        value.append(text[at])
        at += 1
    return "".join(value), len(text) + 1


def _refuse_word(name: str, value: str) -> str:
    """Why a word is not followed; empty if it is."""
    if name[-1:] in ('"', "'") and "=" in name:
        return f"{_quote_word(name + value)}: close the quote, and write a blank behind it"
    if name not in WISH_WORDS:
        return f"{_quote_word(name + value)} is none of {', '.join(WISH_WORDS)}"
    if name == "stale=":
        return _refuse_stale(value)
    if name == "progress=" and not value:
        return "progress= has no pattern"
    if name == "progress=" and len(value) > MAX_PATTERN_CHARS:
        return _TOO_LONG_PATTERN
    return ""


def _refuse_stale(value: str) -> str:
    try:
        seconds = Duration.parse(value)
    except Invalid:
        return f"stale={_quote_word(value)} is no duration; write it like 15m or 2h"
    if not MIN_STALE_S <= seconds <= MAX_STALE_S:
        bounds = f"{duration_text(MIN_STALE_S)} to {duration_text(MAX_STALE_S)}"
        return f"stale={_quote_word(value)} is not within {bounds}"
    return ""


def _quote_word(text: str) -> str:
    return shortened(visible(text[: _SHOWN_CHARS + 1]), _SHOWN_CHARS)
