"""One run of one check, as the runner leaves it. Apart from `digest`, which one-shots never need."""

from msgspec import Struct

from sentinel.core.model import Finding, Report, Status


class Outcome(Struct, frozen=True, kw_only=True):
    """`report` None when the run was blind; `itself` is about the check. `seconds` it took."""

    check: str
    kind: str
    itself: Finding
    report: Report | None
    seconds: float

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a person is shown: about the check itself too where that is all there is, or where
        something was not seen and no other finding says so."""
        found = self.report.findings if self.report else ()
        told = any(f.status is Status.UNKNOWN for f in found)
        return found if found and (told or not self.partly) else (*found, self.itself)

    @property
    def partly(self) -> str:
        """What was not seen, in a sentence; empty where all was, or no report is there. That
        nothing was to be looked at, and rightly, is said by the findings where there are some."""
        if self.report is None or self.report.coverage.whole:
            return ""
        coverage = self.report.coverage
        explained = not coverage.meant and coverage.excused and self.report.findings
        return "" if explained else coverage.words

    @property
    def headline(self) -> str:
        """The worst finding in one line, or how many are fine; and what was not seen."""
        found = self.report.findings if self.report else ()
        worst = max((*found, self.itself), key=lambda f: f.status.rank)
        if worst is self.itself:
            return worst.summary
        if worst.status is Status.OK and len(found) > 1:
            text = f"{len(found)} subjects, all ok"
        else:
            text = f"{worst.subject}: {worst.summary}" if worst.subject else worst.summary
        said = worst.status is Status.UNKNOWN and self._missing() == 1
        return "; ".join(filter(None, [text, "" if said else self.partly]))

    def _missing(self) -> int:
        return len(self.report.coverage.unseen) if self.report else 0
