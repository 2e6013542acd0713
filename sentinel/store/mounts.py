"""Whether a directory is on a disk of this host, where SQLite's write-ahead log is safe."""

import os
import re

MOUNTINFO = "/proc/self/mountinfo"  # proc_pid_mountinfo(5)

# WAL shares memory between processes of one host (https://sqlite.org/wal.html), so only
# file systems that are known to belong to one host qualify; any other gets the journal.
LOCAL = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay"}
LOCAL |= {"ramfs", "reiserfs", "tmpfs", "xfs", "zfs"}


def is_local(directory: str) -> bool:
    """False too where it cannot be told."""
    try:
        return type_of(os.path.realpath(directory), mountinfo()) in LOCAL
    except OSError:
        return False


def mountinfo() -> str:
    """The kernel's list of mounts; only newlines end its lines."""
    with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        return file.read()


def type_of(path: str, mountinfo: str) -> str:
    """The file-system type of the mount that holds `path`; empty when none does.

    Of several mounts on one point the last hides the others.
    """
    return mount_of(path, mountinfo)[0]


def mount_of(path: str, mountinfo: str) -> tuple[str, frozenset[str]]:
    """As `type_of`, with the options of mount and file system."""
    best, kind, options = "", "", ""
    for line in filter(None, mountinfo.split("\n")):  # any other control may be part of a name
        fields, _, tail = line.partition(" - ")
        head, end = fields.split(" "), tail.split(" ")
        point = _unescaped(head[4])
        if _holds(point, path) and len(point) >= len(best):
            best, kind, options = point, end[0], f"{head[5]},{end[-1]}"
    return kind, frozenset(options.split(","))


def _holds(point: str, path: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), field)
