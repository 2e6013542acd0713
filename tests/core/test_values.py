"""Durations, sizes and shares: what is understood, what is refused, how they print."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.errors import Invalid
from sentinel.core.values import Duration, Share, Size, age_text, duration_text, size_text

YEAR_100 = 36_500 * 86_400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("5ms", 0.005),
        ("90s", 90),
        ("1.5h", 5400),
        ("15m", 900),
        ("1h30m", 5400),
        ("2h 05m", 7500),
        ("3d 4h", 273_600),
        ("1w", 604_800),
        (" 10 s ", 10),
        ("1d2h3m4s5ms", 93_784.005),
        ("36500d", YEAR_100),
    ],
)
def test_a_duration_is_a_number_with_a_unit_or_several_from_large_to_small(
    text: str, seconds: float
) -> None:
    """Every documented form is understood, to the millisecond."""
    assert Duration.parse(text) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "90",
        "s",
        "-5m",
        "5 minutes",
        "5M",
        "1e3s",
        "1,5h",
        ".5h",
        "1 5m",
        "30m1h",
        "5m5m",
        "٣s",
        "5m\n\x00",
        "9" * 20 + "s",
    ],
)
def test_what_could_be_read_in_two_ways_is_no_duration(text: str) -> None:
    """No unit, a wrong order, a repeated unit, other digits: refused with the remedy."""
    with pytest.raises(Invalid, match="is no duration; write it like 90s, 15m, 2h or 3d"):
        Duration.parse(text)


def test_a_duration_ends_at_a_hundred_years() -> None:
    """Beyond that, microseconds since 1970 would leave 64 bits."""
    with pytest.raises(Invalid, match="'36500d1s' is longer than 100 years"):
        Duration.parse("36500d1s")
    with pytest.raises(Invalid, match="longer than 100 years"):
        Duration.parse("999999999999999w")


def test_an_error_quotes_only_the_beginning_of_a_long_text() -> None:
    """A megabyte in a setting does not become a megabyte of error."""
    for parse in (Duration.parse, Size.parse, Share.parse):
        with pytest.raises(Invalid) as caught:
            parse("x" * 1_000_000)
        assert len(str(caught.value)) < 120


@given(st.integers(min_value=0, max_value=YEAR_100 * 1000))
def test_the_exact_text_of_a_duration_reads_back_the_same(milliseconds: int) -> None:
    """exact() loses nothing down to the millisecond."""
    duration = Duration(milliseconds / 1000)
    assert round(Duration.parse(duration.exact()) * 1000) == milliseconds


@given(st.floats(min_value=0.001, max_value=YEAR_100))
def test_the_printed_duration_is_near_the_true_one(seconds: float) -> None:
    """To the millisecond below 1s, the second below 1h, 5% above; never more than it was."""
    lost = seconds - Duration.parse(str(Duration(seconds)))
    assert -1e-9 <= lost < (0.0011 if seconds < 1 else 1 if seconds < 3600 else seconds * 0.05)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0004, "1ms"),
        (0.9999, "999ms"),
        (1, "1s"),
        (45.9, "45s"),
        (59, "59s"),
        (60, "1m"),
        (61, "61s"),
        (90, "90s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m 01s"),
        (150, "2m 30s"),
        (3599, "59m 59s"),
        (3600, "1h"),
        (3659, "1h"),
        (3660, "1h 01m"),
        (7500, "2h 05m"),
        (86_399, "23h 59m"),
        (86_400, "1d"),
        (273_600, "3d 4h"),
        (-90, "-90s"),
        (math.inf, "for ever"),
        (-math.inf, "never"),
        (math.nan, "never"),
    ],
)
def test_people_see_the_two_largest_units(seconds: float, text: str) -> None:
    """Rounded down, so that nothing is said to last longer than it did."""
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0),
        ("1B", 1),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("500GB", 500 * 10**9),
        ("40TB", 40 * 10**12),
        ("2TiB", 2 * 2**40),
        (" 1.5 GB ", 1_500_000_000),
        ("0.1PiB", 112_589_990_684_262),
        ("9007199254740993B", 9_007_199_254_740_993),
        ("0.5B", 1),
        ("9223372.036854775807TB", 2**63 - 1),
    ],
)
def test_a_size_counts_by_thousands_or_by_1024_as_its_unit_says(text: str, size: int) -> None:
    """Exact to the byte, also where floats are not."""
    assert Size.parse(text) == size


@pytest.mark.parametrize(
    "text", ["", "40", "TB", "40 tb", "40T", "-1GB", "1e3GB", "1GB 2MB", "1 000GB", "٣GB", "40Tb"]
)
def test_a_size_without_a_known_unit_is_refused(text: str) -> None:
    """`40T` may mean either kind of T, so it means none."""
    with pytest.raises(Invalid, match="is no size; write it like 500GB, 40TB or 2TiB"):
        Size.parse(text)


def test_a_size_ends_where_64_bits_end() -> None:
    """statvfs and the databases hold no more."""
    assert Size.parse("9223372036.854775807GB") == 2**63 - 1
    with pytest.raises(Invalid, match="is larger than any file system"):
        Size.parse("9223372036.854775808GB")


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_the_exact_text_of_a_size_reads_back_the_same(size: int) -> None:
    """exact() loses no byte."""
    assert Size.parse(Size(size).exact()) == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (10**13, "10TB"), (2**41, "2TiB"), (1537, "1537B"), (1_500_000_000, "1500MB")],
)
def test_an_exact_size_takes_the_largest_unit_that_divides_it(size: int, text: str) -> None:
    """What a user would have written."""
    assert Size(size).exact() == text


@given(st.integers(min_value=0, max_value=10**18))
def test_the_printed_size_is_within_half_a_percent(size: int) -> None:
    """Three significant digits."""
    assert abs(Size.parse(str(Size(size))) - size) <= size * 0.005


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1200, "1.2 kB"),
        (99_940, "99.9 kB"),
        (99_960, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (1_200_000_000_000, "1.2 TB"),
        (5 * 10**21, "5000 EB"),
        (-1_200_000, "-1.2 MB"),
    ],
)
def test_people_see_three_digits_and_a_power_of_ten(size: float, text: str) -> None:
    """On both sides of each change of unit."""
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("text", "share"), [("0%", 0), ("85%", 85), ("99.9 %", 99.9), ("100%", 100), ("100.0%", 100)]
)
def test_a_share_is_a_number_of_percent(text: str, share: float) -> None:
    """From nothing to all."""
    assert Share.parse(text) == share


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("85", "'85' is no share; write it like 85%"),
        ("-1%", "'-1%' is no share; write it like 85%"),
        ("0.85", "'0.85' is no share; write it like 85%"),
        ("%", "'%' is no share; write it like 85%"),
        ("100.1%", "'100.1%' is more than 100%"),
    ],
)
def test_what_is_no_share_is_told(text: str, message: str) -> None:
    """A fraction is not taken for percent."""
    with pytest.raises(Invalid) as caught:
        Share.parse(text)
    assert str(caught.value) == message


@given(st.floats(min_value=0, max_value=100))
def test_the_text_of_a_share_reads_back_to_a_millionth(share: float) -> None:
    """Never in the exponent form that no one could write."""
    assert Share.parse(str(Share(share))) == pytest.approx(share, abs=1e-6)


def test_values_print_their_text_in_formatted_strings() -> None:
    """An f-string shows the unit, not the bare number."""
    assert f"{Duration(900)} {Size(10**13)} {Share(85)}" == "15m 10 TB 85%"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (-3.0, "0s"), (59.9, "59s"), (60.0, "1m"), (150.9, "2m 30s"), (7200.9, "2h")],
)
def test_an_age_is_in_whole_seconds_that_are_over(seconds: float, text: str) -> None:
    """A page, a command and a message about one moment may not differ by a rounding."""
    assert age_text(seconds) == text
