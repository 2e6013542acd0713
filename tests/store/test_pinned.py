"""The schema of all that is stored: it does not change by accident."""

import pytest

from sentinel.core import stored_words
from tests.store import pinned


def test_what_was_stored_is_read_as_it_was_meant() -> None:
    """Since the last release nothing has changed that an older row would not fit. Where it must,
    a migration is needed, and then `python -m tests.store.pinned --step`."""
    written = pinned.GOLDEN.read_text(encoding="utf-8").splitlines()
    assert pinned.find_incompatible(written, pinned.describe_all()) == []
    assert len(written) > 1000


BEFORE = ["schema 6", "m.A.name: str", "m.A.word: 'ok'|'bad'", "m.A.size: int = 0"]


@pytest.mark.parametrize(
    ("now", "wrong"),
    [
        (BEFORE, ""),
        ([*BEFORE, "m.A.more: int = 0"], ""),
        ([*BEFORE, "m.B.name: str"], ""),
        ([*BEFORE, "B: object", "B.name: str"], ""),
        (["schema 6", "m.A.name: str = ''", "m.A.word: 'ok'|'bad'|'worse'", BEFORE[3]], ""),
        ([*BEFORE, "m.A.more: int"], "m.A.more is new"),
        (BEFORE[:-1], "m.A.size is gone"),
        ([*BEFORE[:-1], "m.A.size: int"], "m.A.size was int = 0, is int"),
        ([*BEFORE[:-1], "m.A.size: str = ''"], "m.A.size was"),
        (["schema 6", BEFORE[1], "m.A.word: 'ok'", BEFORE[3]], "m.A.word was"),
    ],
)
def test_what_needs_a_step(now: list[str], wrong: str) -> None:
    """A new field that may be missing does not; what an older row has not, or no longer fits, does."""
    found = pinned.find_incompatible(BEFORE, now)
    assert ("; ".join(found)).startswith(wrong)
    assert bool(found) == bool(wrong)


def test_each_stored_word_that_is_not_known_has_a_reading() -> None:
    """Every field of words stands in a table, but for those that are refused."""
    enums = {"|".join(sorted(repr(m.value) for m in cls)) for cls in stored_words.WORDS_BY_ENUM}
    fields = {field for _, field in stored_words.WORDS_BY_FIELD}
    lines = [line.partition(": ") for line in pinned.describe_all()]
    words = {name: what.partition(" = ")[0] for name, _, what in lines if what.startswith("'")}
    left = {name for name, what in words.items() if what not in enums}
    assert {name for name in left if name.rpartition(".")[2] not in fields} == REFUSED


REFUSED = {"PendingWrite.method"}
"""A journal with a write of an unknown kind is refused as a whole, and told."""
