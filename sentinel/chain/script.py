"""Reads the settings in a script's `#SENTINEL key=value` lines."""

import re
import shlex
from collections.abc import Iterator
from datetime import tzinfo
from typing import Literal

from msgspec import Struct

from sentinel.core.cron import Cron, find_next_time, parse_cron
from sentinel.core.cron import iterate_times as cron_slots
from sentinel.core.errors import Invalid
from sentinel.core.values import Duration
from sentinel.core.wishes import script_head

# The name of the script's directory, or a line in it, says when the script is due.


_EVERY_PATTERN = re.compile(r"every-(\d+)(s|sec|m|min|h|hour|hours|d|day|days)")
_UNIT_SECONDS = {"sec": "s", "min": "m", "hour": "h", "hours": "h", "day": "d", "days": "d"}
_NAMED_SCHEDULES = ("hourly", "daily", "weekly", "monthly")
LOOK_BACK_S = 366
"""How many days back the last slot is looked for."""


class ScriptSchedule(Struct, frozen=True):
    """Slots at a fixed number of seconds since 1970, or those of a crontab line in a time zone."""

    text: str
    every: int = 0
    cron: Cron | None = None


def schedule_of_directory(name: str) -> ScriptSchedule:
    """The schedule of `cron.hourly`, `cron.daily`, `cron.weekly`, `cron.monthly` or
    `cron.every-30min`. Raises Invalid for any other name."""
    word = name.removeprefix("cron.")
    if word in _NAMED_SCHEDULES:
        return schedule_of_text(f"@{word}")
    match = _EVERY_PATTERN.fullmatch(word)
    if not match:
        raise Invalid(
            f"{name!r} is no schedule; directories are cron.hourly, cron.daily, cron.weekly, "
            "cron.monthly, or like cron.every-30min"
        )
    seconds = int(Duration.parse(f"{match[1]}{_UNIT_SECONDS.get(match[2], match[2])}"))
    if seconds < 60:
        raise Invalid(f"{name!r}: scripts are submitted once a minute at most")
    return ScriptSchedule(f"every {match[1]}{match[2]}", every=seconds)


def schedule_of_text(text: str) -> ScriptSchedule:
    """The schedule of a crontab line with five fields, or of @daily and the like. Raises Invalid."""
    return ScriptSchedule(text, cron=parse_cron(text))


def iterate_slots(
    schedule: ScriptSchedule, after: float, until: float, zone: tzinfo
) -> Iterator[int]:
    """Every slot (epoch seconds) after `after` and up to `until`, in order."""
    after = max(after, until - LOOK_BACK_S * 86400)
    if schedule.cron is None:
        first = (int(after) // schedule.every + 1) * schedule.every
        yield from range(first, int(until) + 1, schedule.every)
    else:
        yield from cron_slots(schedule.cron, after, until, zone)


def find_next_slot(schedule: ScriptSchedule, after: float, zone: tzinfo) -> int | None:
    """The first slot (epoch seconds) later than `after`."""
    if schedule.cron is None:
        return (int(after) // schedule.every + 1) * schedule.every
    return find_next_time(schedule.cron, after, zone)


Overlap = Literal["skip", "queue", "allow"]
CatchUp = Literal["once", "none", "all"]
_DIRECTIVE_PATTERN = re.compile(r"#SENTINEL[ \t]+(.*)")
_DIRECTIVE_KEYS: dict[str, tuple[str, ...]] = {
    "schedule": (),
    "overlap": ("skip", "queue", "allow"),
    "catchup": ("once", "none", "all"),
}
SCRIPT_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names that run. Like run-parts(8), this leaves out files of editors and packages (`x~`,
`.x.swp`)."""

# Ends of copies, and of what somebody has switched off: run-parts(8) runs no name with a dot.
_LEFT_BEHIND = (".bak", ".old", ".orig", ".swp", ".disabled", ".off")


class CronScript(Struct, frozen=True, kw_only=True):
    """A script with its schedule. `key` is for example `cron.daily/backup.slurm`.

    `overlap` says what to do if the last run has not ended. `catchup` says which missed slots are
    run later.
    """

    key: str
    schedule: ScriptSchedule
    overlap: Overlap = "skip"
    catchup: CatchUp = "once"


def is_script(name: str) -> bool:
    """Whether a file with this name is a script to run."""
    return bool(SCRIPT_NAME_PATTERN.fullmatch(name)) and not name.lower().endswith(_LEFT_BEHIND)


def read_script(key: str, directory: str, text: str) -> CronScript:
    """The script's settings: its own lines before its first command, then the directory's defaults.
    Raises Invalid."""
    said = _read_directives(text)
    line = said.get("schedule")
    schedule = schedule_of_text(line) if line is not None else schedule_of_directory(directory)
    return CronScript(
        key=key,
        schedule=schedule,
        overlap=said.get("overlap", "skip"),  # type: ignore[arg-type]
        catchup=said.get("catchup", "once"),  # type: ignore[arg-type]
    )


def _read_directives(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in filter(None, map(_DIRECTIVE_PATTERN.match, script_head(text.encode()))):
        try:
            words = shlex.split(match[1])
        except ValueError as error:
            raise Invalid(f"#SENTINEL {match[1]}: {error}") from error
        for word in words:
            found.update([_split_pair(word)])
    return found


def _split_pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or key not in _DIRECTIVE_KEYS:
        raise Invalid(f'#SENTINEL knows schedule="…", overlap=…, catchup=…; not {word!r}')
    if _DIRECTIVE_KEYS[key] and value not in _DIRECTIVE_KEYS[key]:
        raise Invalid(f"#SENTINEL {key}={value}: one of {', '.join(_DIRECTIVE_KEYS[key])}")
    return key, value
