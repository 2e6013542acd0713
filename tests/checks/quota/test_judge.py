"""Rules of storage and metadata targets: the fullest decides, the median is beside it."""

from typing import Any

import pytest

from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.checks.quota.judge import quota_finding, targets_finding
from sentinel.checks.quota.tools.quota import QuotaAmount, QuotaRow, StorageTarget
from sentinel.core.model import Finding, Status
from sentinel.core.values import Share

WARN = SpaceLimits(used=Share(85), inodes_used=Share(90))
CRIT = SpaceLimits(used=Share(95), inodes_used=Share(97))
TB = 10**12


def target(used: float, kind: str = "data", name: str = "OST0001", **more: Any) -> StorageTarget:
    """Of 100 TB, so many percent used."""
    level = int(used * TB)
    return StorageTarget(
        name=name, kind=kind, size=100 * TB, used=level, free=100 * TB - level, **more
    )


def found(*targets: StorageTarget) -> Finding:
    return targets_finding("/scratch", targets, WARN, CRIT)


@pytest.mark.parametrize(
    ("used", "status"),
    [
        (84.9, Status.OK),
        (85.0, Status.WARNING),
        (94.9, Status.WARNING),
        (95.0, Status.CRITICAL),
        (100.0, Status.CRITICAL),
    ],
)
def test_the_fullest_decides(used: float, status: Status) -> None:
    """However empty the others are: a file that lies there can grow no more."""
    finding = found(target(10, name="OST0000"), target(used, name="OST0007"), target(20))
    assert (finding.subject, finding.status) == ("/scratch targets", status)
    assert f"fullest storage target OST0007 {used:g}% used" in finding.summary
    assert "(median 20%" in finding.summary
    assert finding.values["fullest"] == "OST0007"
    assert finding.values["fullest_used_percent"] == used
    assert finding.details.startswith("OST0007") == status.bad


def test_metadata_is_judged_by_itself() -> None:
    """Both kinds that are bad are told; the worse decides."""
    finding = found(target(86), target(96, "metadata", "MDT0000"))
    assert finding.status is Status.CRITICAL
    assert "fullest storage target OST0001 86% used" in finding.summary
    assert "fullest metadata target MDT0000 96% used" in finding.summary
    assert finding.values["metadata_used_percent"] == 96.0


@pytest.mark.parametrize(
    ("inodes", "status"), [(899, Status.OK), (900, Status.WARNING), (970, Status.CRITICAL)]
)
def test_inodes_of_a_target_run_out_too(inodes: int, status: Status) -> None:
    """With terabytes free."""
    finding = found(target(5, "metadata", "MDT0000", inodes=1000, inodes_used=inodes))
    assert finding.status is status
    assert ("of inodes used" in finding.summary) == status.bad


def test_a_target_that_is_away_is_told_with_the_tools_words() -> None:
    """It counts for no share: neither the fullest nor the median."""
    away = [
        StorageTarget(name=f"OST{n}", kind="data", trouble="inactive\x1b[31m") for n in range(7)
    ]
    finding = found(target(50), *away)
    assert finding.status is Status.WARNING
    assert "7 in trouble: OST0, OST1, OST2, OST3, OST4 (inactive\\x1b[31m)" in finding.summary
    assert (finding.values["targets"], finding.values["targets_away"]) == (8, 7)
    assert finding.values["median_used_percent"] == 50.0


def test_no_targets_are_no_good_news() -> None:
    """A tool that names none has said nothing."""
    finding = found()
    assert (finding.status, finding.summary) == (Status.UNKNOWN, "names no target")


def test_a_target_without_numbers_is_not_full_and_not_well() -> None:
    """Nothing was measured of it."""
    finding = found(StorageTarget(name="OST0000", kind="data"))
    assert (finding.status, finding.values["fullest"]) == (Status.UNKNOWN, None)


@pytest.mark.parametrize(
    ("used", "status", "says"),
    [
        (899, Status.OK, "7 B used, no limit"),
        (900, Status.WARNING, "90% of files used (warning from 90%)"),
        (969, Status.WARNING, "96.9% of files used (warning from 90%)"),
        (970, Status.CRITICAL, "97% of files used (critical from 97%)"),
        (1200, Status.CRITICAL, "100% of files used (critical from 97%)"),
    ],
)
def test_a_limit_on_files_alone_is_judged(used: int, status: Status, says: str) -> None:
    """Where bytes have no limit nobody can write a new file all the same."""
    quota = QuotaRow(
        kind="user",
        name="alice",
        space=QuotaAmount(used=7),
        entries=QuotaAmount(used=used, hard=1000),
    )
    finding = quota_finding("/home", quota, WARN, CRIT, 0.0)
    assert (finding.status, finding.summary) == (status, says)
    assert finding.values["inodes_used_percent"] == min(100.0, used / 10)
    assert finding.values["entries_limit"] == 1000


def test_without_a_limit_on_files_nothing_is_said_of_them() -> None:
    """A control: neither by a limit of the check without a limit of the quota, nor the other way."""
    free = QuotaRow(
        kind="user", name="a", space=QuotaAmount(used=7), entries=QuotaAmount(used=9000)
    )
    held = QuotaRow(
        kind="user", name="a", space=QuotaAmount(used=7), entries=QuotaAmount(used=9, hard=9)
    )
    nothing = SpaceLimits(used=Share(85))
    assert quota_finding("/home", free, WARN, CRIT, 0.0).summary == "7 B used, no limit"
    assert quota_finding("/home", held, nothing, nothing, 0.0).status is Status.OK
    assert quota_finding("/home", held, WARN, nothing, 0.0).status is Status.WARNING
