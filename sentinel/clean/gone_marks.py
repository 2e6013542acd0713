"""The names and the mark of directories whose removal has begun.

Whoever may write a folder can rename directories of other people in it, but can remove nothing in
them. So a name does not prove that a removal has begun, and the next one does not go on without a
mark within the directory."""

import errno
import os
import stat

from sentinel.clean.trackers import OURS

LOOKED = f"{OURS}looked-"
GONE_PREFIX = f"{OURS}gone-"
"""An entry is first renamed to LOOKED. When it is proven to be the checked one, it is renamed to
GONE with a random end. So nobody finds half a checkpoint, and only proven entries are removed
later."""

GONE_MARK = f"{OURS}gone"
"""A link within the directory that names its inode and belongs to who removes."""

UNPROVEN = "no removal has marked it, so somebody may have renamed it: look into it, and rename or remove it"  # fmt: skip


def is_gone_name(name: str) -> bool:
    """Whether a removal gives such names."""
    end = name.removeprefix(GONE_PREFIX)
    return name.startswith(GONE_PREFIX) and len(end) == 16 and set(end) <= set("0123456789abcdef")


def mark_gone(name: str, above: int, found: os.stat_result) -> None:
    """Put the mark into that directory; into nothing else that may have its name by now. Raises OSError.
    A full disk or quota, which is why people remove, may have no room for the mark: if that removal
    does not end, a person has to end it."""
    if not stat.S_ISDIR(found.st_mode):
        return
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        if os.path.samestat(os.fstat(fd), found):
            os.symlink(_make_mark_text(fd), GONE_MARK, dir_fd=fd)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EEXIST):
            raise
    finally:
        os.close(fd)


def has_gone_mark(fd: int) -> bool:
    """Whether an open directory holds the mark of who runs this."""
    try:
        owner = os.stat(GONE_MARK, dir_fd=fd, follow_symlinks=False).st_uid
        return owner == os.geteuid() and os.readlink(GONE_MARK, dir_fd=fd) == _make_mark_text(fd)
    except OSError:
        return False


def _make_mark_text(fd: int) -> str:
    return f"removing-{os.fstat(fd).st_ino}"
