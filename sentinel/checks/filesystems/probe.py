"""Asks about file systems in child processes, several at a time, never two of one path."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from sentinel import proc
from sentinel.checks.filesystems.limits import FORMAT, FileSystemUsage, parse_usage
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible

PARALLEL = 32


class PathAnswer(Struct, frozen=True, kw_only=True):
    """What a path answered: numbers, or an error in the C library's words, or a hang.

    `real` is the path without symbolic links; `waited` the seconds given to a hung one.
    `blind`: why nobody could ask at all.
    """

    usage: FileSystemUsage | None = None
    real: str = ""
    error: str = ""
    blind: str = ""
    hung: bool = False
    waited: float = 0.0
    stuck: proc.StuckProcess | None = None


def probe_path(path: str, limit: float, *, plain: bool = False) -> PathAnswer:
    """Ask one path; returns within the limit and what proc takes to kill a hung child.

    `plain`: the path is known to hold no symbolic link, which saves a second question.
    """
    deadline = time.monotonic() + limit
    try:
        # The slash makes a plain file an error without needing rights inside a directory.
        said = _ask_tool(["stat", "-f", "-c", FORMAT, "--", path.rstrip("/") + "/"], limit)
        real = (
            path
            if plain
            else _ask_tool(["realpath", _plain_word(path)], deadline - time.monotonic())
        )
        return PathAnswer(usage=parse_usage(said), real=real.removesuffix("\n"))
    except proc.TimedOut as late:
        return PathAnswer(hung=True, waited=limit, stuck=late.stuck)
    except _PathRefused as refused:
        return PathAnswer(error=visible(str(refused)))
    except (CannotTell, ValueError) as error:
        return PathAnswer(blind=visible(str(error)))


def real_path(path: str, limit: float) -> str:
    """The path without symbolic links; empty where nobody answers within `limit` seconds."""
    try:
        return _ask_tool(["realpath", _plain_word(path)], limit).removesuffix("\n")
    except CannotTell:
        return ""


def probe_all(
    paths: Iterable[str], limit: float, patience: float, ask: Callable[[str, float], PathAnswer]
) -> Mapping[str, PathAnswer]:
    """Ask all, at most PARALLEL at once, each for `patience` at most, within `limit` in all.

    A path whose turn never came is missing from the result.
    """
    waiting, answers = deque(paths), dict[str, PathAnswer]()
    deadline = time.monotonic() + limit

    def probe_next() -> None:
        while waiting:
            try:
                path = waiting.popleft()
            except IndexError:
                return
            left = deadline - time.monotonic()
            if left < min(patience, 0.1):
                return
            answers[path] = ask(path, min(patience, left))

    _in_threads(probe_next, min(PARALLEL, len(waiting)))
    return dict(answers)


def _in_threads(work: Callable[[], None], count: int) -> None:
    if count <= 1:
        return work()
    from sentinel.proc import threads

    return threads.run_together("fs-probe", work, count)


def _ask_tool(argv: list[str], limit: float) -> str:
    done = proc.run(argv, limit=max(limit, 0.05), max_output=65536)
    if done.code == 0:
        return os.fsdecode(done.out)
    text = os.fsdecode(done.err).strip()
    raise _PathRefused(text.rpartition(": ")[2] or f"{argv[0]} ended with {done.code}")


def _plain_word(path: str) -> str:
    """The path as a word that no tool takes for an option; busybox's realpath knows no `--`."""
    return path if path.startswith("/") else f"./{path}"


class _PathRefused(CannotTell):
    """The file system itself answered with an error."""
