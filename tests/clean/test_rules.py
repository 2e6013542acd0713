"""Rules of retention: what may go, and whatever is in doubt stays."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.clean.rules import DirectoryEntry, RetentionRules
from sentinel.clean.steps import CheckpointStep, group_steps, removable_steps, still_removable

NOW, DAY = 1_800_000_000.0, 86_400.0
STEP = r"step(\d+)"
DONE = "done"


def steps(*numbers: int, broken: tuple[int, ...] = (), age: float = 30.0) -> list[DirectoryEntry]:
    """Checkpoints, each a day younger than the one before it."""
    return [
        DirectoryEntry(f"step{n}", NOW - (age - i) * DAY, 100, complete=n not in broken)
        for i, n in enumerate(numbers)
    ]


def grouped_steps(entries: list[DirectoryEntry], rules: RetentionRules) -> list[CheckpointStep]:
    """Those that are complete hold the file that says so."""
    for entry in entries:
        entry.marker = 1 if entry.complete else None
    return group_steps([e for e in entries if rules.fits_name(e.name)], rules)


def gone(entries: list[DirectoryEntry], rules: RetentionRules) -> list[str]:
    steps = grouped_steps(entries, rules)
    return [s.first_name.removeprefix("step") for s in removable_steps(steps, rules, NOW)]


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        pytest.param(
            RetentionRules(STEP, complete=DONE), ["1", "2", "3", "4"], id="the two newest stay"
        ),
        pytest.param(
            RetentionRules(STEP, complete=DONE, keep_last=0),
            ["1", "2", "3", "4"],
            id="whatever is set",
        ),
        pytest.param(
            RetentionRules(STEP, complete=DONE, keep_last=4), ["1", "2"], id="so many newest"
        ),
        pytest.param(
            RetentionRules(STEP, complete=DONE, keep_last=6), [], id="as many as there are"
        ),
        pytest.param(
            RetentionRules(STEP, complete=DONE, keep_every=2), ["1", "3"], id="every second"
        ),
        pytest.param(
            RetentionRules(STEP, complete=DONE, older_than=28.5 * DAY),
            ["1", "2"],
            id="young ones stay",
        ),
        pytest.param(
            RetentionRules(STEP, complete=DONE, older_than=29 * DAY),
            ["1", "2"],
            id="just old enough",
        ),
        pytest.param(RetentionRules(r"other\d+"), [], id="other names"),
        pytest.param(RetentionRules("step"), [], id="the whole name has to fit"),
    ],
)
def test_what_may_go_of_six(rules: RetentionRules, left: list[str]) -> None:
    """The oldest first."""
    assert gone(steps(1, 2, 3, 4, 5, 6), rules) == left


def test_numbers_order_not_names_nor_times() -> None:
    """step10 is newer than step9, and touching old ones takes nothing from the new ones."""
    entries = steps(8, 9, 10, 11)
    entries[0].at = entries[1].at = NOW - 1.0
    assert gone(entries, RetentionRules(STEP, complete=DONE)) == []
    assert gone(steps(8, 9, 10, 11), RetentionRules(STEP, complete=DONE)) == ["8", "9"]


def test_a_run_that_began_anew_keeps_its_own_newest() -> None:
    """It counts from 1 again, beside what an older run left behind."""
    entries = [*steps(900, 1000, age=60.0), *steps(1, 2, 3, age=20.0)]
    assert gone(entries, RetentionRules(STEP, complete=DONE, older_than=DAY)) == ["1"]


def test_numbers_of_many_digits_are_compared_to_the_last() -> None:
    """A moment to the microsecond is more than a float holds."""
    names = [f"step2024010112000000000{n}" for n in range(4)]
    entries = [DirectoryEntry(name, NOW - DAY, 1) for name in reversed(names)]
    assert (
        removable_steps(
            grouped_steps(entries, RetentionRules(STEP, complete=DONE)),
            RetentionRules(STEP, complete=DONE),
            NOW,
        )[0].first_name
        == names[0]
    )


def test_a_name_without_the_number_that_orders_the_others_stays_and_counts_for_nothing() -> None:
    """Its place among them is not known."""
    entries = [*steps(1, 2, 3, 4), DirectoryEntry("step", NOW - 40 * DAY, 1)]
    assert gone(entries, RetentionRules(r"step(\d+)?", complete=DONE)) == ["1", "2"]


def test_what_is_named_stays_and_what_is_held_cannot_go() -> None:
    """A pointer is obeyed; what cannot be removed is told apart from what may not."""
    entries = steps(1, 2, 3, 4, 5)
    entries[0].named, entries[1].held = True, "it belongs to somebody else"
    rules = RetentionRules(STEP, complete=DONE)
    assert gone(entries, rules) == ["2", "3"]
    free, refused = still_removable(
        {"step1", "step2", "step3"}, grouped_steps(entries, rules), rules, NOW
    )
    assert [e.first_name for e in free] == ["step3"]
    assert [e.first_name for e in refused] == ["step1", "step2"]


@pytest.mark.parametrize(
    ("match", "name", "fits"),
    [
        (".*", "step1", True),
        (".*", ".ssh", False),
        (r".+", ".snapshot", False),
        (r"\.old-.*", ".old-1", True),
    ],
)
def test_hidden_names_have_to_be_meant(match: str, name: str, fits: bool) -> None:
    """As with a shell's star: a pattern for everything is not one for .ssh."""
    assert RetentionRules(match).fits_name(name) is fits


