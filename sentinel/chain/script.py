"""What a script says of itself in lines `#SENTINEL key=value`."""

import re
import shlex
from typing import Literal

from msgspec import Struct

from sentinel.chain.script_schedule import Schedule, of_directory, of_text
from sentinel.core.errors import Invalid

Overlap = Literal["skip", "queue", "allow"]
CatchUp = Literal["once", "none", "all"]
_LINE = re.compile(r"^#SENTINEL[ \t]+(.*)$", re.MULTILINE)
_KEYS: dict[str, tuple[str, ...]] = {
    "schedule": (),
    "overlap": ("skip", "queue", "allow"),
    "catchup": ("once", "none", "all"),
}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""As run-parts(8): what editors and packages leave behind (`x~`, `.x.swp`) is no script."""

_LEFT_BEHIND = ("~", ".bak", ".old", ".orig", ".rpmsave", ".dpkg-old", ".dpkg-dist", ".swp")


class Script(Struct, frozen=True, kw_only=True):
    """A script as it is due: `key` is `cron.daily/backup.slurm`.

    `overlap`: what if the last run is not over; `catchup`: which of the slots missed while
    nothing ran are made up.
    """

    key: str
    schedule: Schedule
    overlap: Overlap = "skip"
    catchup: CatchUp = "once"


def is_script(name: str) -> bool:
    """Whether a file of that name is meant to be run."""
    return bool(NAME.fullmatch(name)) and not name.endswith(_LEFT_BEHIND)


def read_script(key: str, directory: str, text: str) -> Script:
    """A script's own lines, and its directory for what they do not say; raises Invalid."""
    said = _said(text)
    line = said.get("schedule")
    schedule = of_text(line) if line is not None else of_directory(directory)
    return Script(
        key=key,
        schedule=schedule,
        overlap=said.get("overlap", "skip"),  # type: ignore[arg-type]
        catchup=said.get("catchup", "once"),  # type: ignore[arg-type]
    )


def _said(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _LINE.findall(text):
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise Invalid(f"#SENTINEL {line}: {error}") from error
        for word in words:
            found.update([_pair(word)])
    return found


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or key not in _KEYS:
        raise Invalid(f'#SENTINEL knows schedule="…", overlap=…, catchup=…; not {word!r}')
    if _KEYS[key] and value not in _KEYS[key]:
        raise Invalid(f"#SENTINEL {key}={value}: one of {', '.join(_KEYS[key])}")
    return key, value
