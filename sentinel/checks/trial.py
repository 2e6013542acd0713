"""The first days of a detector, in which it counts and wakes nobody. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.clock import Instant, get_elapsed_s
from sentinel.core.model import Finding, Status
from sentinel.core.values import duration_text

WEEK_S = 7 * 86400.0
MAX_TRIED = 5


class SilentTrial(Struct, frozen=True, kw_only=True):
    """The first `lasts` seconds of a detector: it tells nothing yet.

    `began`: None where it tells from the first day. `told`: what it would have said, by the moment.
    """

    began: Instant | None = None
    told: dict[str, str] = {}
    lasts: float = WEEK_S

    def is_silent(self, now: Instant) -> bool:
        """Whether they still last."""
        return self.began is not None and get_elapsed_s(self.began, now) < self.lasts

    def note_would_tell(self, moment: Instant | None, words: str) -> SilentTrial:
        """With one more that would have been told, its words as they are by now."""
        if not words or moment is None:
            return self
        told = {**self.told, str(moment.wall): words}
        return replace(self, told=dict([*told.items()][-MAX_TRIED:]))

    def describe_trial(self, now: Instant, who: str = "the watch on step times") -> str:
        """For as long again, what there would have been."""
        over = (
            self.began is not None
            and 1 <= get_elapsed_s(self.began, now) / (self.lasts or WEEK_S) < 2
        )
        if not over or not self.told:
            return ""
        first = "week" if self.lasts == WEEK_S else duration_text(self.lasts)
        return f"in its first {first} {who} told nobody: " + "; ".join(self.told.values())

    def mark_untold(self, words: str, now: Instant) -> str:
        """How it is written while they last: it can be looked at, and wakes nobody."""
        left = self.lasts - (get_elapsed_s(self.began, now) if self.began else 0.0)
        return f"on trial for another {duration_text(left)}, told nobody: {words}"

    def silence_findings(self, findings: Iterable[Finding], now: Instant) -> list[Finding]:
        """While it lasts, what is bad as it can be looked at and wakes nobody: ok, with its words."""
        if not self.is_silent(now):
            return list(findings)
        return [
            replace(
                one,
                status=Status.OK,
                summary=self.mark_untold(f"{one.status.value}: {one.summary}", now),
            )
            if one.status.bad
            else one
            for one in findings
        ]
