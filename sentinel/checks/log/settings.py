"""Small settings of a log check, beside `Log`."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from sentinel.core.errors import Invalid
from sentinel.core.patterns import compile_by_line
from sentinel.core.values import Duration

Auto = Literal["auto"]
OnStale = Literal["stacks", "exclude", "killswitch", "requeue", "cancel"]
CloserLookMode = Literal["own", "all", "srun", "off"]
SignalName = Literal["HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "TERM", "CONT"]
GrowthMode = Literal["auto", "growth"]
ProgressSetting = GrowthMode | re.Pattern[str] | list[re.Pattern[str]] | dict[str, re.Pattern[str]]

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".Z", ".zip", ".tgz")
"""Endings of files that logrotate(8) and people leave behind. They are never the current log."""


class PhaseSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stretch in which no progress is normal, from a line that begins it to one that ends it.

    begin: The line that begins it, as a regular expression.
    end: The line that ends it; unset, it ends when the number has advanced twice.
    allow: How long it may take; unset, the check's own limit, or with `stale_after: auto` what was learned.
    """

    begin: re.Pattern[str]
    end: re.Pattern[str] | None = None
    allow: Duration | None = None


def name_patterns(progress: ProgressSetting) -> dict[str, re.Pattern[str]]:
    """The patterns by name. `^` and `$` match at lines. Raises Invalid for a pattern without a
    group."""
    if isinstance(progress, str):
        return {}
    found = _key_patterns(progress) if isinstance(progress, list | dict) else {"progress": progress}
    for name, pattern in found.items():
        if not pattern.groups:
            path = ("progress", *([name] if isinstance(progress, Mapping) else []))
            raise Invalid(r"captures nothing; put the number in a group, as (\d+)", *path)
    return {name: compile_by_line(pattern) for name, pattern in found.items()}


def _key_patterns(
    progress: "Sequence[re.Pattern[str]] | Mapping[str, re.Pattern[str]]",
) -> "dict[str, re.Pattern[str]]":
    if isinstance(progress, Mapping):
        return dict(progress)
    if len(progress) == 1:
        return {"progress": progress[0]}
    return {f"progress {n}": pattern for n, pattern in enumerate(progress, 1)}
