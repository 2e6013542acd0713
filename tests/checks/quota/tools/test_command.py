"""Rules of reading a site's own tool."""

import re

import pytest

from sentinel.checks.quota.tools.command import from_json, from_text, refuse
from sentinel.checks.quota.tools.quota import QuotaAmount, UnexpectedQuotaOutput
from sentinel.core.errors import Invalid


def test_json_of_one_or_several() -> None:
    """Bytes; what is missing of one is no limit, and a tool may say more than is read."""
    (one,) = from_json('{"used_bytes": 5, "limit_bytes": 10, "comment": "x"}')
    assert (one.row_title, one.space, one.entries) == (
        "command",
        QuotaAmount(used=5, hard=10),
        None,
    )
    several = from_json(
        '[{"name": "a", "used_bytes": 9, "soft_bytes": 8, "grace_seconds": 60, "entries": 3,'
        ' "entries_limit": 4}, {"name": "b", "used_bytes": 1}]'
    )
    assert [q.row_title for q in several] == ["command:a", "command:b"]
    assert several[0].space == QuotaAmount(used=9, soft=8, grace=60.0)
    assert several[0].entries == QuotaAmount(used=3, hard=4)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "5",
        "{}",
        '{"used_bytes": "5"}',
        '{"used_bytes": -1}',
        '{"used_bytes": 5}',
        '[{"used_bytes": 990, "hard_limit_bytes": 1000}]',
        "{",
        '[{"limit_bytes": 1}]',
    ],
)
def test_json_that_says_something_else_is_no_answer(text: str) -> None:
    """Never an empty or a zero quota."""
    with pytest.raises(UnexpectedQuotaOutput):
        from_json(text)


def test_a_pattern_reads_what_idrquota_prints() -> None:
    """A line of words, with units."""
    pattern = re.compile(r"(?P<name>\w+) - .*?: (?P<used>[\d.]+ \w+) / (?P<limit>[\d.]+ \w+)")
    text = "WORK - espace: 4.5 TiB / 5 TiB (90.00%)\nSTORE - espace: 1 TB / 50 TB\n"
    work, store = from_text(text, pattern)
    assert (work.name, work.space) == (
        "WORK",
        QuotaAmount(used=int(4.5 * 2**40), hard=5 * 2**40),
    )
    assert store.space == QuotaAmount(used=10**12, hard=50 * 10**12)


def test_a_share_alone_is_enough() -> None:
    """Of a whole that nobody tells."""
    (found,) = from_text("capacity 87.5 %", re.compile(r"(?P<percent>[\d.]+) %"))
    assert (found.share, found.space.used, found.space.hard_end) == (87.5, 0, 0)
    for word in ("8.7.5", "87,5", "1e999"):
        with pytest.raises(UnexpectedQuotaOutput):
            from_text(f"capacity {word} %", re.compile(r"(?P<percent>\S+) %"))


@pytest.mark.parametrize(
    ("word", "size"),
    [
        ("1024", 1024),
        ("1,024", 1024),
        ("1,024,000", 1024000),
        ("2K", 2048),
        ("1.5T", 3 * 2**39),
        ("40TB", 40 * 10**12),
    ],
)
def test_sizes_with_and_without_units(word: str, size: int) -> None:
    """A letter alone is a power of 1024, as du and lfs have it."""
    (found,) = from_text(f"u={word} l=1", re.compile(r"u=(?P<used>\S+) l=(?P<limit>\S+)"))
    assert found.space.used == size


@pytest.mark.parametrize("text", ["", "nothing of the kind", "u=lots l=1", "u=2,3T l=1"])
def test_a_text_that_does_not_fit_is_no_answer(text: str) -> None:
    """Neither no match nor a number that is none."""
    with pytest.raises(UnexpectedQuotaOutput):
        from_text(text, re.compile(r"u=(?P<used>\S+) l=(?P<limit>\S+)"))


@pytest.mark.parametrize(
    "pattern", [r"(\d+)", r"(?P<used>\d+)", r"(?P<limit>\d+)", r"(?P<uesd>\d+) (?P<limit>\d+)"]
)
def test_a_pattern_without_the_numbers_is_refused(pattern: str) -> None:
    """When it is read, not at three in the morning."""
    with pytest.raises(Invalid):
        refuse(re.compile(pattern))


def test_patterns_that_are_enough() -> None:
    """used and limit, or percent."""
    refuse(re.compile(r"(?P<used>\d+) (?P<limit>\d+) (?P<entries>\d+)"))
    refuse(re.compile(r"(?P<percent>\d+)"))


@pytest.mark.parametrize("word", ["unlimited", "none", "-", "None"])
def test_words_for_no_limit_in_a_table(word: str) -> None:
    """As the tools that are known say it; a star marks what is over its limit."""
    pattern = re.compile(r"(?P<used>\S+) (?P<soft>\S+) (?P<limit>\S+)")
    (found,) = from_text(f"12T* {word} {word}", pattern)
    assert found.space == QuotaAmount(used=12 * 2**40)
    with pytest.raises(UnexpectedQuotaOutput):
        from_text("none 1 2", pattern)


TABLE = """\
Project   ID     Used      Quota
--------------------------------
mmc       4328   140.7T*   80T
car       4440   39.13T    50T
tap       4570   595.7T    3P
"""
"""A site's own table, with a star behind what is above the quota (NatLabRockies/HPC issue 390)."""
COLUMNS = r"^(?P<name>{name}) +\d+ +(?P<used>[\d.]+[KMGTP]){star} +(?P<limit>[\d.]+[KMGTP])$"


def names(text: str, name: str = r"\w+", star: str = r"\*?") -> tuple[list[str], list[str]]:
    """The names of the rows that are read, and of those that are not."""
    found = from_text(text, re.compile(COLUMNS.format(name=name, star=star)))
    return [q.name for q in found if not q.unread], [q.name for q in found if q.unread]


def test_a_pattern_means_lines() -> None:
    """^ and $ are the ends of a row."""
    assert names(TABLE) == (["mmc", "car", "tap"], [])


def test_a_row_that_does_not_fit_is_not_left_out() -> None:
    """The pattern knows no star: exactly what is above its quota would not be seen."""
    assert names(TABLE, star="") == (["car", "tap"], ["mmc"])
    assert names(TABLE.replace("140.7T*", "140.7T *"), star="") == (["car", "tap"], ["mmc"])
    assert names(TABLE.replace("39.13T", "N/A")) == (["mmc", "tap"], ["car"])


def test_a_pattern_may_choose_some_names() -> None:
    """The other rows would match with such a name, so they are left out on purpose."""
    assert names(TABLE, name="t[a-z]+") == (["tap"], [])
    assert names(TABLE, name="mmc|car") == (["mmc", "car"], [])


@pytest.mark.parametrize(
    "more", ["As of 2026-11-28 03:14\n", "Sum of projects: 3\n", "\n\n", "# x 1 y z\n"]
)
def test_other_lines_are_no_rows(more: str) -> None:
    """Headings, dates, sums in another form."""
    assert names(f"{more}{TABLE}{more}") == (["mmc", "car", "tap"], [])
