"""The pulse: one line per run that is easy to search for, and the files that it must not be written
to."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping

from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Report, Status
from sentinel.core.text import visible
from sentinel.plugin import Check


def pulse_line(report: Report, subject: str, now: Instant) -> str:
    """`PULSE 2027-01-15T08:00:00Z ok my-training: running: …`, without a newline."""
    about = [f for f in report.findings if f.subject == subject] or list(report.findings)
    finding = max(about, key=lambda f: f.status.rank, default=None)
    status = finding.status if finding else Status.UNKNOWN
    summary = finding.summary if finding else "nothing was seen"
    if finding and finding.subject not in ("", subject):
        summary = f"{visible(finding.subject)}: {summary}"
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now.wall // SECOND))
    return f"PULSE {at} {status.value} {visible(subject) or 'jobs'}: {visible(summary)}"


def pulse_conflicts(path: str | None, others: Mapping[str, Check]) -> Iterator[str]:
    """One message for each check that would take the pulse in the file `path` for a sign of life."""
    for name, other in others.items() if path else ():
        if any(_may_be_same_path(path or "", pattern) for pattern in other.watched_logs()):
            yield (
                f"{path} is watched by check {name!r}: the pulse could make a training that"
                " hangs look alive; write the pulse into another file"
            )


def _may_be_same_path(path: str, pattern: str) -> bool:
    """Whether Slurm could make this path from a pattern with `%x`, `%j`, `%4t` …."""
    names, patterns = os.path.normpath(path).split("/"), os.path.normpath(pattern).split("/")
    return len(names) == len(patterns) and all(map(_matches_name, names, patterns))


def _matches_name(name: str, pattern: str) -> bool:
    """Compare in one pass. Users choose the names, and a regular expression with many symbols would
    try all ways to divide them."""
    first, *parts = re.split(r"%\d*[A-Za-z]", pattern)
    if not parts or not name.startswith(first):
        return name == first
    at = len(first)
    for part in parts[:-1]:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return name.endswith(parts[-1]) and len(name) - at >= len(parts[-1])
