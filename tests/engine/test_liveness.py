"""When the watcher may look alive."""

import pytest

from sentinel.core.clock import shift_instant
from sentinel.core.model import CheckRun, Status
from sentinel.engine.liveness import MAX_LATENESS_S, find_unhealthy_checks
from sentinel.testing import START


def run(blind: bool = False) -> CheckRun:
    return CheckRun(
        check="disks",
        kind="fs",
        at=START,
        status=Status.OK,
        summary="no answer",
        duration=0.1,
        blind=blind,
    )


@pytest.mark.parametrize(
    ("runs", "interval", "later", "words"),
    [
        ([run()], 60.0, 0, ""),
        ([run()], 60.0, 120 + MAX_LATENESS_S, ""),
        ([run()], 60.0, 121 + MAX_LATENESS_S, "disks has not run for 181 s"),
        ([run()], None, 10**6, ""),
        ([run(blind=True)], 60.0, 0, "disks is blind: no answer"),
        ([], 60.0, 0, "disks has not run yet"),
        ([], None, 0, "disks has not run yet"),
    ],
)
def test_only_when_all_checks_ran_lately_and_could_see(
    runs: list[CheckRun], interval: float | None, later: float, words: str
) -> None:
    """Critical findings do not matter here: the watcher saw them."""
    found = find_unhealthy_checks(runs, {"disks": interval}, shift_instant(START, later))
    assert found == ([words] if words else [])
