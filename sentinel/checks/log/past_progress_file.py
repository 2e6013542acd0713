"""Reads Megatron-LM's progress.txt into rows of the ledger of runs. Pure.

`--log-progress` writes a line for each start of a job and each checkpoint beside the checkpoints:
append_to_progress_log() of megatron/training/utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timezone, tzinfo
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.line_times import find_line_times
from sentinel.core.clock import SECOND
from sentinel.core.run_ledger import LedgerKind, LedgerRow

PROGRESS_NAME = "progress.txt"
END_DOUBT = "progress.txt tells nothing of a job after its last checkpoint"
MAX_GPUS = 10**6

_LINE_PATTERN = re.compile(
    r"^[\d-]{10} [\d:]{8}\tJob ID: ([\w.-]{0,64})\t# GPUs: (\d{1,7})\t"
    r"(Starting job|Saved checkpoint|Saved async checkpoint|Saving async checkpoint)"
    r"(?:\tIteration: (\d{1,12}))?",
    re.M,
)


class ProgressStart(Struct, frozen=True, kw_only=True):
    """One start of a job, as progress.txt tells of it."""

    job: str
    gpus: int
    rows: tuple[LedgerRow, ...]


def read_progress_text(
    text: str, zone: tzinfo = timezone.utc, starts: Sequence[LedgerRow] = ()
) -> list[ProgressStart]:
    """Each start of each job. `starts` are rows of the kind `held` of jobs that accounting knows.
    Rows have no run yet."""
    found, segment = list[ProgressStart](), list[tuple[int, re.Match[str]]]()
    last = 0
    for match in _LINE_PATTERN.finditer(text):
        told = next(find_line_times(match[0], zone), None)
        at = max(last, int(told[1] * SECOND)) if told else last  # a clock that goes back
        last = at
        if segment and (match[3] == "Starting job" or match[1] != segment[0][1][1]):
            found.append(_make_start(segment, len(found), starts))
            segment = []
        segment.append((at, match))
    return [*found, _make_start(segment, len(found), starts)] if segment else found


def _make_start(
    segment: Sequence[tuple[int, re.Match[str]]], number: int, starts: Sequence[LedgerRow]
) -> ProgressStart:
    began, first = segment[0]
    job = first[1] or f"start {number + 1}"
    near = (row for row in starts if row.job == job and row.began <= began <= row.ended)
    held = max(near, key=lambda row: row.began, default=None) or LedgerRow(
        run="", kind="held", began=began, ended=segment[-1][0], job=job,
        attempt=began // SECOND, cause="unknown",
    )  # fmt: skip
    marks = [(at, float(match[4]), match[3]) for at, match in segment if match[4]]
    rows = [held]

    def add_row(kind: LedgerKind, since: int, until: int, *steps: float) -> None:
        if until > since:
            row = LedgerRow(
                run="", kind=kind, began=since, ended=until, job=job, attempt=held.attempt
            )
            rows.append(replace(row, first_step=steps[0], last_step=steps[1]) if steps else row)

    if marks:
        add_row("startup", held.began, marks[0][0])
    for (since, before, _), (until, step, _) in pairwise(marks):
        add_row("steps", since, until, before, step)
    rows += [
        LedgerRow(run="", kind="saved", began=at, ended=at, last_step=step)
        for at, step, words in marks
        if words.startswith("Saved")
    ]
    return ProgressStart(job=job, gpus=min(int(first[2]), MAX_GPUS), rows=tuple(rows))
