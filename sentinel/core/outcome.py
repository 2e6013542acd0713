"""One run of one check, as the runner leaves it. Apart from `digest`, which one-shots never need."""

from msgspec import Struct

from sentinel.core.model import Finding, Report


class Outcome(Struct, frozen=True, kw_only=True):
    """`report` None when the run was blind; `itself` is about the check. `seconds` it took."""

    check: str
    kind: str
    itself: Finding
    report: Report | None
    seconds: float

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a person is shown: about the check itself only when that is all there is."""
        return self.report.findings if self.report and self.report.findings else (self.itself,)
