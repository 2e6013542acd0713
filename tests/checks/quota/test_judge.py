"""Rules of storage and metadata targets: the fullest decides, the median is beside it."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import SpaceLimits
from sentinel.checks.quota.judge import quota_finding, targets_finding
from sentinel.checks.quota.tools.quota import QuotaAmount, QuotaRow
from sentinel.checks.quota.tools.targets import StorageTarget
from sentinel.core.forecast.words import format_moment
from sentinel.core.model import Finding, Status
from sentinel.core.values import Share, Size
from tests.kinds import looks

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


def test_without_a_limit_of_its_space_a_target_is_judged_by_its_inodes() -> None:
    only = SpaceLimits(free=Size(TB), inodes_used=Share(90))
    full = target(99, inodes=1000, inodes_used=900)
    assert targets_finding("/scratch", [full], only, CRIT).status is Status.CRITICAL
    assert targets_finding("/scratch", [full], only, only).status is Status.CRITICAL
    assert targets_finding("/scratch", [target(99)], only, only).status is Status.OK


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
        (900, Status.WARNING, "90% of inodes used (warning from 90%)"),
        (969, Status.WARNING, "96.9% of inodes used (warning from 90%)"),
        (970, Status.CRITICAL, "97% of inodes used (critical from 97%)"),
        (1200, Status.CRITICAL, "100% of inodes used (critical from 97%)"),
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


@pytest.mark.parametrize(
    ("share", "status", "says"),
    [
        (84.9, Status.OK, "84.9% used"),
        (85.0, Status.WARNING, "85% used (warning from 85%)"),
        (94.9, Status.WARNING, "94.9% used (warning from 85%)"),
        (95.0, Status.CRITICAL, "95% used (critical from 95%)"),
    ],
)
def test_a_tool_that_tells_a_share_alone(share: float, status: Status, says: str) -> None:
    """Is judged by it; of bytes nothing is said, neither by us nor in the values."""
    quota = QuotaRow(kind="command", name="", space=QuotaAmount(used=0), share=share)
    finding = quota_finding("/home", quota, WARN, CRIT, 0.0)
    assert (finding.status, finding.summary) == (status, says)
    assert finding.values["used_percent"] == share
    assert finding.values["free_bytes"] is None
    assert finding.values["used_bytes"] is None
    assert finding.values["size_bytes"] is None
    assert quota_finding("/home", quota, SpaceLimits(), SpaceLimits(), 0.0).status is Status.OK


@pytest.mark.parametrize("level", ["warn", "crit"])
def test_free_bytes_cannot_be_judged_by_a_share(level: str) -> None:
    """That is unknown, and not well; what the share says is told beside it."""
    quota = QuotaRow(kind="command", name="", space=QuotaAmount(used=0), share=85.0)
    free = SpaceLimits(used=Share(85), free=Size(1))
    warn, crit = (free, CRIT) if level == "warn" else (WARN, replace(free, used=Share(95)))
    finding = quota_finding("/home", quota, warn, crit, 0.0)
    assert finding.status is Status.UNKNOWN
    assert finding.summary == (
        "85% used (warning from 85%); the tool tells no bytes, so `free` cannot be judged"
    )


@pytest.mark.parametrize(
    ("used", "grace", "status", "says"),
    [
        (10, 99.0, Status.OK, ""),
        (11, None, Status.WARNING, "over the soft limit of "),
        (11, 86_400.0, Status.WARNING, "(in 1d)"),
        (11, 86_399.0, Status.CRITICAL, "(in 23h 59m)"),
        (11, 1.0, Status.CRITICAL, "(in 1s)"),
        (11, 0.0, Status.CRITICAL, "its grace has ended, nothing can be written"),
    ],
)
def test_over_the_soft_limit_the_grace_decides(
    used: int, grace: float | None, status: Status, says: str
) -> None:
    """Less than a day of it is critical; without a grace nothing ends yet. Files the same."""
    amount = QuotaAmount(used=used, soft=10, hard=1000, grace=grace)
    roomy = QuotaAmount(used=1, hard=1000)
    nothing = SpaceLimits()
    for space, entries in ((amount, None), (amount, roomy), (roomy, amount)):
        quota = QuotaRow(kind="user", name="a", space=space, entries=entries)
        finding = quota_finding("/home", quota, nothing, nothing, 0.0)
        assert finding.status is status
        assert says in finding.summary
        assert (" of inodes of 10" in finding.summary) == (entries is amount and status.bad)


def test_what_a_message_has_of_a_quota() -> None:
    """Each number that there is; a limit of 0 is none."""
    space = QuotaAmount(used=25, soft=80, hard=100, grace=7.0)
    files = QuotaAmount(used=3, soft=5, hard=6, grace=8.0)
    quota = QuotaRow(kind="user", name="a", space=space, entries=files)
    assert quota_finding("/home", quota, WARN, CRIT, 0.0).values == {
        "used_percent": 25.0,
        "free_bytes": 75,
        "inodes_used_percent": 50.0,
        "size_bytes": 100,
        "used_bytes": 25,
        "soft_bytes": 80,
        "grace_seconds": 7.0,
        "type": "user",
        "entries": 3,
        "entries_limit": 6,
        "entries_grace_seconds": 8.0,
    }
    free = QuotaRow(kind="user", name="a", space=QuotaAmount(used=25), entries=QuotaAmount(used=3))
    values = quota_finding("/home", free, WARN, CRIT, 0.0).values
    limits = ("free_bytes", "size_bytes", "soft_bytes", "entries_limit", "used_percent")
    assert [values[name] for name in limits] == [None] * 5


def test_what_a_message_has_of_the_targets() -> None:
    """Storage and metadata each by the fullest; the table has the ten fullest, the fullest first."""
    many = [target(50 + n, name=f"OST{n:02}") for n in range(11)]
    meta = target(96, "metadata", "MDT0", inodes=1000, inodes_used=500)
    finding = found(*many, meta, StorageTarget(name="away", kind="data"))
    assert finding.values == {
        "targets": 13,
        "targets_away": 0,
        "fullest": "OST10",
        "fullest_used_percent": 60.0,
        "fullest_free_bytes": 40 * TB,
        "median_used_percent": 55.0,
        "metadata_used_percent": 96.0,
        "metadata_inodes_used_percent": 50.0,
    }
    names = [line.split()[0] for line in finding.details.splitlines()]
    assert names == ["MDT0", *(f"OST{n:02}" for n in range(10, 1, -1))]
    assert finding.details.startswith("MDT0  96%  ")
    alone = found(meta).values
    assert (alone["fullest"], alone["median_used_percent"]) == (None, None)
    assert found(target(1)).values["metadata_used_percent"] is None


def test_a_row_that_is_not_understood_costs_itself() -> None:
    """It is unknown and has no numbers."""
    row = QuotaRow(kind="user", name="a", space=QuotaAmount(used=0), unread="odd")
    finding = quota_finding("/home", row, WARN, CRIT, 0.0)
    assert (finding.status, finding.subject) == (Status.UNKNOWN, "/home user:a")
    assert finding.summary == "its row is not understood: odd"


@pytest.mark.parametrize(("used", "free"), [(99, 1), (100, 0), (120, 0)])
def test_what_is_free_of_a_quota_is_never_less_than_nothing(used: int, free: int) -> None:
    """Over the limit and at it nothing is left; a bad one comes with where to look, quoted."""
    quota = QuotaRow(kind="user", name="a", space=QuotaAmount(used=used, hard=100))
    finding = quota_finding("/a b", quota, WARN, CRIT, 0.0)
    assert finding.values["free_bytes"] == free
    assert looks(finding) == ("du -xah -d 1 '/a b/a' | sort -h | tail | cat -v",)
    roomy = QuotaRow(kind="user", name="a", space=QuotaAmount(used=1, hard=100))
    assert looks(quota_finding("/a b", roomy, WARN, CRIT, 0.0)) == ()


@pytest.mark.parametrize(
    ("kind", "name", "path", "read"),
    [
        ("user", "alice", "/home", "/home/alice"),
        ("user", "alice", "/home/alice/", "/home/alice"),
        ("user", "", "/home", "/home"),
        ("user", "0", "/", "/0"),
        ("fileset", "ml", "/gpfs/ml", "/gpfs/ml"),
    ],
)
def test_of_a_user_only_their_own_directory_is_read(
    kind: str, name: str, path: str, read: str
) -> None:
    """A du over everybody's homes takes hours and says nothing of theirs."""
    quota = QuotaRow(kind=kind, name=name, space=QuotaAmount(used=100, hard=100))
    finding = quota_finding(path, quota, WARN, CRIT, 0.0)
    assert looks(finding) == (f"du -xah -d 1 {read} | sort -h | tail | cat -v",)


