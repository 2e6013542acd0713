"""Everything that is wrong with a configuration, collected and told at once."""

from collections.abc import Callable, Iterable
from typing import NoReturn

from msgspec import Struct

from sentinel.config.near_misses import _SHORTEST_HIDDEN, _WORD
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible

Path = tuple[str | int, ...]


class Problem(Struct, frozen=True, order=True):
    """One thing that is wrong, and where; line 0 and empty texts mean that there is none."""

    file: str  # Path of the file.
    line: int  # Line in the file.
    path: str  # Path of the key, as `checks.scratch.crit`.
    message: str  # What is wrong.

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(part for part in (place, self.path, self.message) if part)


class ConfigError(SentinelError):
    """The configuration cannot be used. Its text is one line for each of `problems`.

    `exit_code` is EX_CONFIG of sysexits(3).
    """

    exit_code = 78

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(map(str, self.problems)))


class UnfitKind(SentinelError):
    """A class, or its file, is no kind that can be used; the text says why."""


class BadOptions(ConfigError):
    """The same about the command line; `exit_code` is EX_USAGE of sysexits(3)."""

    exit_code = 64


class ProblemCollector:
    """Gathers errors and warnings of one file; `show` writes a path as its reader knows it."""

    def __init__(
        self,
        file: str = "",
        show: Callable[[Path], str] | None = None,
        error: type[ConfigError] = ConfigError,
    ) -> None:
        self.file = visible(file)
        self._show, self._error = show or dotted_path, error
        self._errors: list[tuple[int, Path, str]] = []
        self._warnings: list[tuple[int, Path, str]] = []
        self._hidden: set[str] = set()

    def add_error(self, line: int, path: Path, message: str) -> None:
        """Record an error. The message may contain unchecked text."""
        self._errors.append((line, path, message))

    def refuse_file(self, line: int, message: str) -> NoReturn:
        """Raise ConfigError with this error and the earlier ones, because the rest of the file
        cannot be checked."""
        self.add_error(line, (), message)
        raise self._config_error()

    def add_warning(self, line: int, path: Path, message: str) -> None:
        """Record a warning: something that works, but is probably a mistake."""
        self._warnings.append((line, path, message))

    def hide_secret(self, secret: str) -> None:
        """Hide this text in all messages."""
        if len(secret) >= _SHORTEST_HIDDEN:
            self._hidden.add(secret)

    def mark_point(self) -> tuple[int, int]:
        """A point to `rewind_to` to when one of several readings has failed."""
        return len(self._errors), len(self._warnings)

    def rewind_to(self, mark: tuple[int, int]) -> None:
        """Forget the problems that were recorded since then."""
        del self._errors[mark[0] :], self._warnings[mark[1] :]

    def list_warnings(self) -> tuple[Problem, ...]:
        """The warnings in the order of their lines."""
        return tuple(sorted({self._make_problem(*w) for w in self._warnings}))

    def raise_if_errors(self) -> None:
        """Raise ConfigError (or what takes its place) if any error was collected."""
        if self._errors:
            raise self._config_error()

    def _config_error(self) -> ConfigError:
        """The error; raises BeingReplaced if half an installation may be to blame."""
        from sentinel.proc.installation import require_settled_package  # only for a wrong file

        require_settled_package()
        return self._error({self._make_problem(*e) for e in self._errors})

    def _make_problem(self, line: int, path: Path, message: str) -> Problem:
        for secret in sorted(self._hidden, key=len, reverse=True):
            message = message.replace(secret, "***").replace(repr(secret)[1:-1], "***")
        return Problem(self.file, line, visible(self._show(path)), visible(message))


def dotted_path(path: Path) -> str:
    """`checks.scratch.paths[0]`; names that hold more than word characters are quoted."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + (step if _WORD.fullmatch(step) else f'"{step}"')
    return text
