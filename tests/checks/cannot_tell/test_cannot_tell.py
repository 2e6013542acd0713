"""Nothing of what is wrong is said to be well because a source of it is spoilt."""

import pytest
from msgspec.structs import replace

from sentinel.checks import KINDS
from tests.checks.cannot_tell.table import (
    AS_IT_IS,
    CASES,
    NOT_TRIED,
    PAGE,
    Row,
    lines,
    made,
    sources,
    wrong,
)
from tests.checks.cannot_tell.world import FAULTS, HANG
from tests.lab import needs


def cells(line: str) -> tuple[str, ...]:
    """Of a row of a table: kind, source, what is wrong, and an answer for each fault."""
    return tuple(cell.strip() for cell in line.strip("|").split("|"))


def agrees(row: tuple[str, ...], page: tuple[str, ...]) -> bool:
    """Where a source hangs, what is left of the check's time decides whether the others are asked:
    a busy machine may see less than the page says, and never more."""
    at = 3 + FAULTS.index(HANG)
    seen = page[at] if row[at] == "unknown" else row[at]
    return (*row[:at], seen, *row[at + 1 :]) == page


@pytest.mark.long
@pytest.mark.timeout(600)  # half a thousand processes, of which sixty wait for what hangs
def test_no_fault_of_a_source_turns_what_is_wrong_into_ok() -> None:
    """And the page says of each what is said: make it with `python -m tests.checks.cannot_tell
    --write`."""
    rows = made()
    assert wrong(rows) == []
    tried = {r.case for r in rows} - {r.case for r in rows if r.answer == NOT_TRIED}
    page = {row[:3]: row for row in map(cells, PAGE.read_text().splitlines()) if len(row) > 3}
    of = [cells(line) for n, line in enumerate(lines(rows).values()) if n in tried]
    assert [row for row in of if not agrees(row, page[row[:3]])] == []
    if len(of) < len(CASES):
        needs.skip("a folder that hangs takes a mount, and so root")


def test_every_source_of_every_kind_has_a_row() -> None:
    """A new kind, or a sentence more in SOURCES, has to say what it answers."""
    declared = {(kind, n) for kind, said in sources().items() for n in range(len(said))}
    assert {(case.kind, case.source) for case in CASES} == declared
    assert {case.kind for case in CASES} == set(KINDS)
    assert len({(case.kind, case.asked, case.truth) for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("answer", "fault", "complaint"),
    [
        ("ok", FAULTS[0], "wrong: "),
        ("ok", AS_IT_IS, "wrong: "),
        ("unknown", AS_IT_IS, "nothing is wrong there: "),
        ("BROKEN", FAULTS[1], "wrong: "),
    ],
)
def test_the_table_would_tell(answer: str, fault: str, complaint: str) -> None:
    """An ok, a world that is broken, and one in which nothing is wrong."""
    plain = next(n for n, case in enumerate(CASES) if not case.believed)
    row = Row(case=plain, fault=fault, answer=answer)
    assert wrong([row])[0].startswith(complaint)
    assert wrong([replace(row, answer="critical")]) == []


def test_a_note_that_is_not_true_any_more_is_told() -> None:
    """What can be told now is not excused."""
    case = next(n for n, case in enumerate(CASES) if case.believed)
    row = Row(case=case, fault=next(iter(CASES[case].believed)), answer="unknown")
    assert wrong([row])[0].startswith("believed for no reason any more: ")
