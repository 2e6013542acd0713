"""Rules of the future as the check tells it: a real tmpfs, and a history that is given."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.filesystems.forecast import MEMORY
from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.checks.fs import FsCheck
from sentinel.core.clock import Instant, get_elapsed_s, shift_instant
from sentinel.core.model import Finding, Report, Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.testing import START, context

MIB, HOUR = 2**20, 3600.0


@pytest.fixture
def scratch(tmp_path: Path, as_root: None) -> Iterator[Path]:
    """64 MiB and 1,000 inodes, half of the space used."""
    point = tmp_path / "scratch"
    point.mkdir()
    options = "size=64m,nr_inodes=1000"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(point)], check=True)
    (point / "data").write_bytes(b"x" * 32 * MIB)
    yield point
    subprocess.run(["umount", "--lazy", str(point)], check=True)


class Past:
    """A number that changed evenly by so much an hour until now; counts how often it was asked."""

    def __init__(self, **rates: float) -> None:
        self.rates, self.now, self.asked = rates, dict[str, float](), 0
        self.hours, self.end = 100, START

    def __call__(self, subject: str, name: str, span: float) -> Sequence[tuple[Instant, float]]:
        self.asked += 1
        rate, now = self.rates.get(name), self.now[name]
        if rate is None:
            return []
        moments = [shift_instant(self.end, -HOUR * back) for back in range(self.hours, 0, -1)]
        told = [(at, now - rate * get_elapsed_s(at, self.end) / HOUR) for at in moments]
        return [(at, value) for at, value in told if get_elapsed_s(at, self.end) <= span]


def look(scratch: Path, past: Past, memory: Any = None, after: float = 0, **wishes: Any) -> Report:
    """One run of the check, so many seconds after the start; the past ends where it is now."""
    check = FsCheck(paths=[FilePath(str(scratch))], **wishes)
    bare = FsCheck(paths=[FilePath(str(scratch))]).run(context())
    past.now = {s.name: s.value for s in bare.samples}
    return check.run(context(memory=memory or {}, now=shift_instant(START, after), history=past))


def one(report: Report) -> Finding:
    (finding,) = report.findings
    return finding


def soon(text: str) -> SpaceLimits:
    return SpaceLimits(full_in=Duration.parse(text))


FALLS = {"free_bytes": -1.0 * MIB}
"""32 MiB are left: full in 32 hours."""


@pytest.mark.parametrize(
    ("wishes", "status", "said"),
    [
        ({"warn": soon("33h")}, Status.WARNING, "(warning from 1d 9h before)"),
        ({"warn": soon("31h")}, Status.OK, "full on"),
        (
            {"warn": soon("3d"), "crit": soon("33h")},
            Status.CRITICAL,
            "(critical from 1d 9h before)",
        ),
        ({"warn": soon("3d"), "crit": soon("31h")}, Status.WARNING, "(warning from 3d before)"),
        ({"warn": soon("31h"), "lag": Duration(2 * HOUR)}, Status.WARNING, "(warning from"),
    ],
)
def test_the_time_that_is_left_is_judged(
    scratch: Path, wishes: dict[str, Any], status: Status, said: str
) -> None:
    """By the worse limit that is reached; counters that are late count against it."""
    found = one(look(scratch, Past(**FALLS), **wishes))
    assert (found.status, said in found.summary) == (status, True), found.summary
    assert " at 25.2 MB a day" in found.summary
    left = found.values["full_in_s"]
    assert left == pytest.approx(32 * HOUR - wishes.get("lag", 0), rel=0.02)


def test_inodes_have_a_future_of_their_own(scratch: Path) -> None:
    """All the space is left while they run out."""
    past = Past(free_bytes=0.0, inodes_used_percent=2.0)
    found = one(look(scratch, past, warn=soon("3d")))
    assert (found.status, "out of inodes on" in found.summary) == (Status.WARNING, True)
    assert found.values["full_in_s"] is None
    assert found.values["inodes_full_in_s"] == pytest.approx(50 * HOUR, rel=0.02)


def test_without_a_history_nothing_is_foreseen(scratch: Path) -> None:
    """A look by hand, and the first hours of a new check: the numbers of now, no guess."""
    past = Past(**FALLS)
    past.hours = 2
    for found in (
        one(look(scratch, Past(), warn=soon("3d"))),
        one(look(scratch, past, warn=soon("3d"))),
    ):
        assert (found.status, "full_in_s" in found.values) == (Status.OK, False)


def test_a_history_is_only_read_where_somebody_wants_to_know(scratch: Path) -> None:
    """The usual check asks the state for nothing."""
    past = Past(**FALLS)
    found = one(look(scratch, past))
    assert (past.asked, "full" in found.summary) == (0, False)


def test_a_forecast_is_counted_down_for_ten_minutes(scratch: Path) -> None:
    """Then, or when the level has changed by a hundredth, it is made anew."""
    past = Past(**FALLS)
    first = look(scratch, past, warn=soon("3d"))
    asked = past.asked
    second = look(scratch, past, first.memory, after=599, warn=soon("3d"))
    assert past.asked == asked
    left = [one(report).values["full_in_s"] for report in (first, second)]
    assert left[1] == pytest.approx(float(left[0] or 0) - 599)
    past.end = shift_instant(START, 600)
    look(scratch, past, first.memory, after=600, warn=soon("3d"))
    assert past.asked > asked
    (scratch / "more").write_bytes(b"x" * MIB)
    asked, past.end = past.asked, shift_instant(START, 60)
    look(scratch, past, first.memory, after=60, warn=soon("3d"))
    assert past.asked > asked


def test_a_memory_of_another_form_is_made_anew(scratch: Path) -> None:
    """What an older or newer sentinel remembered stops nothing."""
    first = look(scratch, Past(**FALLS), warn=soon("3d"))
    assert MEMORY in (first.memory or {})
    broken = {**(first.memory or {}), MEMORY: {str(scratch): {"at": "?"}}}
    again = look(scratch, Past(**FALLS), broken, warn=soon("3d"))
    assert one(again).status is Status.WARNING


@pytest.mark.parametrize(
    ("wish", "status", "said"),
    [
        ("8 checkpoints of 4MiB", Status.OK, "room for 8 checkpoints of 4.19 MB"),
        (
            "9 checkpoints of 4MiB",
            Status.WARNING,
            "room for 8 checkpoints of 4.19 MB (warning below 9)",
        ),
        (
            "2 checkpoints of 33MiB",
            Status.CRITICAL,
            "room for 0 checkpoints of 34.6 MB (critical below 1)",
        ),
        ("8 checkpoints", Status.OK, "the size of a checkpoint is not known yet"),
    ],
)
def test_room_for_checkpoints(scratch: Path, wish: str, status: Status, said: str) -> None:
    """Fewer than wanted is a warning, none at all is critical; an unknown size is no alarm."""
    found = one(look(scratch, Past(free_bytes=0.0), headroom=wish))
    assert (found.status, found.summary.endswith(said)) == (status, True), found.summary


def test_a_clock_that_was_set_back_is_no_history_of_the_future(scratch: Path) -> None:
    """Of a boot the monotonic clock counts: the same answer whatever the wall clock said."""
    past = Past(**FALLS)
    past.end = replace(START, wall=START.wall + 10**13)
    found = one(look(scratch, past, warn=soon("33h")))
    assert found.values["full_in_s"] == pytest.approx(32 * HOUR, rel=0.02)
