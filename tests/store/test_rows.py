"""Values to text and back."""

from typing import Any

import pytest

from sentinel.core.clock import Instant
from sentinel.store.errors import Unstorable
from sentinel.store.rows import Outcome, Unreadable, decode, digest, encode
from tests.store.nouns import HOSTILE, alert, at


@pytest.mark.parametrize("value", [alert(HOSTILE, details=HOSTILE), at(), Instant(-1)])
def test_nouns_come_back(value: Any) -> None:
    """Whatever their texts."""
    assert decode(encode(value), type(value)) == value


def test_the_text_is_one_that_every_database_takes() -> None:
    """Neither NUL nor a lone surrogate is in it."""
    text = encode({HOSTILE: HOSTILE})
    assert "\x00" not in text
    assert text.encode()


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}, [1j]])
def test_what_has_no_json_is_refused(value: Any) -> None:
    """Before any transaction begins."""
    with pytest.raises(Unstorable, match="cannot be stored"):
        encode(value)


@pytest.mark.parametrize(
    "value",
    [
        alert(summary=5),
        alert(labels={"node": 1}),
        alert(commands="ls"),
        Outcome(at(), True, text=None),  # type: ignore[arg-type]
    ],
)
def test_what_could_not_be_read_again_is_refused(value: Any) -> None:
    """Else the next start takes the whole state for damaged."""
    with pytest.raises(Unstorable, match="Expected"):
        encode(value)


def test_endless_nesting_is_refused() -> None:
    """It costs an error, not the process."""
    deep: dict[str, Any] = {}
    deep["again"] = deep
    with pytest.raises(Unstorable):
        encode(deep)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"wall": "x"}', "\x00", "NaN", '{"wall": 1'])
def test_what_was_never_encoded_is_unreadable(text: str) -> None:
    """An error of its own, whatever is wrong with it."""
    with pytest.raises(Unreadable, match="a stored Instant is unreadable"):
        decode(text, Instant)


def test_digests_tell_parts_apart() -> None:
    """Where one part ends matters; every text has one, of one length."""
    assert digest("a", "b") != digest("ab", "") != digest("a,b")
    assert len(digest(HOSTILE)) == len(digest("")) == 32
    assert digest("\ud800") != digest("\udc00")
