"""One run of one check, and what it says about each subject: seen, gone, or hidden by what could not
be seen. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.core.model import Alert, Finding, Key, Report, Status


class RunOutcome(Struct, frozen=True, kw_only=True):
    """`report` None when the run was blind; `itself` is about the check. `seconds` it took. `after`:
    seconds into its pass at which it began; 0: it is the first of that check."""

    check: str
    kind: str
    itself: Finding
    report: Report | None
    seconds: float
    after: float = 0.0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a person is shown: about the check itself too where that is all there is, or where
        something was not seen and no other finding says so."""
        found = self.report.findings if self.report else ()
        told = any(f.status is Status.UNKNOWN for f in found)
        return found if found and (told or not self.unseen_summary) else (*found, self.itself)

    @property
    def unseen_summary(self) -> str:
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
        said = worst.status is Status.UNKNOWN and self._unseen_count() == 1
        return "; ".join(filter(None, [text, "" if said else self.unseen_summary]))

    def _unseen_count(self) -> int:
        return len(self.report.coverage.unseen) if self.report else 0


def observed_findings(
    outcome: RunOutcome, alerts: Mapping[Key, Alert], cluster: str
) -> list[tuple[Key, Finding | None]]:
    """A finding for each subject, the check itself first; None for those of its alerts that the
    run would have reported and does not. That a check is blind is counted once a pass."""
    counts = not outcome.after or outcome.itself.status is not Status.UNKNOWN
    itself = [(Key(cluster, outcome.check), outcome.itself)]
    found: list[tuple[Key, Finding | None]] = [*itself] if counts else []
    if outcome.report is None:
        return found
    seen = {
        Key(cluster, outcome.check, f.subject): f
        for f in _worst_by_subject(outcome.report.findings)
    }
    found += seen.items()
    blind, coverage = _blind_spots(seen.values()), outcome.report.coverage
    unseen = frozenset(coverage.unseen)
    if coverage.status is Status.UNKNOWN and not blind:
        return found  # something was not seen, and nobody says which subjects that hides
    for key, alert in alerts.items():
        ours = key.check == outcome.check and key.cluster == cluster and key.subject
        hidden = not unseen.isdisjoint([key.subject, alert.labels.get("node", "")])
        if ours and key not in seen and not hidden and not _may_be_hidden(alert, blind):
            found.append((key, None))
    return found


def _worst_by_subject(findings: Iterable[Finding]) -> Iterable[Finding]:
    """One for each subject: of several what was seen to be wrong counts."""
    worst: dict[str, Finding] = {}
    for f in findings:
        other = worst.setdefault(f.subject, f)
        if f.status is not other.status:
            worst[f.subject] = max(other, f, key=lambda f: (f.status.bad, f.status.rank))
    return worst.values()


def _blind_spots(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """What could not be seen, by node: there may be thousands of it, and of alerts."""
    spots: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.status is Status.UNKNOWN:
            spots.setdefault(finding.labels.get("node", ""), []).append(finding)
    return spots


def _may_be_hidden(alert: Alert, blind: Mapping[str, Sequence[Finding]]) -> bool:
    """Whether something that could not be seen may be what the alert is about: no label says
    otherwise."""
    node = alert.labels.get("node", "")
    near = [blind.get("", ()), blind.get(node, ())] if node else blind.values()
    return any(
        all(alert.labels.get(name, value) == value for name, value in spot.labels.items())
        for spots in near
        for spot in spots
    )
