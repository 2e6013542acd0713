"""The words Slurm's commands print, whatever the command: texts, times, counts."""

import re
from binascii import b2a_base64
from collections.abc import Callable
from os import urandom
from typing import Generic, TypeVar

Meaning = TypeVar("Meaning")

UNSET = frozenset({b"N/A", b"NONE", b"None", b"Unknown", b"UNLIMITED", b"NOT_SET", b"INVALID", b""})

MAX_NUMBER, MAX_SHORT_NUMBER = 0xFFFFFFF0, 0xFFF0
"""MAX_VAL and MAX_VAL16 of slurm/slurm.h. What is not below them stands for no number: NO_VAL
(4294967294), INFINITE, NO_VAL64, NO_VAL16 and so on."""

_TIME_LIMIT_PATTERN = re.compile(rb"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")


class WordMemo(dict[bytes, Meaning], Generic[Meaning]):
    """What a piece of output means, worked out once: most jobs share most of their words."""

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


def decode_text(raw: bytes) -> str:
    """UTF-8, and bytes that are not as `\\xff`: nothing is lost, nothing fails."""
    return raw.decode("utf-8", "backslashreplace")


def decode_optional_text(raw: bytes) -> str:
    """As `decode_text`; what C prints for a missing string is an empty one."""
    return "" if raw in (b"(null)", b"N/A") else decode_text(raw)


def parse_count(raw: bytes | str, limit: int = MAX_NUMBER) -> int:
    """A number of things; 0 where Slurm has none, also where it prints NO_VAL or INFINITE. Raises
    ValueError when it is no number."""
    number = int(raw)
    return number if number < limit else 0


def parse_epoch(raw: bytes) -> int | None:
    """Seconds since 1970 (SLURM_TIME_FORMAT=%s); None where Slurm has no time. ValueError."""
    return None if raw in UNSET else parse_count(raw) or None


def parse_time_limit(raw: bytes) -> int | None:
    """A time limit `[[days-]hours:]minutes:seconds`; None without one. ValueError."""
    if raw in UNSET:
        return None
    match = _TIME_LIMIT_PATTERN.fullmatch(raw)
    if not match:
        raise ValueError(f"{decode_text(raw)!r} is no time limit")
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def count_elements(task: str) -> int:
    """How many array elements `%K` stands for: `3`, `0-5,9%2`, `0-100:4`. ValueError.

    A list that Slurm cut (`1,3,5,...`) is refused: SLURM_BITSTR_LEN=0 was not honoured.
    """
    if not task:
        return 1
    return sum(_count_part(part) for part in task.partition("%")[0].split(","))


def _count_part(part: str) -> int:
    first, dash, rest = part.partition("-")
    if not dash:
        int(first)
        return 1
    last, _, step = rest.partition(":")
    return (int(last) - int(first)) // int(step or 1) + 1


def find_uid(name: str) -> int | None:
    """The uid of a user by name or number; None where this host does not know it."""
    import pwd

    try:
        return int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid
    except KeyError:
        return None