def test_until_when_the_grace_lasts_is_said_by_its_end() -> None:
    """A moment that lies ahead; a target without numbers is in no table."""
    space = QuotaAmount(used=11, soft=10, hard=1000, grace=90_000.0)
    quota = QuotaRow(kind="user", name="a", space=space)
    now = 1_800_000_000.0
    ends = f"writing ends on {format_moment(now + 90_000, now)} (in "
    assert ends in quota_finding("/home", quota, WARN, CRIT, now).summary
    bare = StorageTarget(name="bare", kind="data")
    assert found(target(96), bare).details.startswith("OST0001  96%")
    assert "bare" not in found(target(96), bare).details


def test_over_the_soft_limit_alone_writes_go_on_until_the_grace_ends() -> None:
    """Whoever reads that they fail now looks for another cause."""
    space = QuotaAmount(used=90, soft=80, hard=100, grace=90_000)
    row = QuotaRow(kind="user", name="a", space=space)
    impact = quota_finding("/home", row, WARN, CRIT, 0.0).guidance.impact
    assert impact.startswith("When its grace has ended every write")
    ended = replace(row, space=replace(space, grace=0))
    assert quota_finding("/home", ended, WARN, CRIT, 0.0).guidance.impact.startswith("Now every")


FULL, ROOMY = QuotaAmount(used=100, hard=100), QuotaAmount(used=96, hard=100)


