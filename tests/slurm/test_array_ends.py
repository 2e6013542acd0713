"""How a job array ended."""

import pytest

from sentinel.core.cluster import JobRun
from sentinel.slurm.array_ends import end_of_array, is_array


def element(task: object, state: str = "COMPLETED", code: int | None = 0, job: int = 0) -> JobRun:
    return JobRun(
        job_id=str(job or f"91{task}"), id=f"9001_{task}", array_id="9001", state=state, exit_code=code,
    )  # fmt: skip


GOOD = [element(0), element(1), element(2, job=9001)]


@pytest.mark.parametrize(
    ("rows", "state", "elements"),
    [
        (GOOD, "COMPLETED", ""),
        (
            [element(0, "FAILED", 1), element(1, "OUT_OF_MEMORY", 0), *GOOD[2:]],
            "FAILED",
            "2 elements: 1 FAILED, 1 OUT_OF_MEMORY",
        ),
        ([element(0, "FAILED", 1), element(0)], "COMPLETED", ""),
        (
            [element(0, "FAILED", 1), element("[1-3]", "PENDING", None)],
            "PENDING",
            "1 element: 1 FAILED",
        ),
    ],
    ids=["all well", "that of the array's own number did well", "requeued, then well", "not over"],
)
def test_an_array_ends_as_its_worst_element(rows: list[JobRun], state: str, elements: str) -> None:
    """Its own number is that of one element, which says nothing of the others."""
    found = end_of_array(rows, "9001")
    assert found
    assert (found.end.state, found.elements) == (state, elements)


def test_a_job_is_no_array() -> None:
    """Nor is the element of another array."""
    plain = JobRun(job_id="7", id="7", array_id="7", state="COMPLETED")
    assert not is_array([plain], "7")
    assert not is_array(GOOD, "9002")
    assert is_array(GOOD, "9001")
    assert end_of_array(GOOD, "7") is None
