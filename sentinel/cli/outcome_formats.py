"""Renders outcomes of checks as text for programs, plugin runners and pipes. Pure."""

from collections.abc import Sequence
from math import isfinite

import msgspec

from sentinel.alerting.observations import RunOutcome
from sentinel.cli.plain_rows import format_status_word
from sentinel.core.guidance import NO_GUIDANCE
from sentinel.core.model import Finding, Status, Value, get_worst_status
from sentinel.core.text import visible, visible_lines

_PERFDATA_UNITS = {"_percent": "%", "_bytes": "B", "_s": "s", "_seconds": "s"}


MAX_UNSEEN_NAMES = 1000
"""Names of unseen things that a document lists at most."""


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
    """The same JSON in ASCII, for every character set."""
    import json

    return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in document)


def render_outcome_lines(outcome: RunOutcome) -> str:
    """One line for each finding: status, subject, summary; its details are below, indented."""
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


def render_nagios_summary(outcomes: Sequence[RunOutcome]) -> str:
    """All checks as the output of one plugin: the worst status, which checks are bad, and a line
    for each below."""
    worst = [get_worst_status(f.status for f in one.findings) for one in outcomes]
    bad = [one.check for one, status in zip(outcomes, worst, strict=True) if status.rank]
    status = get_worst_status(worst).value.upper()
    said = (
        f"{len(bad)} of {len(outcomes)} checks: {', '.join(bad)}"
        if bad
        else f"{len(outcomes)} checks"
    )
    lines = [
        f"{state.value.upper()}: {visible(one.check)}: {visible(one.headline)}"
        for one, state in zip(outcomes, worst, strict=True)
    ]
    return "\n".join(
        _replace_pipe(line) for line in [f"SENTINEL {status} - {visible(said)}", *lines]
    )


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
    if finding.guidance != NO_GUIDANCE:
        document["guidance"] = {
            name: visible(text) for name, text in msgspec.to_builtins(finding.guidance).items()
        }
    if finding.commands:
        document["commands"] = [c.render() for c in finding.commands]
    if finding.acts:
        document["acts"] = [c.render() for c in finding.acts]
    return document


def _build_coverage_row(outcome: RunOutcome) -> dict[str, object] | None:
    """The coverage as JSON; None if the run saw nothing at all."""
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
    first = f"{format_status_word(finding.status)}{_describe_finding(finding)}"
    told = (
        *visible_lines(finding.details).splitlines(),
        *map(visible, finding.guidance.list_lines()),
        *list_commands(finding),
    )
    details = [f"         {line}" for line in told]
    return "\n".join([first, *details])


def list_commands(finding: Finding) -> list[str]:
    """The commands of which the guidance speaks, one a line; those that act are last."""
    if finding.status is Status.OK:
        return []
    acts = [f"$ {command.render()}" for command in finding.acts]
    looks = [f"$ {command.render()}" for command in finding.commands]
    return [*looks, "to act on it:", *acts] if acts else looks


_THRESHOLDS = {"used_percent": ("warn_percent", "critical_percent")}
"""Numbers that have limits, and the values of a finding that hold those limits."""


def _list_perfdata(findings: tuple[Finding, ...]) -> list[str]:
    several = len(findings) > 1
    return [
        _format_perfdata_item(f"{f.subject} {name}" if several and f.subject else name, name, value)
        + _format_thresholds(f, name)
        for f in findings
        for name, value in f.values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
        if not any(name in pair and number in f.values for number, pair in _THRESHOLDS.items())
    ]


def _format_thresholds(finding: Finding, name: str) -> str:
    """`;warning;critical` after a number. Empty if it has no limits."""
    limits = [finding.values.get(key) for key in _THRESHOLDS.get(name, ())]
    texts = [_format_perfdata_number(v) if isinstance(v, (int, float)) else "" for v in limits]
    return f";{';'.join(texts)}" if any(texts) else ""


def _format_perfdata_item(label: str, name: str, value: float) -> str:
    unit = next((u for suffix, u in _PERFDATA_UNITS.items() if name.endswith(suffix)), "")
    clean = _replace_pipe(visible(label)).replace("'", "''").replace("=", "_")
    return f"'{clean}'={_format_perfdata_number(value)}{unit}"


def _format_perfdata_number(value: float) -> str:
    """The number without an exponent: plugin runners read only digits, a point and a minus."""
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")


def _replace_pipe(text: str) -> str:
    return text.replace("|", "¦")
