"""The mount table of this process, for everyone who asks where a path leads."""

import os

from sentinel.core.mounts import Mount, Mounts, parse

TABLE = "/proc/self/mountinfo"


def mounts() -> Mounts:
    """Raises OSError where it cannot be read and ValueError where it is none."""
    with open(TABLE, "rb") as file:
        return parse(file.read())


def holding(path: str) -> Mount | None:
    """The mount that this path leads into, links followed; raises as `mounts` does."""
    return mounts().holding(os.path.realpath(path))
