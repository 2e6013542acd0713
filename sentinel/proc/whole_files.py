"""Writes files as a whole, and so that no other user's link leads the writer elsewhere."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress


class ForeignLink(OSError):
    """There is a link or a pipe of another user at the path that is to be written."""


def replace_whole_file(
    path: str,
    data: bytes,
    mode: int = 0o600,
    *,
    owner: tuple[int, int] | None = None,
    judge: Callable[[str], None] = lambda _beside: None,
) -> None:
    """Replace the file at this path. Readers see the old file or the new one, also after a crash. A
    link at the path is replaced and not followed.

    `owner`: user and group ids of the new file. `judge` is given the path of the new file before it
    takes the old one's place, and may raise. Raises OSError, and what `judge` raises."""
    from tempfile import mkstemp  # imports random, shutil and compression

    handle, beside = mkstemp(prefix=".sentinel-", suffix=".new", dir=os.path.dirname(path) or ".")
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            # Use the descriptor. Otherwise somebody who can write to the folder could replace the
            # file by a link.
            if owner is not None:
                os.fchown(handle, *owner)
            os.fchmod(handle, mode)
            os.fsync(handle)
        judge(beside)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def write_output_file(path: str, data: bytes) -> None:
    """Write where a person told a command to write.

    A device, a pipe, or a link of root's or the person's own is written to, such as /dev/stdout; a
    file is replaced. Raises OSError, and ForeignLink for a link or a pipe of another user."""
    with suppress(FileNotFoundError):
        there = os.lstat(path)
        kind = {stat.S_IFLNK: "link", stat.S_IFIFO: "pipe"}.get(stat.S_IFMT(there.st_mode))
        if kind and there.st_uid not in (0, os.geteuid()):
            raise ForeignLink(0, f"is somebody else's {kind}", path)
        if not stat.S_ISREG(there.st_mode):
            with open(path, "wb") as file:
                file.write(data)
            return
    replace_whole_file(path, data, 0o666 & ~_read_umask())


def _read_umask() -> int:
    """The umask of this process: permissions that the person denies to others."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
