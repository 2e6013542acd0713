"""Turns one run of one check into observations: each subject was seen, is gone, or was hidden.
Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from sentinel.core.model import Alert, Finding, Key, Report, Status

MAX_NAMED_WELL = 2
"""So many good findings are named in the line about a run."""


class RunOutcome(Struct, frozen=True, kw_only=True):
    """The result of one run of a check.

    `report` is None if the run saw nothing at all. `itself` is the finding about the check itself.
    `seconds` is the duration of the run. `after` is the time in seconds from the start of the pass
    to the start of the run. 0 means that it is the check's first run in the pass.
    """

    check: str  # Name of the check.
    kind: str  # Its kind.
    itself: Finding
    report: Report | None
    seconds: float
    after: float = 0.0

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings to show to a person.

        The finding about the check itself is included if it is the only one, or if something was
        not seen and no other finding says so.
        """
        found = self.report.findings if self.report else ()
        told = any(f.status is Status.UNKNOWN for f in found)
        return found if found and (told or not self.unseen_summary) else (*found, self.itself)

    @property
    def unseen_summary(self) -> str:
        """A sentence that names the things that were not seen. Empty if all was seen, or without a
        report.

        If there was nothing to look at, and that is right, the findings say it.
        """
        if self.report is None or self.report.coverage.whole:
            return ""
        coverage = self.report.coverage
        explained = not coverage.meant and coverage.excused and self.report.findings
        return "" if explained else coverage.words

    @property
    def headline(self) -> str:
        """One line: the worst finding, or the number of good ones, and what was not seen."""
        found = self.report.findings if self.report else ()
        worst = max((*found, self.itself), key=lambda f: f.status.rank)
        if worst is self.itself:
            return worst.summary
        if worst.status is Status.OK and len(found) > 1:
            text = self._describe_well(found)
        else:
            text = self._name_finding(worst)
        said = (
            worst.status is Status.UNKNOWN
            and self.report is not None
            and len(self.report.coverage.unseen) == 1
        )
        return "; ".join(filter(None, [text, "" if said else self.unseen_summary]))

    def _describe_well(self, found: Sequence[Finding]) -> str:
        """For example `8 nodes, all ok`. It counts the things that were looked at, not the
        findings: where nobody counts them, a few say themselves what they are."""
        coverage = self.report.coverage if self.report else None
        if coverage and coverage.seen > 1:
            return f"{coverage.seen} {coverage.of}, all ok"
        few = "; ".join(map(self._name_finding, found)) if len(found) <= MAX_NAMED_WELL else ""
        return few or f"{len(found)} findings, all ok"

    def _name_finding(self, one: Finding) -> str:
        return one.summary if one.subject in ("", self.check) else f"{one.subject}: {one.summary}"


def observed_findings(
    outcome: RunOutcome, alerts: Mapping[Key, Alert], cluster: str
) -> list[tuple[Key, Finding | None]]:
    """The finding for each subject, beginning with the check itself.

    The finding is None for alerts that this run would have reported, but did not. If a check runs
    several times in a pass, only its first failure to see counts.
    """
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
        return found  # something was not seen, and it is not known which subjects that hides
    for key, alert in alerts.items():
        ours = key.check == outcome.check and key.cluster == cluster and key.subject
        hidden = not unseen.isdisjoint([key.subject, alert.labels.get("node", "")])
        if ours and key not in seen and not hidden and not _may_be_hidden(alert, blind):
            found.append((key, None))
    return found


def _worst_by_subject(findings: Iterable[Finding]) -> Iterable[Finding]:
    """One finding per subject. If there are several, the worst one that was really seen counts."""
    worst: dict[str, Finding] = {}
    for f in findings:
        other = worst.setdefault(f.subject, f)
        if f.status is not other.status:
            worst[f.subject] = max(other, f, key=lambda f: (f.status.bad, f.status.rank))
    return worst.values()


def _blind_spots(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings about things that were not seen, grouped by node. There may be thousands of findings
    and of alerts."""
    spots: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.status is Status.UNKNOWN:
            spots.setdefault(finding.labels.get("node", ""), []).append(finding)
    return spots


def _may_be_hidden(alert: Alert, blind: Mapping[str, Sequence[Finding]]) -> bool:
    """Whether the alert may be about something that was not seen, because no label contradicts it."""
    node = alert.labels.get("node", "")
    near = [blind.get("", ()), blind.get(node, ())] if node else blind.values()
    return any(
        all(alert.labels.get(name, value) == value for name, value in spot.labels.items())
        for spots in near
        for spot in spots
    )
