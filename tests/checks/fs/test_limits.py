"""Rules of use and limits; numbers in, words out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.checks.filesystems.limits import (
    CRIT,
    WARN,
    FileSystemUsage,
    SpaceLimits,
    complete_limits,
    judge_usage,
    parse_usage,
)
from sentinel.checks.fs import FsCheck
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Share, Size, format_percent

TB = 10**12
NONE = SpaceLimits()


def usage(used: int, free: int, *, inodes: int = 0, inodes_free: int = 0) -> FileSystemUsage:
    return FileSystemUsage(
        size=used + free, used=used, free=free, inodes=inodes, inodes_free=inodes_free, type="xfs"
    )


def test_the_share_used_leaves_the_reserve_of_root_out() -> None:
    """As df: 600 of 1000 blocks used and 300 available are two thirds, not 60%."""
    seen = parse_usage("4096 1000 400 300 100 50 ext2/ext3\n")
    assert (seen.size, seen.used, seen.free) == (4096000, 2457600, 1228800)
    assert seen.used_percent == 66.67
    assert seen.inodes_used_percent == 50.0


def test_what_is_over_its_limit_is_more_than_all_of_it() -> None:
    """A quota of 1000 of which 1010 are used; what is exactly full is 100%."""
    over = FileSystemUsage(size=1000, used=1010, free=0, inodes=0, inodes_free=0, type="")
    assert over.used_percent == 101.0
    assert replace(over, used=1000).used_percent == 100.0


def test_an_exhausted_reserve_is_full() -> None:
    """Nothing available to users is 100%, whatever root still has."""
    assert parse_usage("4096 1000 40 0 100 50 ext4").used_percent == 100.0


def test_less_than_nothing_available_is_nothing() -> None:
    """NFS servers send negative numbers as huge ones."""
    assert parse_usage(f"4096 1000 0 {2**64 - 5} 100 50 nfs").free == 0
    assert parse_usage(f"4096 1000 0 {2**64 - 5} 100 50 nfs").used_percent == 100.0
    assert parse_usage(f"4096 1000 {2**64 - 5} {2**64 - 5} 100 50 nfs").used_percent == 100.0


def test_inodes_that_nobody_counts_have_no_share() -> None:
    """CephFS says how many there are and -1 for what is free; so do many FUSE file systems."""
    seen = parse_usage(f"4194304 1000 500 500 123456 {2**64 - 1} ceph")
    assert (seen.inodes_used_percent, seen.used_percent) == (None, 50.0)
    assert parse_usage(f"4096 1000 500 500 100 {2**64 - 5} nfs").inodes_used_percent == 100.0


@pytest.mark.parametrize("text", ["", "4096 1 2 3", "a b c d e f g", "1 2 3 4 5 6"])
def test_numbers_of_another_form_are_refused(text: str) -> None:
    """What cannot be read is an error, never a zero."""
    with pytest.raises(ValueError):
        parse_usage(text)


def test_a_type_without_a_name_has_spaces() -> None:
    """GNU stat prints UNKNOWN (0x…) for types it does not know."""
    assert parse_usage("1 9 3 4 5 3 UNKNOWN (0x47504653)").type == "UNKNOWN (0x47504653)"


number = st.integers(0, 2**64 - 1)


@given(number, number, number, number, number)
def test_shares_are_shares_whatever_a_server_says(a: int, b: int, c: int, d: int, e: int) -> None:
    """Between 0 and 100, or none; or the numbers contradict each other, which is an error."""
    try:
        seen = parse_usage(f"4096 {a} {b} {c} {d} {e} odd")
    except ValueError:
        return
    for share in (seen.used_percent, seen.inodes_used_percent):
        assert share is None or 0 <= share <= 100


@pytest.mark.parametrize(
    ("seen", "warn", "crit", "status", "summary"),
    [
        pytest.param(
            usage(96 * TB, 4 * TB),
            SpaceLimits(used=Share(85), free=Size(40 * TB)),
            SpaceLimits(used=Share(99), free=Size(10 * TB)),
            Status.CRITICAL,
            "96% used, 4 TB free (critical below 10 TB)",
            id="the absolute limit is the stricter",
        ),
        pytest.param(
            usage(96 * TB, 40 * TB),
            SpaceLimits(free=Size(50 * TB)),
            SpaceLimits(used=Share(70)),
            Status.CRITICAL,
            "70.5% used, 40 TB free (critical from 70%)",
            id="the relative limit is the stricter",
        ),
        pytest.param(
            usage(97, 3),
            NONE,
            SpaceLimits(used=Share(95), free=Size(10)),
            Status.CRITICAL,
            "97% used, 3 B free (critical from 95% or below 10 B)",
            id="both crossed, both named",
        ),
        pytest.param(
            usage(85, 15),
            SpaceLimits(used=Share(85)),
            NONE,
            Status.WARNING,
            "85% used, 15 B free (warning from 85%)",
            id="a share used is bad from the limit on",
        ),
        pytest.param(
            usage(8499, 1501),
            SpaceLimits(used=Share(85)),
            NONE,
            Status.OK,
            "84.9% used, 1.5 kB free",
            id="and well just below, also to the reader",
        ),
        pytest.param(
            usage(1, 10),
            NONE,
            SpaceLimits(free=Size(10)),
            Status.OK,
            "9% used, 10 B free",
            id="free: at the limit",
        ),
        pytest.param(
            usage(2, 9),
            NONE,
            SpaceLimits(free=Size(10)),
            Status.CRITICAL,
            "18.1% used, 9 B free (critical below 10 B)",
            id="free: below",
        ),
        pytest.param(
            usage(1, 99, inodes=100, inodes_free=5),
            NONE,
            SpaceLimits(inodes_used=Share(95)),
            Status.CRITICAL,
            "1% used, 99 B free, 95% of inodes used (critical from 95% of inodes)",
            id="inodes alone",
        ),
        pytest.param(
            usage(1, 99),
            NONE,
            SpaceLimits(inodes_used=Share(0)),
            Status.OK,
            "1% used, 99 B free",
            id="no fixed inodes, no limit on them",
        ),
        pytest.param(
            usage(0, 0),
            WARN,
            CRIT,
            Status.UNKNOWN,
            "reports no size (type xfs): there is nothing to watch",
            id="no size is no answer",
        ),
    ],
)
def test_the_stricter_limit_decides_and_is_named(
    seen: FileSystemUsage, warn: SpaceLimits, crit: SpaceLimits, status: Status, summary: str
) -> None:
    """Shares from the limit on, space below it; every limit crossed at that degree is named."""
    assert judge_usage(seen, warn, crit) == (status, summary)


def test_a_share_is_never_shown_above_what_it_is() -> None:
    """94.99 must not read as 95."""
    assert [format_percent(p) for p in (94.99, 95.0, 100.0, 0.04, 66.67)] == [
        "94.9%",
        "95%",
        "100%",
        "0%",
        "66.6%",
    ]


@pytest.mark.parametrize(
    ("warn", "crit", "effective"),
    [
        pytest.param(NONE, NONE, (WARN, CRIT), id="nothing given: the defaults"),
        pytest.param(
            SpaceLimits(used=Share(97)),
            NONE,
            (
                SpaceLimits(used=Share(97), inodes_used=Share(85)),
                SpaceLimits(inodes_used=Share(95)),
            ),
            id="one degree of space given: no default for the other",
        ),
        pytest.param(
            NONE,
            SpaceLimits(free=Size(TB)),
            (SpaceLimits(inodes_used=Share(85)), SpaceLimits(free=Size(TB), inodes_used=Share(95))),
            id="free space given: a share of it is not asked for",
        ),
        pytest.param(
            SpaceLimits(inodes_used=Share(50)),
            NONE,
            (SpaceLimits(used=Share(85), inodes_used=Share(50)), SpaceLimits(used=Share(95))),
            id="inodes given: space keeps its defaults",
        ),
    ],
)
def test_what_is_not_mentioned_keeps_its_default(
    warn: SpaceLimits, crit: SpaceLimits, effective: tuple[SpaceLimits, SpaceLimits]
) -> None:
    """Space and inodes each: given in any degree, or watched by default."""
    assert complete_limits(warn, crit) == effective


@pytest.mark.parametrize(
    ("warn", "crit", "message", "path"),
    [
        (
            SpaceLimits(used=Share(95)),
            SpaceLimits(used=Share(85)),
            "warns at 95% but is critical at 85% already: used has to be lower in warn than in crit",
            ("warn", "used"),
        ),
        (
            SpaceLimits(free=Size(10 * TB)),
            SpaceLimits(free=Size(40 * TB)),
            "warns at 10 TB but is critical at 40 TB already: "
            "free has to be higher in warn than in crit",
            ("warn", "free"),
        ),
        (
            SpaceLimits(inodes_used=Share(90.5)),
            SpaceLimits(inodes_used=Share(90)),
            "warns at 90.5% but is critical at 90% already: "
            "inodes_used has to be lower in warn than in crit",
            ("warn", "inodes_used"),
        ),
    ],
)
def test_limits_the_wrong_way_round_are_refused(
    warn: SpaceLimits, crit: SpaceLimits, message: str, path: tuple[str, ...]
) -> None:
    """The message names both, the remedy and the key."""
    with pytest.raises(Invalid) as error:
        FsCheck(warn=warn, crit=crit)
    assert (str(error.value), error.value.path) == (message, path)


def test_equal_limits_are_allowed() -> None:
    """Critical at once is a choice."""
    assert FsCheck(
        warn=SpaceLimits(used=Share(90)), crit=SpaceLimits(used=Share(90))
    ).warn.used == Share(90)


def test_a_relative_path_is_refused() -> None:
    """It would mean another folder after a restart."""
    with pytest.raises(Invalid, match="'scratch' is no absolute path") as error:
        FsCheck(paths=[FilePath("/a"), FilePath("scratch")])
    assert error.value.path == ("paths", 1)
