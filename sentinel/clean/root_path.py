"""Opens the root, without following any link on the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from shlex import quote

from sentinel.clean.removal_doubts import is_renamable_only

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PASSED_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RemovalRefused(Exception):
    """The reason why nothing is done, in one line."""


def open_root(steps: Sequence[str]) -> int:
    """Open the last directory of a path for reading. Those before it need not be readable. Root
    refuses a path on which others could put another directory in place of one, whose files they may
    not remove themselves. Raises RemovalRefused."""
    fd = os.open("/", _PASSED_FLAGS)
    for at, step in enumerate(steps):
        reached = "/" + "/".join(steps[: at + 1])
        try:
            below = os.open(
                step, FOLDER_FLAGS if at + 1 == len(steps) else _PASSED_FLAGS, dir_fd=fd
            )
            if os.getuid() == 0 and is_renamable_only(os.fstat(fd), os.fstat(below)):
                os.close(below)
                raise RemovalRefused(
                    f"others may put another directory in the place of {reached}, whose files they may"
                    f" not remove; `chmod +t {quote(os.path.dirname(reached))}` lets only"
                    " owners rename"
                )
        except OSError as error:
            with suppress(OSError):
                if stat.S_ISLNK(os.stat(step, dir_fd=fd, follow_symlinks=False).st_mode):
                    raise RemovalRefused(f"{reached} is a link; name what it leads to") from None
            raise RemovalRefused(f"{reached}: {error.strerror}") from None
        finally:
            os.close(fd)
        fd = below
    return fd
