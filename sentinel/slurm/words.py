"""Reads the words that any of Slurm's commands prints: texts, times, counts."""

import pwd
import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator
from os import urandom
from typing import Generic, TypeVar

from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import cut_line, decode_document

Meaning = TypeVar("Meaning")

UNSET = frozenset(
    {
        b"N/A",
        b"NONE",
        b"None",
        b"Unknown",
        b"UNLIMITED",
        b"INFINITE",
        b"infinite",
        b"NOT_SET",
        b"INVALID",
        b"",
    }
)
"""Words that Slurm prints for no value; `infinite` is sinfo's."""

MAX_NUMBER, MAX_SHORT_NUMBER = 0xFFFFFFF0, 0xFFF0
"""MAX_VAL and MAX_VAL16 of slurm/slurm.h. A number that is not below them stands for no number:
NO_VAL (4294967294), INFINITE, NO_VAL64, NO_VAL16 and so on."""

MAX_ARGUMENT_BYTES = 2**16
"""The longest list in one argument of a command. Linux takes 128 KiB (MAX_ARG_STRLEN), also from a
remote shell, for which ssh's arguments are quoted."""

_TIME_LIMIT_PATTERN = lazy_pattern(rb"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")


class WordMemo(dict[bytes, Meaning], Generic[Meaning]):
    """The meaning of each piece of output, computed once: most jobs share most of their words."""

    def __init__(self, read: Callable[[bytes], Meaning]) -> None:
        self._read = read

    def __missing__(self, raw: bytes) -> Meaning:
        meaning = self[raw] = self._read(raw)
        return meaning


def make_nonce() -> str:
    """64 random bits in twelve characters that no option of Slurm takes for syntax.

    A user who fills a name of 1,000 characters with guesses is right once in 10^16 passes.
    """
    return "x" + b2a_base64(urandom(8), newline=False).rstrip(b"=").decode("ascii")


def split_arguments(words: Iterable[str]) -> list[tuple[str, ...]]:
    """The words in order, in lists that fit into one argument each."""
    lists: list[tuple[str, ...]] = []
    room = 0
    for word in sorted(words):
        size = len(word.encode("utf-8", "backslashreplace")) + 4 * word.count("'") + 1
        if not lists or size > room:
            lists.append(())
            room = MAX_ARGUMENT_BYTES
        lists[-1] += (word,)
        room -= size
    return lists


def decode_text(raw: bytes) -> str:
    """A field as text: UTF-8, with other bytes as `\\xff`; it never fails. A field that is longer
    than Slurm accepts is cut (`sentinel.core.long_lines`)."""
    return cut_line(raw.decode("utf-8", "backslashreplace"))


def decode_optional_text(raw: bytes) -> str:
    """Like `decode_text`, but empty for the text that C prints for a missing string."""
    return "" if raw in (b"(null)", b"N/A") else decode_text(raw)


def decode_list(raw: bytes) -> str:
    """A list of nodes and the like as text, never cut: Slurm accepts 64 KiB and more. Empty if
    Slurm has none."""
    return "" if raw in (b"(null)", b"N/A") else decode_document(raw)


def parse_count(raw: bytes | str, limit: int = MAX_NUMBER) -> int:
    """A number of things, also in units of 1,024 (`1K`, `1.50K`: squeue and sacct print 1,024 nodes
    so).

    0 if Slurm has none, or prints NO_VAL or INFINITE. Raises ValueError if the text is not a
    number."""
    try:
        number = int(raw)
    except ValueError:
        number = _parse_units(raw)
    return number if number < limit else 0


_UNITS = "KMGTP"


def _parse_units(raw: bytes | str) -> int:
    """What convert_num_unit2() of src/common/slurm_protocol_api.c prints from 1,024 on."""
    text = raw if isinstance(raw, str) else raw.decode("ascii", "replace")
    power = _UNITS.find(text[-1:]) + 1 if text else 0
    if not power or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,2})?", text[:-1]):
        raise ValueError(f"{text[:40]!r} is no number")
    return int(float(text[:-1]) * 1024**power)


def parse_epoch(raw: bytes) -> int | None:
    """Seconds since 1970 (SLURM_TIME_FORMAT=%s); None if Slurm has no time. Raises ValueError."""
    number = 0 if raw in UNSET else int(raw)
    return number if 0 < number < MAX_NUMBER else None


def parse_time_limit(raw: bytes) -> int | None:
    """Seconds of a time limit `[[days-]hours:]minutes:seconds`; None without a limit. Raises
    ValueError."""
    if raw in UNSET:
        return None
    match = _TIME_LIMIT_PATTERN.fullmatch(raw)
    if not match:
        raise ValueError(f"{decode_text(raw)!r} is no time limit")
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def count_elements(task: str) -> int:
    """The number of array elements that `%K` stands for: `3`, `0-5,9%2`, `0-100:4`.

    Raises ValueError, also for a list that Slurm cut (`1,3,5,...`): then SLURM_BITSTR_LEN=0 was not
    honoured."""
    if not task:
        return 1
    return sum(map(len, _element_ranges(task)))


def has_element(task: str, number: int) -> bool:
    """Whether `%K` stands for this element too. Raises ValueError as `count_elements` does."""
    return any(number in found for found in _element_ranges(task))


def _element_ranges(task: str) -> Iterator[range]:
    for part in task.partition("%")[0].split(","):
        first, dash, rest = part.partition("-")
        last, _, step = rest.partition(":")
        yield range(int(first), int(last if dash else first) + 1, int(step or 1))


def find_uid(name: str) -> int | None:
    """The uid of a user by name or number; None if this host does not know the name."""
    try:
        return int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid
    except KeyError:
        return None
