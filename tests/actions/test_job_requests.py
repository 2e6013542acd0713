"""What a request about a job says of it, and whether its log still stands where it stood."""

import pytest

from sentinel.actions.job_requests import (
    StillLogSighting,
    describe_log_change,
    make_exclude_command,
    make_job_request,
    parse_sighting,
)
from sentinel.core.errors import CannotTell
from sentinel.testing import job

STEP = StillLogSighting(path="/w/log", pattern=r"step ([\d,_]+)", number=1000.0)


@pytest.mark.parametrize(
    ("tail", "says"),
    [
        ("step 900\nstep 1000\nwarning: slow\n", ""),
        ("step 1,000\n", ""),
        ("step 1_000", ""),
        ("step 1000\nstep 20", ""),  # its last line is still being written
        ("step 1001\n", "its progress went from 1000 to 1001"),
        ("warning: slow\n", "its progress went from 1000 to none"),
    ],
)
def test_only_another_number_in_a_finished_line_is_progress(tail: str, says: str) -> None:
    assert describe_log_change(STEP, 10, tail) == says


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (10, 10, ""),
        (10, 11, "its log went from 10 to 11 bytes"),
        (None, 11, ""),  # nobody saw its size
        (10, None, "/w/log is gone"),
    ],
)
def test_without_a_pattern_any_byte_is_progress(
    before: int | None, now: int | None, says: str
) -> None:
    assert describe_log_change(StillLogSighting(path="/w/log", size=before), now, "") == says


def test_a_node_joins_those_that_a_job_excludes_already() -> None:
    """Slurm takes the list as a whole (scontrol(1), ExcNodeList)."""
    told = [make_exclude_command("7", before, "n3")[-1] for before in ("", "n[1-2]")]
    assert told == ["ExcNodeList=n3", "ExcNodeList=n[1-2],n3"]


def test_a_pattern_that_captures_no_number_proves_nothing() -> None:
    with pytest.raises(CannotTell, match="captured no number"):
        describe_log_change(StillLogSighting(path="/w/log", pattern="step"), 10, "step 1\n")


def test_a_request_names_the_run_and_all_that_was_seen() -> None:
    """One that has not begun has no start; pending elements of an array are one target."""
    seen = {"step": "1000"}
    request = make_job_request("cancel", job("7_[0-3]", "PENDING"), "x", seen=STEP, evidence=seen)
    assert (request.target, request.evidence) == ("7", seen)
    assert parse_sighting(request.params) == STEP
    assert "started" not in request.params
    plain = make_job_request("cancel", job("7+1", started=90), "x")
    assert (plain.target, plain.params) == ("7", {"started": "90", "user": job("7").user})
