"""Outcomes of checks as text for machines, plugins runners and pipes. Pure."""

from math import isfinite

import msgspec

from sentinel.alerting.observations import Outcome
from sentinel.core.model import Finding, Value, worst
from sentinel.core.text import visible, visible_lines

_UNITS = {"_percent": "%", "_bytes": "B", "_s": "s", "_seconds": "s"}


MOST = 1000
"""Names of what was not seen that a document lists."""


def as_json(outcome: Outcome) -> str:
    """The documented JSON of a check."""
    findings = outcome.findings
    document = {
        "check": outcome.check,
        "kind": outcome.kind,
        "status": worst(f.status for f in findings).value,
        "summary": visible(outcome.headline),
        "duration_s": round(outcome.seconds, 4),
        "coverage": _coverage(outcome),
        "findings": [_finding(f) for f in findings],
    }
    text = msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
    return text if text.isascii() else _ascii(text)


def _ascii(document: str) -> str:
    """The same JSON for every character set."""
    import json

    return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in document)


def as_lines(outcome: Outcome) -> str:
    """One line a finding: status, subject, summary; details below, indented."""
    return "\n".join(_lines(f) for f in outcome.findings)


def as_nagios(outcome: Outcome) -> str:
    """`KIND STATUS - text | perfdata`, further findings as long output below.

    https://nagios-plugins.org/doc/guidelines.html#PLUGOUTPUT and #AEN200 (performance data).
    """
    findings = outcome.findings
    status = worst(f.status for f in findings).value.upper()
    data = " ".join(_perfdata(findings))
    first = f"{outcome.kind.upper()} {status} - {_bar(visible(outcome.headline))}"
    lines = [f"{first} | {data}" if data else first]
    if len(findings) > 1:
        lines += [
            _bar(f"{f.status.value.upper()}: {visible(f.subject)}: {visible(f.summary)}")
            for f in findings
        ]
    return "\n".join(lines)


def _about(finding: Finding) -> str:
    summary = visible(finding.summary)
    return f"{visible(finding.subject)}: {summary}" if finding.subject else summary


def _finding(finding: Finding) -> dict[str, object]:
    document: dict[str, object] = {
        "subject": finding.subject.encode("utf-8", "backslashreplace").decode(),
        "status": finding.status.value,
        "summary": visible(finding.summary),
        "values": {k: _plain(v) for k, v in finding.values.items()},
    }
    if finding.details:
        document["details"] = visible_lines(finding.details)
    if finding.commands:
        document["commands"] = [visible(c) for c in finding.commands]
    return document


def _coverage(outcome: Outcome) -> dict[str, object] | None:
    """Null where the run saw nothing at all."""
    if outcome.report is None:
        return None
    seen = outcome.report.coverage
    return {
        "of": seen.of,
        "meant": seen.meant,
        "seen": seen.seen,
        "unseen": [visible(name) for name in seen.unseen[:MOST]],
        "excused": visible(seen.excused),
    }


def _plain(value: Value) -> Value:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _lines(finding: Finding) -> str:
    first = f"{finding.status.value.upper():<9}{_about(finding)}"
    details = [f"         {line}" for line in visible_lines(finding.details).splitlines()]
    return "\n".join([first, *details])


def _perfdata(findings: tuple[Finding, ...]) -> list[str]:
    several = len(findings) > 1
    return [
        _datum(f"{f.subject} {name}" if several and f.subject else name, name, value)
        for f in findings
        for name, value in f.values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    ]


def _datum(label: str, name: str, value: float) -> str:
    unit = next((u for suffix, u in _UNITS.items() if name.endswith(suffix)), "")
    clean = _bar(visible(label)).replace("'", "''").replace("=", "_")
    return f"'{clean}'={_number(value)}{unit}"


def _number(value: float) -> str:
    """Without an exponent: plugin runners read digits, a point and a minus."""
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")


def _bar(text: str) -> str:
    return text.replace("|", "¦")
