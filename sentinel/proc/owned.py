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
from sentinel.core.values import duration_text
from sentinel.proc import Done

_SCRIPT = """\
[ -f "$1" ] || exec stat -L -c "::%F" -- "$1"
exec 3<"$1" && stat -L -c "%Y:%u:%U:%F" /proc/self/fd/3 && exec tail -c "$2" <&3
"""
_ABSENT = (b"No such file", b"Not a directory")


class NotSince(CannotTell):
    """The file is from before: what it holds is not what is asked for."""


def tail_of(
    path: str,
    size: int,
    user: str,
    run: Callable[[Sequence[str]], Done],
    since: float | None = None,
) -> str | None:
    """The last bytes as text; None where nothing is. `run` starts a child with LC_ALL=C.

    CannotTell for what is no regular file of that user (a name or uid) or cannot be read.
    `since`: when the job began, seconds UTC. One that was written last before that holds the lines
    of another job with the same output path: NotSince.
    """
    done = run(["/bin/sh", "-c", _SCRIPT, "sentinel", path, str(size)])
    if done.code and any(words in done.err for words in _ABSENT):
        return None
    if done.code:
        why = os.fsdecode(done.err).strip().rpartition(": ")[2]
        raise CannotTell(f"{visible(path)} cannot be read: {shortened(visible(why), 200)}")
    head, _, text = done.out.partition(b"\n")
    written, *owners, kind = os.fsdecode(head).split(":", 3)
    if not kind.startswith("regular") or user not in owners:
        raise CannotTell(f"{visible(path)} is no regular file of {visible(user)}")
    if since is not None and int(written) < int(since):
        before = duration_text(int(since) - int(written))
        raise NotSince(f"no output since it started: last written {before} before that")
    return decoded(text)
