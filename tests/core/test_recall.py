"""What the state remembers, as this version knows it."""

import pytest
from msgspec import Struct

from sentinel.core.stored_memory import decode_memory


class Mark(Struct, frozen=True):
    """Something a check keeps."""

    pid: int
    seen: dict[str, float] = {}


@pytest.mark.parametrize(
    "stored", [None, {}, [], "x", {"pid": "1"}, {"pid": 1, "seen": []}, {"seen": {}}]
)
def test_what_is_missing_damaged_or_of_another_version_is_begun_anew(stored: object) -> None:
    """Never an error: the check could not run any more."""
    assert decode_memory(stored, Mark) is None


def test_what_was_kept_comes_back() -> None:
    """Keys that a later version added do not matter."""
    kept = {"pid": 7, "seen": {"a": 1}, "later": True}
    assert decode_memory(kept, Mark) == Mark(7, {"a": 1.0})
    assert decode_memory([kept], list[Mark]) == [Mark(7, {"a": 1.0})]
