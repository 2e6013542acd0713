"""Times, counts and host lists as Slurm prints them."""

import pytest

from sentinel.slurm import words


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [
        (b"0:30", 30),
        (b"10:00", 600),
        (b"1:00:00", 3600),
        (b"1-00:00:00", 86400),
        (b"365-00:00:00", 31536000),
        (b"UNLIMITED", None),
        (b"NOT_SET", None),
        (b"INVALID", None),
    ],
)
def test_a_time_limit_is_seconds(printed: bytes, seconds: int | None) -> None:
    """`[[days-]hours:]minutes:seconds` is seconds; words for none are None."""
    assert words.parse_time_limit(printed) == seconds


@pytest.mark.parametrize("printed", [b"30", b"1:2:3:4", b"1-00", b"x", b"-1:00"])
def test_another_form_of_time_limit_is_refused(printed: bytes) -> None:
    """What squeue never prints is an error, not a guess."""
    with pytest.raises(ValueError, match="is no time limit"):
        words.parse_time_limit(printed)


@pytest.mark.parametrize(
    ("printed", "moment"),
    [(b"1790000000", 1790000000), (b"N/A", None), (b"NONE", None), (b"Unknown", None)],
)
def test_a_moment_is_epoch_seconds(printed: bytes, moment: int | None) -> None:
    """SLURM_TIME_FORMAT=%s makes numbers; a moment that Slurm does not know is None."""
    assert words.parse_epoch(printed) == moment


def test_a_moment_in_a_calendar_form_is_refused() -> None:
    """A Slurm that ignored SLURM_TIME_FORMAT is noticed: its times have an unknown zone."""
    with pytest.raises(ValueError, match="invalid literal"):
        words.parse_epoch(b"2026-11-21T01:28:53")


@pytest.mark.parametrize(
    ("task", "count"),
    [
        ("", 1),
        ("3", 1),
        ("0", 1),
        ("0-5", 6),
        ("0-5%2", 6),
        ("0-5,9%2", 7),
        ("0-100:4", 26),
        ("0-99:4%1", 25),
        ("1,3,5", 3),
        ("0-99999", 100000),
    ],
)
def test_array_elements_of_a_row_are_counted(task: str, count: int) -> None:
    """Lists, ranges, steps and the limit of simultaneous tasks."""
    assert words.count_elements(task) == count


@pytest.mark.parametrize("task", ["1,3,5,...", "a", "0-", "0x7f"])
def test_an_array_list_that_was_cut_is_refused(task: str) -> None:
    """`...` means that SLURM_BITSTR_LEN=0 was not honoured: the count would be too small."""
    with pytest.raises(ValueError, match="invalid literal"):
        words.count_elements(task)


def test_a_nonce_is_new_each_time_and_plain_to_slurm() -> None:
    """It opens with a letter and has neither %, comma, blank nor quote."""
    drawn = {words.make_nonce() for _ in range(1000)}
    assert len(drawn) == 1000
    assert all(len(one) == 12 and one[0] == "x" for one in drawn)
    assert not set("".join(drawn)) & set("%,:;|. '\"\\\n=")


def test_bytes_in_no_encoding_stay_visible() -> None:
    """Nothing is dropped and nothing raises."""
    assert words.decode_text(b"a\xffb\xc3\xa4") == "a\\xffbä"


@pytest.mark.parametrize(
    ("printed", "number"),
    [(b"1023", 1023), (b"1K", 1024), (b"1.50K", 1536), ("2K", 2048), (b"4M", 4 << 20)],
)
def test_a_count_in_units(printed: bytes | str, number: int) -> None:
    """squeue(1), --noconvert: without it 1,024 nodes are `1K` (convert_num_unit2())."""
    assert words.parse_count(printed) == number


@pytest.mark.parametrize("printed", [b"", b"K", b"1k", b"1.5", b"1.555K", b"-1K", b"1 K", "1KK"])
def test_what_is_no_count(printed: bytes | str) -> None:
    """Likewise: nothing is guessed."""
    with pytest.raises(ValueError):
        words.parse_count(printed)
