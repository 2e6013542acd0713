"""Finds out whether a directory is on a disk of this host, where SQLite's write-ahead log is
safe."""

import os

from sentinel.proc.mounts import find_mount

# The write-ahead log shares memory between processes of one host (https://sqlite.org/wal.html), so
# it is used only on file systems of one host; on any other SQLite uses its rollback journal.
LOCAL_FILE_SYSTEMS = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay"}
LOCAL_FILE_SYSTEMS |= {"ramfs", "reiserfs", "tmpfs", "xfs", "zfs"}

MIN_ROOM_BYTES = 2**20
"""An empty state has 190 kB, and SQLite writes all of it twice."""

# These write a changed page of a mapped file to a new place. If the disk is full or the quota
# exceeded, the process is ended with SIGBUS. The shared memory of the log is such a file.
COPY_ON_WRITE_FILE_SYSTEMS = {"bcachefs", "btrfs", "zfs"}


def is_on_local_disk(directory: str) -> bool:
    """Whether the directory is on a disk of this host; False if it cannot be told."""
    try:
        mount = find_mount(directory)
    except (OSError, ValueError):
        return False
    return mount is not None and mount.type in LOCAL_FILE_SYSTEMS


def has_room(path: str) -> bool:
    """Whether a new, empty state fits there. A quota is not seen. Raises OSError."""
    found = os.statvfs(path)
    return bool(found.f_bavail * found.f_frsize >= MIN_ROOM_BYTES)


def is_copy_on_write(directory: str) -> bool:
    """Whether the directory is on a file system that copies on write; False if it cannot be
    told."""
    try:
        mount = find_mount(directory)
    except (OSError, ValueError):
        return False
    return mount is not None and mount.type in COPY_ON_WRITE_FILE_SYSTEMS
