"""What links and files named `latest` lead to: a run begins there again, however old it is."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

NAME, LONGEST = "latest", 256
"""Beginning of the name, and bytes, of a file whose text names an entry: `latest` (DeepSpeed),
`latest_checkpointed_iteration.txt` (Megatron-LM)."""


def pointers(fd: int, path: str) -> set[str]:
    """Names, or numbers, of entries of an open directory that something in it leads to."""
    with os.scandir(fd) as found:
        rows = [(e.name, e.is_symlink()) for e in found]
    texts = {_led_to(fd, path, name) for name, link in rows if link}
    texts |= {_text(fd, name) for name, link in rows if not link and name.startswith(NAME)}
    return texts - {""}


def _led_to(fd: int, path: str, link: str) -> str:
    """The entry that a link leads to or into, by its text alone: following it may hang."""
    with suppress(OSError):
        leads = os.path.join(path, os.readlink(link, dir_fd=fd))
        return os.path.relpath(os.path.normpath(leads), path).partition("/")[0]
    return ""


def _text(fd: int, name: str) -> str:
    with suppress(OSError):
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=fd)
        try:
            if stat.S_ISREG(os.fstat(file).st_mode):
                return os.fsdecode(os.read(file, LONGEST)).strip()
        finally:
            os.close(file)
    return ""
