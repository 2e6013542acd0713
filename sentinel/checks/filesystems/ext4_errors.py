"""Reads the errors that ext4 has recorded for a file system:
Documentation/ABI/testing/sysfs-fs-ext4 of Linux.

From Linux 6.12 on, an error no longer makes the superblock read-only (commit d3476f3dad4a). The
mount table shows it only from 6.15 on (`emergency_ro`). In between, only these counters show it.
"""

from __future__ import annotations

import os

from msgspec import Struct

SYSFS = "/sys"


class RecordedErrors(Struct, frozen=True):
    """The number of errors since the last fsck, and the time of the last one (seconds UTC)."""

    count: int  # How many errors since the last fsck.
    last: int  # When the last one was, s UTC.


def read_recorded_errors(device: str, sysfs: str = SYSFS) -> RecordedErrors | None:
    """The recorded errors of the file system on that device, `major:minor`. None if there are none."""
    name = os.path.basename(os.path.realpath(f"{sysfs}/dev/block/{device}"))
    folder = f"{sysfs}/fs/ext4/{name}"
    try:
        return RecordedErrors(
            _read_number(f"{folder}/errors_count"), _read_number(f"{folder}/last_error_time")
        )
    except (OSError, ValueError):
        return None


def _read_number(path: str) -> int:
    with open(path, "rb") as file:
        return int(file.read(64))
