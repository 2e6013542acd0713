"""Settings of the `fs` check that only make sense together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sentinel.core.disk.words import headroom
from sentinel.core.errors import Invalid

if TYPE_CHECKING:
    from sentinel.checks.fs.check import Fs

_NO_QUOTA = ("statfs", "du", "command")


def judge_measure(fs: Fs) -> None:
    """Raises Invalid, naming the key."""
    from sentinel.checks.fs.check import KINDS

    if fs.headroom:
        try:
            headroom(fs.headroom)
        except Invalid as error:
            raise Invalid(str(error), "headroom") from None
    if fs.measure not in ("auto", "statfs") and not fs.paths:
        raise Invalid(f"name the paths to measure by {fs.measure}", "paths")
    if (fs.measure == "command") != bool(fs.command):
        raise Invalid("measure: command and a command belong together", "command")
    if fs.pattern is not None:
        from sentinel.core.disk.command import refuse

        refuse(fs.pattern)
    if fs.quotas and fs.measure in _NO_QUOTA:
        raise Invalid(f"measure: {fs.measure} knows no quotas of people or projects", "quotas")
    for number, text in enumerate(fs.quotas):
        kind, _, _ = text.partition(":")
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise Invalid(
                f"{kind!r} has no quotas; write it like user:alice; {known}", "quotas", number
            )
