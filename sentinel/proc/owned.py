"""The end of a file that has to be somebody's own: a job names its output itself, and sentinel may
be root.

A child opens it once. Between a look and a second opening the path could be pointed at a file that
only root may read, and that would be mailed around.
"""

import os
from collections.abc import Callable, Sequence

from sentinel.core.errors import CannotTell
from sentinel.core.logtext import decoded
from sentinel.core.text import shortened, visible
from sentinel.proc import Done

_SCRIPT = """\
[ -f "$1" ] || exec stat -L -c "::%F" -- "$1"
exec 3<"$1" && stat -L -c "%u:%U:%F" /proc/self/fd/3 && exec tail -c "$2" <&3
"""
_ABSENT = (b"No such file", b"Not a directory")


def tail_of(path: str, size: int, user: str, run: Callable[[Sequence[str]], Done]) -> str | None:
    """The last bytes as text; None where nothing is. `run` starts a child with LC_ALL=C.

    CannotTell for what is no regular file of that user (a name or uid) or cannot be read.
    """
    done = run(["/bin/sh", "-c", _SCRIPT, "sentinel", path, str(size)])
    if done.code and any(words in done.err for words in _ABSENT):
        return None
    if done.code:
        why = os.fsdecode(done.err).strip().rpartition(": ")[2]
        raise CannotTell(f"{visible(path)} cannot be read: {shortened(visible(why), 200)}")
    head, _, text = done.out.partition(b"\n")
    *owners, kind = os.fsdecode(head).split(":", 2)
    if not kind.startswith("regular") or user not in owners:
        raise CannotTell(f"{visible(path)} is no regular file of {visible(user)}")
    return decoded(text)
