"""Rules of limits, graces and numbers as tools write them."""

import pytest

from sentinel.checks.quota.tools.quota import (
    QuotaAmount,
    QuotaRow,
    UnexpectedQuotaOutput,
    parse_grace,
    parse_quota_bytes,
    parse_quota_count,
    seconds_until,
)


@pytest.mark.parametrize(
    ("amount", "limit", "over"),
    [
        pytest.param(QuotaAmount(used=5), 0, False, id="no limit at all"),
        pytest.param(QuotaAmount(used=5, hard=10), 10, False, id="a hard one"),
        pytest.param(QuotaAmount(used=5, soft=8, hard=10), 10, False, id="below the soft one"),
        pytest.param(QuotaAmount(used=8, soft=8, hard=10), 10, False, id="at the soft one"),
        pytest.param(QuotaAmount(used=9, soft=8, hard=10, grace=60.0), 10, True, id="within grace"),
        pytest.param(
            QuotaAmount(used=9, soft=8, hard=10, grace=0.0), 8, True, id="grace has ended"
        ),
        pytest.param(QuotaAmount(used=9, soft=8), 8, True, id="a soft one alone"),
    ],
)
def test_where_writing_ends(amount: QuotaAmount, limit: int, over: bool) -> None:
    """The hard limit; the soft one once its grace has ended."""
    assert (amount.hard_end, amount.over_soft) == (limit, over)


@pytest.mark.parametrize(
    ("word", "over", "left"),
    [
        ("-", False, None),
        ("", False, None),
        ("0", False, None),
        ("none", False, None),
        ("none", True, 0.0),
        ("[--none--]", True, 0.0),
        ("[-none-]", False, None),
        ("[--------]", False, None),
        ("expired", False, 0.0),
        ("6days", True, 6 * 86_400.0),
        ("7 days", True, 7 * 86_400.0),
        ("1 day", True, 86_400.0),
        ("6d23h59m58s", True, 604_798.0),
        ("1w2d", True, 9 * 86_400.0),
        ("23:59", True, 86_340.0),
        ("[6 days]", True, 6 * 86_400.0),
        ("[2 days 03:04:05]", True, 2 * 86_400 + 3 * 3600 + 4 * 60 + 5.0),
    ],
)
def test_a_grace_as_tools_write_it(word: str, over: bool, left: float | None) -> None:
    """None: not running; 0: over."""
    assert parse_grace(word, over) == left


@pytest.mark.parametrize("word", ["soon", "6 moons", "1:2:3:4", "6dx", "d6"])
def test_a_grace_in_another_form_is_no_answer(word: str) -> None:
    """What is new is never guessed at."""
    with pytest.raises(UnexpectedQuotaOutput):
        parse_grace(word, True)


def test_a_number_may_be_marked_as_over() -> None:
    """And nothing else may be in it."""
    assert (parse_quota_count("12"), parse_quota_count("12*")) == (12, 12)
    for word in ("", "-1", "1.5", "[12]", "12k", "٣"):
        with pytest.raises(UnexpectedQuotaOutput):
            parse_quota_count(word)


@pytest.mark.parametrize("word", ["-", "none", "None", "unlimited", ""])
def test_words_for_no_limit(word: str) -> None:
    """They count as 0, which is none."""
    assert parse_quota_bytes(word, 1024) == 0
    assert parse_quota_bytes("2", 1024) == 2048


def test_a_moment_becomes_what_is_left() -> None:
    """Seconds; 0 is no moment, one that has passed leaves nothing."""
    assert (seconds_until(0, 100.0), seconds_until(160, 100.0), seconds_until(90, 100.0)) == (
        None,
        60.0,
        0.0,
    )


def test_a_quota_is_named_by_kind_and_owner() -> None:
    """`user:alice`, or the kind alone."""
    space = QuotaAmount(used=1)
    assert QuotaRow(kind="user", name="alice", space=space).row_title == "user:alice"
    assert QuotaRow(kind="directory", name="", space=space).row_title == "directory"


def test_what_a_tool_printed_is_shown_shortened() -> None:
    """One line for a person, whatever it was."""
    assert len(str(UnexpectedQuotaOutput("x\n" * 5000))) < 1000
