"""How a submission ended that may be a job array: by all its elements. Pure."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from sentinel.core.cluster import JobEnd, JobRun
from sentinel.slurm.ends import LIVE


class SubmissionEnd(Struct, frozen=True):
    """The end of a job, or the worst one of an array's elements; a live state if one is live.
    `elements` says in words how many ended badly so far, e.g. `3 elements: 2 FAILED, 1
    OUT_OF_MEMORY`. It is empty if none did."""

    end: JobEnd
    elements: str = ""


def is_array(rows: Sequence[JobRun], job_id: str) -> bool:
    """Whether the rows, which may be of other jobs too, hold elements of this array."""
    return any(row.array_id == job_id and "_" in row.id for row in rows)


def end_of_array(rows: Sequence[JobRun], array_id: str) -> SubmissionEnd | None:
    """The end of an array, from rows with the oldest first. A live state if an element is live; None
    without a row. Of an element that was requeued, the last run counts."""
    newest = {row.id: row for row in rows if row.array_id == array_id}
    if not newest:
        return None
    runs = list(newest.values())
    live = next((run for run in runs if run.state in LIVE), None)
    over = [run for run in runs if run.state not in LIVE]
    bad = [run for run in over if run.state != "COMPLETED" or run.exit_code]
    if not bad:
        return SubmissionEnd((live or runs[-1]).run_end)
    words = Counter(run.state if run.state != "COMPLETED" else "FAILED" for run in bad)
    said = ", ".join(f"{count} {word}" for word, count in words.items())
    many = "1 element" if len(bad) == 1 else f"{len(bad)} elements"
    return SubmissionEnd((live or bad[0]).run_end, f"{many}: {said}")
