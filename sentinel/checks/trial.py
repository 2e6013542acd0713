"""The first days of a detector, in which it only counts and notifies nobody. Pure."""

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
    """The trial of a detector: for its first `lasts` seconds it reports nothing.

    `began` is None if it reports from the first day. `told` is what it would have reported, by
    time.
    """

    began: Instant | None = None
    told: dict[str, str] = {}
    lasts: float = WEEK_S

    def is_silent(self, now: Instant) -> bool:
        """Whether the trial is still running."""
        return self.began is not None and get_elapsed_s(self.began, now) < self.lasts

    def note_would_tell(self, moment: Instant | None, words: str) -> SilentTrial:
        """The trial with one more result that would have been reported, with its present text."""
        if not words or moment is None:
            return self
        told = {**self.told, str(moment.wall): words}
        return replace(self, told=dict([*told.items()][-MAX_TRIED:]))

    def describe_trial(self, now: Instant, who: str = "the watch on step times") -> str:
        """A text about what it would have reported. It is given for the same time after the trial."""
        over = (
            self.began is not None
            and 1 <= get_elapsed_s(self.began, now) / (self.lasts or WEEK_S) < 2
        )
        if not over or not self.told:
            return ""
        first = "week" if self.lasts == WEEK_S else duration_text(self.lasts)
        return f"in its first {first} {who} told nobody: " + "; ".join(self.told.values())

    def mark_untold(self, words: str, now: Instant) -> str:
        """The text of a result during the trial. People can read it, but nobody is notified."""
        left = self.lasts - (get_elapsed_s(self.began, now) if self.began else 0.0)
        return f"on trial for another {duration_text(left)}, told nobody: {words}"

    def silence_findings(self, findings: Iterable[Finding], now: Instant) -> list[Finding]:
        """During the trial, turn bad findings into ok ones with the text, so that nobody is
        notified."""
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
