"""Outcomes of checks as text for machines, plugins runners and pipes. Pure."""

from math import isfinite

import msgspec

from sentinel.alerting.observations import RunOutcome
from sentinel.core.model import Finding, Value, get_worst_status
from sentinel.core.text import visible, visible_lines

_PERFDATA_UNITS = {"_percent": "%", "_bytes": "B", "_s": "s", "_seconds": "s"}


MAX_UNSEEN_NAMES = 1000
"""Names of what was not seen that a document lists."""


def render_outcome_json(outcome: RunOutcome) -> str:
    """The documented JSON of a check."""
    findings = outcome.findings
    document = {
        "check": outcome.check,
        "kind": outcome.kind,
        "status": get_worst_status(f.status for f in findings).value,
        "summary": visible(outcome.headline),
        "duration_s": round(outcome.seconds, 4),
        "coverage": _build_coverage_row(outcome),
        "findings": [_build_finding_row(f) for f in findings],
    }
    text = msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
    return text if text.isascii() else _escape_non_ascii(text)


def _escape_non_ascii(document: str) -> str:
    """The same JSON for every character set."""
    import json

    return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in document)


def render_outcome_lines(outcome: RunOutcome) -> str:
    """One line a finding: status, subject, summary; details below, indented."""
    return "\n".join(_render_finding(f) for f in outcome.findings)


def render_nagios_output(outcome: RunOutcome) -> str:
    """`KIND STATUS - text | perfdata`, further findings as long output below.

    https://nagios-plugins.org/doc/guidelines.html#PLUGOUTPUT and #AEN200 (performance data).
    """
    findings = outcome.findings
    status = get_worst_status(f.status for f in findings).value.upper()
    data = " ".join(_list_perfdata(findings))
    first = f"{outcome.kind.upper()} {status} - {_replace_pipe(visible(outcome.headline))}"
    lines = [f"{first} | {data}" if data else first]
    if len(findings) > 1:
        lines += [
            _replace_pipe(f"{f.status.value.upper()}: {visible(f.subject)}: {visible(f.summary)}")
            for f in findings
        ]
    return "\n".join(lines)


def _describe_finding(finding: Finding) -> str:
    summary = visible(finding.summary)
    return f"{visible(finding.subject)}: {summary}" if finding.subject else summary


def _build_finding_row(finding: Finding) -> dict[str, object]:
    document: dict[str, object] = {
        "subject": finding.subject.encode("utf-8", "backslashreplace").decode(),
        "status": finding.status.value,
        "summary": visible(finding.summary),
        "values": {k: _escape_surrogates(v) for k, v in finding.values.items()},
    }
    if finding.details:
        document["details"] = visible_lines(finding.details)
    if finding.commands:
        document["commands"] = [visible(c) for c in finding.commands]
    return document


def _build_coverage_row(outcome: RunOutcome) -> dict[str, object] | None:
    """Null where the run saw nothing at all."""
    if outcome.report is None:
        return None
    seen = outcome.report.coverage
    return {
        "of": seen.of,
        "meant": seen.meant,
        "seen": seen.seen,
        "unseen": [visible(name) for name in seen.unseen[:MAX_UNSEEN_NAMES]],
        "excused": visible(seen.excused),
    }


def _escape_surrogates(value: Value) -> Value:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _render_finding(finding: Finding) -> str:
    first = f"{finding.status.value.upper():<9}{_describe_finding(finding)}"
    details = [f"         {line}" for line in visible_lines(finding.details).splitlines()]
    return "\n".join([first, *details])


def _list_perfdata(findings: tuple[Finding, ...]) -> list[str]:
    several = len(findings) > 1
    return [
        _format_perfdata_item(f"{f.subject} {name}" if several and f.subject else name, name, value)
        for f in findings
        for name, value in f.values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    ]


def _format_perfdata_item(label: str, name: str, value: float) -> str:
    unit = next((u for suffix, u in _PERFDATA_UNITS.items() if name.endswith(suffix)), "")
    clean = _replace_pipe(visible(label)).replace("'", "''").replace("=", "_")
    return f"'{clean}'={_format_perfdata_number(value)}{unit}"


def _format_perfdata_number(value: float) -> str:
    """Without an exponent: plugin runners read digits, a point and a minus."""
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")


def _replace_pipe(text: str) -> str:
    return text.replace("|", "¦")
