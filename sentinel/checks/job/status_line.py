"""The pulse: one greppable line per run, and what it must never be written into."""

import os
import re
import time
from collections.abc import Iterator, Mapping

from sentinel.core.clock import SECOND, Instant
from sentinel.core.kinds import Check
from sentinel.core.model import Report, Status
from sentinel.core.text import visible


def line(report: Report, subject: str, now: Instant) -> str:
    """`PULSE 2027-01-15T08:00:00Z ok my-training: running: …`, without a newline."""
    about = [f for f in report.findings if f.subject == subject] or list(report.findings)
    finding = max(about, key=lambda f: f.status.rank, default=None)
    status = finding.status if finding else Status.UNKNOWN
    summary = finding.summary if finding else "nothing was seen"
    if finding and finding.subject not in ("", subject):
        summary = f"{visible(finding.subject)}: {summary}"
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now.wall // SECOND))
    return f"PULSE {at} {status.value} {visible(subject) or 'jobs'}: {visible(summary)}"


def conflicts(path: str | None, others: Mapping[str, Check]) -> Iterator[str]:
    """One message for each check that takes what is written into the file `path` for life."""
    for name, other in others.items() if path else ():
        if any(_same(path or "", pattern) for pattern in other.watched_logs()):
            yield (
                f"{path} is watched by check {name!r}: the pulse could make a training that"
                " hangs look alive; write the pulse into another file"
            )


def _same(path: str, pattern: str) -> bool:
    """Whether a path may be what a pattern with Slurm's `%x`, `%j`, `%4t` … stands for."""
    parts = re.split(r"%\d*[A-Za-z]", os.path.normpath(pattern))
    return re.fullmatch("[^/]*".join(map(re.escape, parts)), os.path.normpath(path)) is not None
