"""Everything that is wrong with a configuration, collected and told at once."""

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

from msgspec import Struct

from sentinel.core.errors import SentinelError
from sentinel.core.text import visible

Path = tuple[str | int, ...]

_WORD = re.compile(r"[\w-]+")
_SHORTEST_HIDDEN = 4
"""Blotting out shorter secrets would blot out half of every sentence and tell them by that."""


class Problem(Struct, frozen=True, order=True):
    """One thing that is wrong, and where; line 0 and empty texts mean that there is none."""

    file: str
    line: int
    path: str
    message: str

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
        """Keep an error; the message may hold text that nobody has looked at."""
        self._errors.append((line, path, message))

    def refuse_file(self, line: int, message: str) -> NoReturn:
        """Raise with this error and those that came before: nothing more can be judged."""
        self.add_error(line, (), message)
        raise self._config_error()

    def add_warning(self, line: int, path: Path, message: str) -> None:
        """Keep something that works but is hardly meant so."""
        self._warnings.append((line, path, message))

    def hide_secret(self, secret: str) -> None:
        """No message will show this text, whoever wrote the message."""
        if len(secret) >= _SHORTEST_HIDDEN:
            self._hidden.add(secret)

    def mark_point(self) -> tuple[int, int]:
        """A point to `rewind_to` to when one of several readings has failed."""
        return len(self._errors), len(self._warnings)

    def rewind_to(self, mark: tuple[int, int]) -> None:
        """Forget what was collected since."""
        del self._errors[mark[0] :], self._warnings[mark[1] :]

    def list_warnings(self) -> tuple[Problem, ...]:
        """The warnings in the order of their lines."""
        return tuple(sorted({self._make_problem(*w) for w in self._warnings}))

    def raise_if_errors(self) -> None:
        """Raise ConfigError (or what takes its place) if any error was collected."""
        if self._errors:
            raise self._config_error()

    def _config_error(self) -> ConfigError:
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


# Near misses: which known word was probably meant.


def nearest_word(word: str, known: Iterable[str]) -> str:
    """The known word nearest to this one, or an empty string.

    difflib's own 0.6 takes `remote` for `routes`; 0.7 would leave `evn` without its `env`.
    """
    from difflib import get_close_matches

    lower = {k.lower(): k for k in sorted(known, reverse=True)}
    cutoff = 0.6 if len(word) < 5 else 0.7
    close = get_close_matches(word.lower()[:100], lower, n=1, cutoff=cutoff)
    return lower[close[0]] if close else ""


def did_you_mean(word: str, known: Iterable[str], label: str = "known") -> str:
    """` (did you mean 'fs'?)`, or the list of what there is where nothing is near."""
    names = sorted(known)
    close = nearest_word(word, names)
    if close:
        return f" (did you mean '{close}'?)"
    return f"; {label}: {', '.join(names)}" if names else ""