def test_without_a_number_time_orders() -> None:
    """Logs have only their last change."""
    logs = [
        DirectoryEntry(f"{name}.log", NOW - age * DAY, 1)
        for name, age in (("b", 3), ("a", 9), ("c", 1))
    ]
    rules = RetentionRules(r".*\.log", older_than=DAY)
    assert [s.first_name for s in removable_steps(group_steps(logs, rules), rules, NOW)] == [
        "a.log"
    ]


def test_incomplete_ones_do_not_count_as_newest() -> None:
    """Two complete ones stay, and whatever is newer than them: it may be written just now."""
    entries = steps(1, 2, 3, 4, 5, 6, broken=(3, 5, 6))
    assert gone(entries, RetentionRules(STEP, complete=DONE)) == ["1"]


def test_an_old_incomplete_one_may_go() -> None:
    """It is nobody's last resort."""
    assert gone(steps(1, 2, 3, 4, 5, broken=(2,)), RetentionRules(STEP, complete=DONE)) == [
        "1",
        "2",
        "3",
    ]


@pytest.mark.parametrize("whole", [0, 1, 2])
def test_fewer_than_three_complete_ones_all_stay(whole: int) -> None:
    """The last may be corrupt, and then the one before it is what is left."""
    broken = tuple(range(whole + 1, 9))
    assert gone(steps(*range(1, 9), broken=broken), RetentionRules(STEP, complete=DONE)) == []


def test_a_time_of_the_future_is_young() -> None:
    """A clock that runs ahead must not age anything."""
    entries = steps(1, 2, 3)
    entries[0].at = NOW + 5 * DAY
    assert gone(entries, RetentionRules(STEP, complete=DONE, older_than=1.0)) == []


def test_only_what_was_named_and_may_still_go() -> None:
    """A name that is protected by now is told."""
    rules = RetentionRules(STEP, complete=DONE)
    free, refused = still_removable(
        {"step1", "step6", "none"}, grouped_steps(steps(1, 2, 3, 4, 5, 6), rules), rules, NOW
    )
    assert ([e.first_name for e in free], [e.first_name for e in refused]) == (["step1"], ["step6"])


@given(
    numbers=st.lists(st.integers(0, 40), unique=True, max_size=20),
    broken=st.sets(st.integers(0, 40)),
    last=st.integers(-3, 25),
    every=st.integers(0, 5),
    older=st.floats(0, 40 * DAY),
)
def test_the_two_newest_complete_ones_never_go(
    numbers: list[int], broken: set[int], last: int, every: int, older: float
) -> None:
    """Whatever is configured and whatever is there; nothing is named that is not there."""
    entries = steps(*numbers, broken=tuple(broken))
    rules = RetentionRules(STEP, complete=DONE, keep_last=last, keep_every=every, older_than=older)
    left = {int(n) for n in gone(entries, rules)}
    whole = sorted(set(numbers) - broken)
    assert left <= set(numbers)
    assert not left & set(whole[-2:])
    assert not any(every and n % every == 0 for n in left)
    assert whole == [] or max(left, default=-1) <= max(whole)


def test_rules_survive_their_text() -> None:
    """What the program is given is what was configured."""
    rules = RetentionRules(STEP, keep_last=3, keep_every=10, older_than=5.5, complete=DONE)
    assert RetentionRules.parse_rules(rules.rules_text()).rules_text() == rules.rules_text()
    for text in ("", "[]", "{}", '{"match": "("}', '{"match": "x", "unknown": 1}'):
        with pytest.raises((ValueError, TypeError, re.error)):
            RetentionRules.parse_rules(text)
