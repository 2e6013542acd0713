"""What people wrote beside a node's reason: https://slurm.schedmd.com/scontrol.html, Comment, Extra."""

import pytest

from sentinel.slurm.node_notes import is_note


@pytest.mark.parametrize(
    ("before", "now", "right"),
    [
        ("", "please leave it drained", True),
        ('{"pod": "a"}', '{"pod": "a", "keep": "b"}', True),
        ('{"hold": "no"}', '{"hold": "yes"}', True),  # scontrol update NodeName=n1 Extra=…
        ('{"pod": "a-1", "seen": 1}', '{"pod": "a-7", "seen": 2}', False),
        ('{"pod": "a"}', '{"pod": ', False),  # cut
        ("pod", "", False),
        ("pod", "[" * 4000, False),
    ],
)
def test_words_that_nobody_had_written_before_are_a_note(
    before: str, now: str, right: bool
) -> None:
    """Whose they are cannot be told, in JSON neither."""
    assert is_note(before, now) is right
