"""The mount table of this process, for everyone who asks where a path leads."""

import os

from sentinel.core.mounts import Mount, MountTable, parse_mount_table

TABLE = "/proc/self/mountinfo"


def read_mounts() -> MountTable:
    """Raises OSError where it cannot be read and ValueError where it is none."""
    with open(TABLE, "rb") as file:
        return parse_mount_table(file.read())


def find_mount(path: str) -> Mount | None:
    """The mount that this path leads into, links followed; raises as `read_mounts` does."""
    return read_mounts().find_mount(os.path.realpath(path))
