"""The pulse line, and the logs it must stay out of."""

import re

import pytest

from sentinel.core.model import Finding, Report, Status
from sentinel.core.settings import FilePath
from sentinel.plugin import Check
from sentinel.testing import ALL_SEEN, START
from tests.checks.job.making import check, glance, job

PULSE = FilePath("/logs/main_log.txt")


def pulse(report: Report) -> tuple[str, str]:
    """What would be written, and where."""
    written = check(pulse_log=PULSE).pulse(report, START)
    assert written is not None
    return written


class Growth:
    """A check that takes the growth of files for progress."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths

    def watched_logs(self) -> list[str]:
        return list(self.paths)


def test_a_pulse_is_one_greppable_line() -> None:
    """Time in UTC, status, the configured name and the summary."""
    path, line = pulse(glance(check(), job()))
    assert path == PULSE
    assert re.fullmatch(r"PULSE 2027-01-15T08:00:00Z ok train: running: job 10 on .*", line)


def test_without_a_pulse_log_there_is_no_pulse() -> None:
    """Nothing to write."""
    assert check().pulse(glance(check(), job()), START) is None


def test_a_blind_run_has_a_pulse_too() -> None:
    """Its finding is about the check itself; the line must not look like news of the job."""
    blind = Finding(subject="", status=Status.UNKNOWN, summary="Socket\ntimed out")
    _, line = pulse(Report(coverage=ALL_SEEN, findings=(blind,)))
    assert line.endswith(" unknown train: Socket\\ntimed out")
    _, line = pulse(Report(coverage=ALL_SEEN, findings=()))
    assert " unknown train: " in line
    seen = Finding(subject="train", status=Status.OK, summary="running")
    _, line = pulse(Report(coverage=ALL_SEEN, findings=(blind, seen)))
    assert line.endswith(" ok train: running")


def test_of_many_trainings_the_worst_is_named() -> None:
    """The line has room for one."""
    well = Finding(subject="alice/a", status=Status.OK, summary="running")
    dead = Finding(subject="bob/b", status=Status.CRITICAL, summary="not running")
    _, line = pulse(Report(coverage=ALL_SEEN, findings=(well, dead)))
    assert line.endswith(" critical train: bob/b: not running")


@pytest.mark.parametrize(
    ("watched", "wrong"),
    [
        ("/logs/main_log.txt", True),
        ("/logs//x/../main_log.txt", True),
        ("/logs/%x.txt", True),
        ("/logs/m%4t_log.txt", True),
        ("/logs/other.txt", False),
        ("/logs/main_logXtxt", False),
        ("/%x", False),
        ("/logs/%j/main_log.txt", False),
    ],
)
def test_the_pulse_never_goes_into_a_log_that_is_watched(watched: str, wrong: bool) -> None:
    """It would make a training that hangs look alive (the watchdog of BLOOM did so)."""
    others = {"progress": Growth("/logs/first", watched), "disk": Check()}
    found = list(check(pulse_log=PULSE).conflicts(others))
    assert [key for key, _ in found] == (["pulse_log"] if wrong else [])
    assert all("'progress'" in message for _, message in found)
    assert list(check().conflicts(others)) == []
