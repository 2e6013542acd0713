"""Whether a directory is on a disk of this host, where SQLite's write-ahead log is safe."""

from sentinel.proc.mounts import find_mount

# WAL shares memory between processes of one host (https://sqlite.org/wal.html), so only
# file systems that are known to belong to one host qualify; any other gets the journal.
LOCAL_FILE_SYSTEMS = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay"}
LOCAL_FILE_SYSTEMS |= {"ramfs", "reiserfs", "tmpfs", "xfs", "zfs"}

# They write a page of a mapped file to a new place, which on a full disk or over a quota ends the
# process with SIGBUS; the log's shared memory is such a file.
COPY_ON_WRITE_FILE_SYSTEMS = {"bcachefs", "btrfs", "zfs"}


def is_on_local_disk(directory: str) -> bool:
    """False too where it cannot be told."""
    try:
        mount = find_mount(directory)
    except (OSError, ValueError):
        return False
    return mount is not None and mount.type in LOCAL_FILE_SYSTEMS


def is_copy_on_write(directory: str) -> bool:
    """Whether it lies on a file system that copies on write; False too where it cannot be told."""
    try:
        mount = find_mount(directory)
    except (OSError, ValueError):
        return False
    return mount is not None and mount.type in COPY_ON_WRITE_FILE_SYSTEMS
