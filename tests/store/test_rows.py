"""Values to text and back."""

from typing import Any

import pytest

from sentinel.core.clock import Instant
from sentinel.store.errors import Unstorable
from sentinel.store.rows import (
    DeliveryOutcome,
    UnreadableRow,
    decode_stored,
    digest_parts,
    encode_stored,
)
from tests.store.nouns import HOSTILE, alert, at


@pytest.mark.parametrize("value", [alert(HOSTILE, details=HOSTILE), at(), Instant(-1)])
def test_nouns_come_back(value: Any) -> None:
    """Whatever their texts."""
    assert decode_stored(encode_stored(value), type(value)) == value


def test_the_text_is_one_that_every_database_takes() -> None:
    """Neither NUL nor a lone surrogate is in it."""
    text = encode_stored({HOSTILE: HOSTILE})
    assert "\x00" not in text
    assert text.encode()


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}, [1j]])
def test_what_has_no_json_is_refused(value: Any) -> None:
    """Before any transaction begins."""
    with pytest.raises(Unstorable, match="cannot be stored"):
        encode_stored(value)


@pytest.mark.parametrize(
    "value",
    [
        alert(summary=5),
        alert(labels={"node": 1}),
        alert(commands="ls"),
        DeliveryOutcome(at(), True, text=None),  # type: ignore[arg-type]
    ],
)
def test_what_could_not_be_read_again_is_refused(value: Any) -> None:
    """Else the next start takes the whole state for damaged."""
    with pytest.raises(Unstorable, match="Expected"):
        encode_stored(value)


def test_endless_nesting_is_refused() -> None:
    """It costs an error, not the process."""
    deep: dict[str, Any] = {}
    deep["again"] = deep
    with pytest.raises(Unstorable):
        encode_stored(deep)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"wall": "x"}', "\x00", "NaN", '{"wall": 1'])
def test_what_was_never_encoded_is_unreadable(text: str) -> None:
    """An error of its own, whatever is wrong with it."""
    with pytest.raises(UnreadableRow, match="a stored Instant is unreadable"):
        decode_stored(text, Instant)


def test_digests_tell_parts_apart() -> None:
    """Where one part ends matters; every text has one, of one length."""
    assert digest_parts("a", "b") != digest_parts("ab", "") != digest_parts("a,b")
    assert len(digest_parts(HOSTILE)) == len(digest_parts("")) == 32
    assert digest_parts("\ud800") != digest_parts("\udc00")
