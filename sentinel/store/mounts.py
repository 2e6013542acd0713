"""Whether a directory is on a disk of this host, where SQLite's write-ahead log is safe."""

from sentinel.proc.mounts import holding

# WAL shares memory between processes of one host (https://sqlite.org/wal.html), so only
# file systems that are known to belong to one host qualify; any other gets the journal.
LOCAL = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay"}
LOCAL |= {"ramfs", "reiserfs", "tmpfs", "xfs", "zfs"}

# They write a page of a mapped file to a new place, which on a full disk or over a quota ends the
# process with SIGBUS; the log's shared memory is such a file.
REWRITING = {"bcachefs", "btrfs", "zfs"}


def is_local(directory: str) -> bool:
    """False too where it cannot be told."""
    try:
        mount = holding(directory)
    except (OSError, ValueError):
        return False
    return mount is not None and mount.type in LOCAL


def rewrites(directory: str) -> bool:
    """Whether it lies on a file system that copies on write; False too where it cannot be told."""
    try:
        mount = holding(directory)
    except (OSError, ValueError):
        return False
    return mount is not None and mount.type in REWRITING
