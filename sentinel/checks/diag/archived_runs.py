"""Reads single outputs of the archive as verdicts with their own time."""

from __future__ import annotations

import os

from msgspec.structs import replace

from sentinel.checks.diag import archive
from sentinel.checks.diag.archive import ArchivedOutput
from sentinel.checks.diag.run_reports import make_last_verdict
from sentinel.checks.diag.runs import DiagRun, LastDiagVerdict
from sentinel.core.clock import SECOND, Instant


def make_archived_run(place: str, file: ArchivedOutput) -> DiagRun:
    """The run of an output, as if it had been requested at the time in its name."""
    return DiagRun(
        node=file.node,
        name=file.name,
        level=file.level,
        out=os.path.join(place, file.name),
        asked=file.at * SECOND,
        limit=0.0,
    )


def read_archived_verdict(place: str, file: ArchivedOutput) -> LastDiagVerdict:
    """The verdict of an output. Raises CannotTell if it cannot be read."""
    run = make_archived_run(place, file)
    found, gpus = archive.read_diag_verdict(run.out, run.level)
    last = make_last_verdict(run, found, gpus, Instant(wall=run.asked))
    return replace(last, at=run.asked)
