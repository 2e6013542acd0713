"""Settings of the `fs` check that only make sense together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel.core.errors import Invalid
from sentinel.core.forecast.words import headroom as parsed

KINDS = ("user", "group", "project", "fileset", "dataset", "directory", "qgroup")
_NO_QUOTA = ("statfs", "du", "command")


def judge_measure(
    measure: str,
    *,
    named: bool,
    headroom: str,
    quotas: Sequence[str],
    command: Sequence[str],
    pattern: re.Pattern[str] | None,
) -> None:
    """Raises Invalid with the key. `named`: whether paths are given."""
    if headroom:
        try:
            parsed(headroom)
        except Invalid as error:
            raise Invalid(str(error), "headroom") from None
    if measure not in ("auto", "statfs") and not named:
        raise Invalid(f"name the paths to measure by {measure}", "paths")
    if (measure == "command") != bool(command):
        raise Invalid("measure: command and a command belong together", "command")
    if pattern is not None:
        from sentinel.checks.quota.tools.command import refuse

        refuse(pattern)
    if quotas and measure in _NO_QUOTA:
        raise Invalid(f"measure: {measure} knows no quotas of people or projects", "quotas")
    _judge_quotas(quotas)


def _judge_quotas(quotas: Sequence[str]) -> None:
    for number, text in enumerate(quotas):
        kind, _, _ = text.partition(":")
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise Invalid(
                f"{kind!r} has no quotas; write it like user:alice; {known}", "quotas", number
            )
