"""Files that a job names itself, while sentinel may be root: only a regular file is ever opened, and
where it has to be somebody's own, only then is it told.

A child finds it once, by O_PATH, and opens what it found. Between a look and a second opening the path
could be pointed at a file that only root may read, and that would be mailed around, or at a device
that does something when it is opened: /dev/watchdog reboots the host (Documentation/watchdog).
"""

import os
import sys
from collections.abc import Callable, Sequence

from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decoded
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.proc import Done

_PROGRAM = """\
import os, pwd, stat, sys
path, start, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
try:
    found = os.open(path, os.O_PATH)
    seen = os.fstat(found)
    try:
        owner = pwd.getpwuid(seen.st_uid).pw_name
    except KeyError:
        owner = ""
    kind = "regular" if stat.S_ISREG(seen.st_mode) else "other"
    head = f"{int(seen.st_mtime)}:{seen.st_uid}:{owner}:{kind}\\n"
    sys.stdout.buffer.write(os.fsencode(head))
    if kind == "regular":
        with open(f"/proc/self/fd/{found}", "rb") as file:
            file.seek(start if start >= 0 else max(0, os.fstat(file.fileno()).st_size - most))
            sys.stdout.buffer.write(file.read(most))
except OSError as error:
    sys.exit(f"{path}: {error.strerror}")
"""
_ABSENT = (b"No such file", b"Not a directory")


class NotSince(CannotTell):
    """The file is from before: what it holds is not what is asked for."""


def part_of(path: str, start: int, most: int) -> list[str]:
    """The command that prints when the file was written (s UTC), its owner's uid and name, and whether
    it is `regular`, on a line; then so many bytes of it, if it is. `start` -1: the last ones."""
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, path, str(start), str(most)]


def tail_of(
    path: str,
    size: int,
    user: str | None,
    run: Callable[[Sequence[str]], Done],
    since: float | None = None,
) -> str | None:
    """The last bytes as text; None where nothing is. `run` starts a child with LC_ALL=C.

    CannotTell for what is no regular file of that user (a name or uid; None: anybody's) or cannot be
    read.
    `since`: when the job began, seconds UTC. One that was written last before that holds the lines
    of another job with the same output path: NotSince.
    """
    done = run(part_of(path, -1, size))
    if done.code and any(words in done.err for words in _ABSENT):
        return None
    if done.code:
        why = os.fsdecode(done.err).strip().rpartition(": ")[2]
        raise CannotTell(f"{visible(path)} cannot be read: {shortened(visible(why), 200)}")
    head, _, text = done.out.partition(b"\n")
    written, *owners, kind = os.fsdecode(head).split(":", 3)
    if kind != "regular" or not (user is None or (user and user in owners)):
        whose = f" of {visible(user)}" if user is not None else ""
        raise CannotTell(f"{visible(path)} is no regular file{whose}")
    if since is not None and int(written) < int(since):
        before = duration_text(int(since) - int(written))
        raise NotSince(f"no output since it started: last written {before} before that")
    return decoded(text)
