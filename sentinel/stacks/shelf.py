"""Lists the stored evidence of a job, for people who look at it later. bundle.py writes it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from sentinel.core.text import visible_lines

MOST = 5
SIZE = 64 * 1024
"""How many characters of one evidence are read. The odd ranks come first in it."""

_NAME = re.compile(r"job-([0-9_+]+)-([0-9]{8}T[0-9]{6}Z)(-[0-9]+)?")


class KeptStacks(Struct, frozen=True, kw_only=True):
    """The groups of stacks of one moment, as `sentinel stacks` printed them. `at` is in seconds
    UTC."""

    job: str
    at: float
    place: str
    text: str


def list_kept(folder: str, jobs: Iterable[str]) -> list[KeptStacks]:
    """The evidence about these jobs (by number), the newest first, at most MOST. Empty if the
    folder cannot be read."""
    wanted = frozenset(jobs)
    found = [m for name in _folder_names(folder) if (m := _NAME.fullmatch(name)) and m[1] in wanted]
    newest = sorted(found, key=lambda m: (m[2], m[3] or ""), reverse=True)[:MOST]
    return [_read_kept(os.path.join(folder, m[0]), m[1], _stamp_seconds(m[2])) for m in newest]


def _folder_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder) if folder else []
    except OSError:
        return []


def _read_kept(place: str, job: str, at: float) -> KeptStacks:
    try:
        path = os.path.join(place, "stacks.txt")
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            text = file.read(SIZE)
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
    return KeptStacks(job=job, at=at, place=place, text=visible_lines(text).rstrip("\n"))


def _stamp_seconds(stamp: str) -> float:
    try:
        return datetime.strptime(f"{stamp}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
    except ValueError:
        return 0.0
