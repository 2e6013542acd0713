"""What people wrote beside a node's reason: https://slurm.schedmd.com/scontrol.html, Comment, Extra."""

import pytest

from sentinel.slurm.node_notes import is_note


@pytest.mark.parametrize(
    "now",
    [
        pytest.param("", id="no JSON at all"),  # in msgspec 0.19 its error is no ValueError
        pytest.param('{"pod": ', id="JSON that was cut"),
        pytest.param("[" * 4000, id="JSON that nests too deeply"),
        pytest.param('["pod"]', id="a list"),
    ],
)
def test_a_text_that_is_no_json_object_has_no_keys(now: str) -> None:
    assert not is_note("pod", now)


def test_words_that_nobody_had_written_before_are_a_note() -> None:
    assert is_note("", "please leave it drained")


def test_a_new_key_is_a_note_and_a_new_value_is_none() -> None:
    assert is_note('{"pod": "a"}', '{"pod": "a", "keep": "b"}')
    assert not is_note('{"pod": "a"}', '{"pod": "b"}')
