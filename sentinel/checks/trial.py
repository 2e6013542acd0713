"""The first days of a detector, in which it counts and wakes nobody. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant, elapsed
from sentinel.core.model import Finding, Status
from sentinel.core.values import duration_text

WEEK = 7 * 86400.0
MOST_TRIED = 5


class Trial(Struct, frozen=True, kw_only=True):
    """The first `lasts` seconds of a detector: it tells nothing yet.

    `began`: None where it tells from the first day. `told`: what it would have said, by the moment.
    """

    began: Instant | None = None
    told: dict[str, str] = {}
    lasts: float = WEEK

    def silent(self, now: Instant) -> bool:
        """Whether they still last."""
        return self.began is not None and elapsed(self.began, now) < self.lasts

    def noted(self, moment: Instant | None, words: str) -> Trial:
        """With one more that would have been told, its words as they are by now."""
        if not words or moment is None:
            return self
        told = {**self.told, str(moment.wall): words}
        return replace(self, told=dict([*told.items()][-MOST_TRIED:]))

    def words(self, now: Instant, who: str = "the watch on step times") -> str:
        """For as long again, what there would have been."""
        over = self.began is not None and 1 <= elapsed(self.began, now) / (self.lasts or WEEK) < 2
        if not over or not self.told:
            return ""
        first = "week" if self.lasts == WEEK else duration_text(self.lasts)
        return f"in its first {first} {who} told nobody: " + "; ".join(self.told.values())

    def aside(self, words: str, now: Instant) -> str:
        """How it is written while they last: it can be looked at, and wakes nobody."""
        left = self.lasts - (elapsed(self.began, now) if self.began else 0.0)
        return f"on trial for another {duration_text(left)}, told nobody: {words}"

    def hushed(self, findings: Iterable[Finding], now: Instant) -> list[Finding]:
        """While it lasts, what is bad as it can be looked at and wakes nobody: ok, with its words."""
        if not self.silent(now):
            return list(findings)
        return [
            replace(
                one,
                status=Status.OK,
                summary=self.aside(f"{one.status.value}: {one.summary}", now),
            )
            if one.status.bad
            else one
            for one in findings
        ]
