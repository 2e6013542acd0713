"""Asks about file systems in child processes, several at a time, but never two about one path."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from sentinel import proc
from sentinel.checks.filesystems.limits import FORMAT, FileSystemUsage, parse_usage
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import visible

PARALLEL = 32


class PathAnswer(Struct, frozen=True, kw_only=True):
    """The answer of a path: numbers, an error in the C library's words, or a hang.

    `real` is the path without symbolic links. `waited` is how many seconds a hung probe was waited
    for. `blind`: why the path could not be asked at all.
    """

    usage: FileSystemUsage | None = None  # Its numbers.
    real: str = ""
    error: str = ""  # The error text of the C library.
    blind: str = ""
    hung: bool = False  # Whether it did not answer in time.
    waited: float = 0.0
    stuck: proc.StuckProcess | None = None  # The child process that hangs.


def probe_path(path: str, limit: float, *, plain: bool = False) -> PathAnswer:
    """Ask one path. Returns within the limit, plus the time that it takes to kill a hung child.
    `plain`: the path is known to contain no symbolic link, so its real path is not asked for."""
    deadline = time.monotonic() + limit
    try:
        # With the slash, a plain file is an error. No right to read the directory is needed.
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
    """The path without symbolic links. Empty if there is no answer within `limit` seconds."""
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
        return decode_lines(done.out, "surrogateescape")
    text = decode_lines(done.err).strip()
    raise _PathRefused(text.rpartition(": ")[2] or f"{argv[0]} ended with {done.code}")


def _plain_word(path: str) -> str:
    """The path as a word that no tool reads as an option. The realpath of busybox does not know
    `--`."""
    return path if path.startswith("/") else f"./{path}"


class _PathRefused(CannotTell):
    """The file system itself answered with an error."""
