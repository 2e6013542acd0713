"""Reasons: by prefix, with what Slurm appends, and what they may have replaced."""

import pytest

from sentinel.checks.drained.logs import lines_about, reasons, telling
from sentinel.checks.drained.reasons import KILL, fits, hidden, job_of, note_in
from sentinel.core.actions import Reading
from sentinel.testing import START

NEW = "Kill task failed (JobId=4711 StepId=batch)"


def reading(reason: str, *, out: bool = True) -> Reading:
    return Reading(
        node="n1", state="", reason=reason, user="root", reason_time=1, out=out, seen=START
    )


@pytest.mark.parametrize(
    ("reason", "fit", "job", "note"),
    [
        (KILL, True, "", ""),
        (NEW, True, "4711", ""),
        (f"{NEW} : Not responding", True, "4711", ""),
        (f"{KILL} : Not responding : reboot issued", True, "", ""),
        (f"{KILL}, RMA GPU3", True, "", "RMA GPU3"),
        (f"{NEW} do not resume - alice", True, "4711", "do not resume - alice"),
        ("RMA: Kill task failed", False, "", ""),
        ("kill task failed", False, "", ""),
        ("", False, "", ""),
    ],
)
def test_a_reason(reason: str, fit: bool, job: str, note: str) -> None:
    """Matched by its beginning; what people wrote behind Slurm's own words is a note."""
    assert (fits(reason, [KILL]), job_of(reason), note_in(reason)) == (fit, job, note)


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ([], ""),
        ([reading(KILL)], ""),
        ([reading(NEW), reading(KILL), reading("Not responding")], ""),
        ([reading(KILL), reading("RMA GPU3")], "RMA GPU3"),
        ([reading(KILL), reading("RMA GPU3 : Not responding")], "RMA GPU3"),
        ([reading(KILL), reading(""), reading("sentinel: bad GPU")], "sentinel: bad GPU"),
        ([reading(KILL), reading("", out=False), reading("RMA GPU3")], ""),
        ([reading(KILL), reading("stale", out=False)], ""),
        ([reading(KILL), reading(f"{KILL}; bad dimm")], f"{KILL}; bad dimm"),
    ],
)
def test_what_a_reason_replaced(before: list[Reading], found: str) -> None:
    """Only since the node was last in service, newest first."""
    assert hidden(before, [], [KILL]) == found


LOG = """\
[2026-11-21T04:00:00.000] update_node: node n1 reason set to: old trouble
[2026-11-21T04:00:01.000] update_node: node n1 state set to UNDRAIN
[2026-11-21T04:10:00.000] update_node: node n1 reason set to: RMA GPU3
[2026-11-21T04:10:00.000] update_node: node n10 reason set to: something else
[2026-11-21T04:11:00.000] update_node: node n1 reason set to: Kill task failed
[2026-11-21T04:11:00.001] update_node: node n1 state set to DRAINING
[2026-11-21T04:11:00.002] error: slurmd error running JobId=2 on node(s)=n1: Kill task failed
[2026-11-21T04:11:00.003] sched: Allocate JobId=3 NodeList=n1 #CPUs=1
"""


def test_slurmctlds_log_knows_reasons_that_the_ledger_never_saw() -> None:
    """Given and replaced between two looks; a return to work ends what was before."""
    assert reasons(LOG, "n1") == ["RMA GPU3", "Kill task failed"]
    assert hidden([], reasons(LOG, "n1"), [KILL]) == "RMA GPU3"
    assert reasons("", "n1") == []


def test_lines_that_tell_something_of_a_node() -> None:
    """By its whole name, the last five, none too long, nothing in them that a terminal obeys."""
    assert lines_about(LOG, "n1").count("\n") == 4
    assert "n10" not in lines_about(LOG, "n1")
    assert lines_about(LOG, "n2") == ""
    line = f"[2.batch] error: *** JOB 2 ON n1 CANCELLED AT \x1b[31m{'x' * 999}"
    assert "\\x1b[31m" in telling(line)
    assert len(telling(line)) == 240
    assert telling("nothing of interest\n") == ""
