"""Runs of slurmctld and of accounting that are the same."""

from typing import Any

import pytest

from sentinel.core.cluster import JobRun
from sentinel.slurm.endings import merge_runs

CUT, END = 1_790_000_000, 1_790_000_200


def run(state: str, **more: Any) -> JobRun:
    times = {"submitted": CUT - 900, "started": CUT - 600, "ended": CUT}
    return JobRun(job_id="15", id="15", state=state, **{**times, **more})


FIRST = run("REQUEUED", source="sacct")
AGAIN: dict[str, Any] = {"submitted": CUT + 1, "ended": END}


@pytest.mark.parametrize(
    ("known", "booked", "whose"),
    [
        (
            run("CANCELLED", **AGAIN, started=CUT + 50),
            run("CANCELLED", **AGAIN, started=CUT + 50, cancelled_by="bob"),
            "bob",
        ),
        # it waited: slurmctld gives the end as its start, accounting none (as_mysql_job.c)
        (
            run("CANCELLED", **AGAIN, started=END),
            run("CANCELLED", **AGAIN, started=None, cancelled_by="bob"),
            "bob",
        ),
        # another run of that job
        (
            run("CANCELLED", **AGAIN, started=CUT + 50),
            run("CANCELLED", started=CUT - 700, cancelled_by="bob"),
            "",
        ),
        (
            run("CANCELLED", **AGAIN, started=END),
            run("CANCELLED", started=None, cancelled_by="bob"),
            "",
        ),
    ],
)
def test_accounting_completes_the_run_that_it_is_about(
    known: JobRun, booked: JobRun, whose: str
) -> None:
    """By its start, else by its submission; any other record is a run of its own."""
    merged = merge_runs([known], [FIRST, booked])
    assert (merged[-1].state, merged[-1].cancelled_by) == ("CANCELLED", whose)
    assert len(merged) == (2 if whose else 3)
    assert merged[0] is FIRST
