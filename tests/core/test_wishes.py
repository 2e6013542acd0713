"""The grammar of wishes: followed or refused with a reason, whatever the bytes."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.cluster import MAX_WISH_CHARS
from sentinel.core.errors import Invalid
from sentinel.core.wishes import (
    MAX_PATTERN_CHARS,
    WISH_WORDS,
    Wish,
    find_script_words,
    parse_wish,
    parse_words,
    refuse_pattern,
)

WORDS = st.text(max_size=200) | st.sampled_from(
    [
        "off",
        "stale=15m",
        'progress="step (\\d+)"',
        "=",
        '"',
        "'",
        "\\",
        "stale=",
        "\n",
        "\0",
        "off=",
    ]
)


@pytest.mark.parametrize(
    ("words", "wish"),
    [
        (
            r'progress="step (\d+)" stale=15m off',
            Wish(off=True, stale=900.0, progress=r"step (\d+)"),
        ),
        ("off", Wish(off=True)),
        ("  stale=2h\t", Wish(stale=7200.0)),
        (r"progress=step=(\d+)", Wish(progress=r"step=(\d+)")),
        (r"progress='say \"(\d+)'", Wish(progress=r"say \"(\d+)")),
        (r'progress="say \"(\d+)"', Wish(progress=r'say "(\d+)')),
        ("off\nstale=1m", Wish(off=True, stale=60.0)),
    ],
)
def test_words_are_followed(words: str, wish: Wish) -> None:
    """Each word of the table, quoted and not; a backslash is the pattern's."""
    assert parse_words(words) == wish
    assert parse_wish(f"sentinel:{words}") == parse_wish(f" Sentinel: {words}") == wish


@pytest.mark.parametrize(
    ("words", "reason", "wish"),
    [
        ("", "asks for nothing", Wish()),
        ("00:12:00", "00:12:00 is none of off, stale=, progress=", Wish()),
        ("x" * 1015, "is none of off, stale=, progress=", Wish()),
        ("stael=15m off", "stael=15m is none of", Wish(off=True)),
        ("off=1", "off=1 is none of", Wish()),
        ("stale", "stale is none of", Wish()),
        ("stale=00:12:00 off", "stale=00:12:00 is no duration", Wish(off=True)),
        ("stale=5s", "stale=5s is not within 1m to 7d", Wish()),
        ("stale=3w", "stale=3w is not within 1m to 7d", Wish()),
        ("stale=1h stale=2h", "stale= is there twice", Wish(stale=3600.0)),
        ("progress=", "progress= has no pattern", Wish()),
        (f"progress={'a' * (MAX_PATTERN_CHARS + 1)}", "longer than 256 characters", Wish()),
        (r'progress="step (\d+) off', "close the quote", Wish()),
        (r'off progress="a"b', "close the quote", Wish(off=True)),
        ("a" * (MAX_WISH_CHARS + 1), "longer than 1024 characters", Wish()),
        ("\x1b[31mred", r"\x1b[31mred is none of", Wish()),
    ],
)
def test_a_refused_word_has_its_reason(words: str, reason: str, wish: Wish) -> None:
    """The other words are followed. The reason is one line that a terminal does not obey."""
    found = parse_words(words)
    assert reason in found.refused[0]
    assert found.refused[0].isprintable()
    assert found == Wish(wish.off, wish.stale, wish.progress, found.refused)


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "(null)",
        '{"APS": {"auto_resume_mode": "requeue"}}',
        "00:12:00",
        "x" * 1024,
        "sentinels: off",
        "see sentinel: off",
        "gr\\xfc\\xdfe",
    ],
)
def test_a_comment_of_another_tool_is_no_wish(comment: str) -> None:
    """So nothing is told of it."""
    assert parse_wish(comment) is None


@given(words=st.lists(WORDS, max_size=8).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_text_is_followed_or_refused(words: str) -> None:
    """Nothing raises, and what asks for nothing says why."""
    wish = parse_words(words)
    assert wish.off or wish.is_own_watch or wish.refused
    assert len(wish.refused) <= 3
    assert all(len(reason) < 200 and reason.isprintable() for reason in wish.refused)
    assert parse_words(words) == wish


def test_hostile_text_is_read_in_no_time() -> None:
    """The time goes with the length: CPU time, so that a busy machine does not matter."""
    begun = time.process_time()
    for text in ('"' * 1024, "=" * 1024, "a=" * 512, 'a="\\' * 256, " " * 1024, "\\" * 1024):
        for _ in range(20):
            parse_words(text)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"step (\d+)", ""),
        (r"(a+)+b (\d+)", ""),
        ("step (", "is no regular expression"),
        (r"step \d+", "captures nothing"),
        (r"(?x)(a+)+b", "is no regular expression: it may search without an end"),
        ("(" * 256, "is no regular expression"),
        ("a{99999999999}(b)", "is no regular expression"),
    ],
)
def test_a_pattern_is_refused_with_its_reason(pattern: str, why: str) -> None:
    """What may search without an end is accepted if its search can be limited."""
    assert re.match(f".*{re.escape(why)}", refuse_pattern(pattern))
    assert bool(refuse_pattern(pattern)) == bool(why)


def test_the_line_of_a_script_counts_before_its_first_command() -> None:
    """As with #SBATCH."""
    head = b"#!/bin/bash\r\n#SBATCH -N 2\r\n\r\n#SENTINEL stale=15m off\r\n"
    assert find_script_words(head + b"srun train\n#SENTINEL off\n") == "stale=15m off"
    assert find_script_words(b"#!/bin/bash\nsrun train\n#SENTINEL off\n") is None
    assert find_script_words(b"#!/bin/sh\n#SENTINELS off\n##SENTINEL off\n # x\n") is None
    assert find_script_words(b"#SENTINEL\n") == ""
    assert find_script_words(b"#\xff\xfe\0\n#SENTINEL off") == "off"
    with pytest.raises(Invalid, match="has 2 lines that begin with #SENTINEL"):
        find_script_words(b"#SENTINEL off\n#SENTINEL stale=1h\n")


def test_the_table_has_every_word() -> None:
    """docs/wishes.md is the one table of the grammar."""
    page = (Path(__file__).parents[2] / "docs" / "wishes.md").read_text()
    words = re.findall(r"^\| `([a-z]+=?)", page, re.MULTILINE)
    assert tuple(words) == WISH_WORDS
