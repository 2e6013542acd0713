"""What one run says about each subject: seen, gone, or hidden by what could not be seen. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from sentinel.alerting.outcome import Outcome
from sentinel.core.model import Alert, Finding, Key, Status


def observations(
    outcome: Outcome, alerts: Mapping[Key, Alert], cluster: str
) -> Iterable[tuple[Key, Finding | None]]:
    """A finding for each subject, the check itself first; None for those of its alerts that the
    run would have reported and does not."""
    yield Key(cluster, outcome.check), outcome.itself
    if outcome.report is None:
        return
    seen = {Key(cluster, outcome.check, f.subject): f for f in _worst(outcome.report.findings)}
    yield from seen.items()
    blind, coverage = _blind_spots(seen.values()), outcome.report.coverage
    unseen = frozenset(coverage.unseen)
    if coverage.status is Status.UNKNOWN and not blind:
        return  # something was not seen, and nobody says which subjects that hides
    for key, alert in alerts.items():
        ours = key.check == outcome.check and key.cluster == cluster and key.subject
        hidden = not unseen.isdisjoint([key.subject, alert.labels.get("node", "")])
        if ours and key not in seen and not hidden and not _may_be_hidden(alert, blind):
            yield key, None


def _worst(findings: Iterable[Finding]) -> Iterable[Finding]:
    """One for each subject: of several what was seen to be wrong counts."""
    worst: dict[str, Finding] = {}
    for f in findings:
        worst[f.subject] = max(
            worst.get(f.subject, f), f, key=lambda f: (f.status.bad, f.status.rank)
        )
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
