"""The pages of docs/ as a test reads them: key tables, and the numbers in a text."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from sentinel.core.values import Duration, Share, Size

DOCS = Path(__file__).parents[2] / "docs"
UNIT = r"%|[kMGTPE]i?B\b(?!/)|B\b|(?:\d*(?:ms|[smhdw]))+\b"
NUMBER = re.compile(rf"(?<![\w./-])(\d[\d,]*(?:\.\d+)?)( ?(?:{UNIT}))?")

Number = tuple[str, float]
"""A kind of unit (seconds, bytes, percent, none) and the value in it."""


class Row(NamedTuple):
    """A row of a key table: what its first cell names, its default, the rest of it."""

    keys: list[str]
    default: str | None
    rest: str


def numbers(text: str) -> list[Number]:
    """Every number but zero, in base units, in order: `1m, 95%` is 60 s and 95 %."""
    found = []
    for digits, unit in NUMBER.findall(text):
        plain, unit = digits.replace(",", ""), unit.strip()
        if unit == "%":
            found.append(("%", float(Share.parse(plain + unit))))
        elif unit.endswith("B"):
            found.append(("B", float(Size.parse(plain + unit))))
        elif unit:
            found.append(("s", float(Duration.parse(plain + unit))))
        else:
            found.append(("", float(plain)))
    return [one for one in found if one[1]]


def section(kind: str, kinds: Collection[str]) -> str:
    """What the pages say from each heading that names this kind to the next of another one."""
    found = []
    for path in sorted(DOCS.glob("*.md")):
        about = False
        for part in re.split(r"^(?=#+ )", path.read_text(), flags=re.M):
            head = part.partition("\n")[0]
            named = set(re.findall(r"`(\w+)`", head)) & set(kinds)
            about = kind in named or (about and not named and not head.startswith("# "))
            found += [part] if about else []
    return "".join(found)


def rows(text: str) -> list[Row]:
    """The rows of every table whose first column is headed `key`."""
    found = []
    for head, body in re.findall(r"^(\| key \|.*)\n\|[-| ]+\|\n((?:\|.*\n?)+)", text, re.M):
        columns = cells(head)
        place = columns.index("default") if "default" in columns else None
        for line in body.splitlines():
            first, *others = cells(line)
            default = others.pop(place - 1) if place else None
            first = re.sub(r"`: `", ".", first)  # `crit`: `grace` is a part of crit
            found.append(Row(re.findall(r"`([\w.]+)`", first), default, " ".join(others)))
    return found


def cells(line: str) -> list[str]:
    """A bar inside a cell is escaped."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


WORDS = ("half an", "a|an|each|every|one|last|once a", "two", "three", "four", "five", "six", "seven",
         "eight", "nine", "ten")  # fmt: skip
UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d", "week": "w"}


def spelled(text: str) -> str:
    """A sentence with its numbers in digits: `two minutes` is `2m`, `once a day` is `1d`."""
    units = "|".join(UNITS)
    text = re.sub(r"\btwo and a half\b", "2.5", text).replace("last MiB", "1MiB")
    for number, word in enumerate(WORDS):
        digits = str(number) if number else "0.5"
        text = re.sub(rf"\b(?:{word}) ({units})s?\b", lambda m, d=digits: d + UNITS[m[1]], text)
        if number > 1:
            text = re.sub(rf"\b{word}\b", digits, text)
    text = re.sub(rf"(\d) ({units})s?\b", lambda m: m[1] + UNITS[m[2]], text)
    return re.sub(r"(\d) ([smh])\b", r"\1\2", text)