@pytest.mark.parametrize(
    ("space", "entries", "full"),
    [
        (FULL, None, True),
        (ROOMY, None, False),
        (ROOMY, QuotaAmount(used=9), False),
        (ROOMY, FULL, True),
        (QuotaAmount(used=7), FULL, True),
        (QuotaAmount(used=7), ROOMY, False),
    ],
)
def test_that_writes_fail_is_said_of_a_full_quota_alone(
    space: QuotaAmount, entries: QuotaAmount | None, full: bool
) -> None:
    """Of bytes or of files; a number without a limit is never full."""
    row = QuotaRow(kind="user", name="a", space=space, entries=entries)
    guidance = quota_finding("/home", row, WARN, CRIT, 0.0).guidance
    assert guidance.impact.startswith("Now every write" if full else "At the limit every write")
    assert guidance.ask == "raise the quota of user a on /home, or say where else the data may go"
    nameless = replace(row, name="")
    assert quota_finding("/h", nameless, WARN, CRIT, 0.0).guidance.ask.startswith(
        "raise the quota on /h,"
    )


def test_a_quota_that_is_well_has_nothing_to_do() -> None:
    row = QuotaRow(kind="user", name="a", space=QuotaAmount(used=1, hard=100))
    guidance = quota_finding("/home", row, WARN, CRIT, 0.0).guidance
    assert (guidance.impact, guidance.todo, guidance.ask) == ("", "", "")


@pytest.mark.parametrize(
    ("files", "warn", "crit", "short"),
    [
        (QuotaAmount(used=89, hard=100), WARN, CRIT, False),
        (QuotaAmount(used=90, hard=100), WARN, CRIT, True),
        (QuotaAmount(used=96, hard=100), SpaceLimits(), CRIT, False),
        (QuotaAmount(used=97, hard=100), SpaceLimits(), CRIT, True),
        (QuotaAmount(used=97, hard=100), WARN, SpaceLimits(), True),
        (QuotaAmount(used=99, hard=100), SpaceLimits(), SpaceLimits(), False),
        (QuotaAmount(used=99), WARN, CRIT, False),
        (QuotaAmount(used=6, soft=5, hard=100), WARN, CRIT, True),
        (QuotaAmount(used=5, soft=5, hard=100), WARN, CRIT, False),
        (None, WARN, CRIT, False),
    ],
)
def test_where_files_are_short_their_number_is_looked_at_first(
    files: QuotaAmount | None, warn: SpaceLimits, crit: SpaceLimits, short: bool
) -> None:
    """The words of it are explained then, and only then. Its grace makes the quota a bad one."""
    space = QuotaAmount(used=11, soft=10, hard=100)
    row = QuotaRow(kind="user", name="a", space=space, entries=files)
    finding = quota_finding("/home", row, warn, crit, 0.0)
    assert ("An inode is a file" in finding.guidance.todo) is short
    by_size = "du -xah -d 1 /home/a | sort -h | tail | cat -v"
    by_files = "du -x --inodes -d 1 /home/a | sort -n | tail | cat -v"
    assert looks(finding) == ((by_files, by_size) if short else (by_size,))
