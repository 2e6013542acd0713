"""Reads the mount table of this process."""

import os
from functools import lru_cache

from sentinel.core.mounts import Mount, MountTable, parse_mount_table

TABLE = "/proc/self/mountinfo"

_parse_same_once = lru_cache(maxsize=1)(parse_mount_table)
"""The table seldom changes, and a run of `fs` reads it twice."""


def read_mounts() -> MountTable:
    """The mount table. Raises OSError if it cannot be read, and ValueError if it is not
    understood."""
    with open(TABLE, "rb") as file:
        return _parse_same_once(file.read())


def find_mount(path: str) -> Mount | None:
    """The mount in which this path lies, after following links. Raises as `read_mounts` does."""
    return read_mounts().find_mount(os.path.realpath(path))
