"""Single outputs of the archive, as verdicts with their own time."""

from __future__ import annotations

import os

from msgspec.structs import replace

from sentinel.checks.diag import archive, telling
from sentinel.checks.diag.archive import File
from sentinel.checks.diag.runs import Last, Run
from sentinel.core.clock import SECOND, Instant


def run_in(place: str, file: File) -> Run:
    """As if it had been asked for at the time that its name says."""
    return Run(
        node=file.node,
        name=file.name,
        level=file.level,
        out=os.path.join(place, file.name),
        asked=file.at * SECOND,
        limit=0.0,
    )


def last_in(place: str, file: File) -> Last:
    """What an output proves. CannotTell if it cannot be read."""
    run = run_in(place, file)
    found, gpus = archive.verdict(run.out, run.level)
    last = telling.last_of(run, found, gpus, Instant(wall=run.asked))
    return replace(last, at=run.asked)
