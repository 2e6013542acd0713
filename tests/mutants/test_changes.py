"""The faults that are planted are faults, and the table of modules is true."""

import pytest

from tests.mutants.__main__ import choose_tests
from tests.mutants.changes import changes, find_lines
from tests.mutants.known import (
    LEFT_OUT,
    MEASURED,
    ROOT,
    RULES,
    SURVIVORS,
    TESTS,
    find_modules,
    find_tests,
)
from tests.mutants.watch import SeenTest

CODE = """\
def judge(left: int, most: int = 5) -> str:
    if left and not most > 3:
        return ""
    return "bad"
"""


def test_the_faults_of_a_function() -> None:
    """Each once, each at its place, none in what only documents."""
    texts = {change.applied(CODE).splitlines()[change.line - 1].strip() for change in changes(CODE)}
    assert texts == {
        "def judge(left: int, most: int = (6)) -> str:",
        "def judge(left: int, most: int = (50)) -> str:",
        "if (not (left and (not most > 3))):",
        "if (left or not most > 3):",
        "if (left):",
        "if (not most > 3):",
        "if left and (most > 3):",
        "if left and not (most >= 3):",
        "if left and not (most <= 3):",
        "if left and not most > (4):",
        "if left and not most > (30):",
        "return 'planted'",
        "return None",
    }


def test_the_tests_that_execute_the_fault_come_first() -> None:
    """Then those that may do so in another process. Of a default or a constant all: who executes
    nothing may still read it."""
    lines = {change.new: find_lines(CODE, change) for change in changes(CODE)}
    assert lines["(6)"] is None
    assert lines["(4)"] == range(2, 3)
    assert lines["return 'planted'"] == range(3, 4)
    head, end = (SeenTest(name, 1, frozenset({n}), False) for name, n in (("head", 2), ("end", 4)))
    elsewhere = SeenTest("elsewhere", 2, frozenset(), True)
    nothing = SeenTest("nothing", 3, frozenset(), False)
    seen = [head, end, elsewhere, nothing]
    assert choose_tests(seen, lines["(4)"]) == [head, elsewhere]
    assert choose_tests(seen, None) == [head, end, elsewhere, nothing]
    assert choose_tests([nothing], lines["(4)"]) == [nothing]


@pytest.mark.parametrize("module", find_modules())
@pytest.mark.long
def test_every_fault_can_be_tried(module: str) -> None:
    """The module and its tests are there, and what survives is a fault that is planted."""
    source = (ROOT / module).read_text()
    every = changes(source)
    for change in every[::10]:
        compile(change.applied(source), module, "exec")
    assert all((ROOT / path).exists() for path in find_tests(module))
    lines = source.splitlines()
    possible = {(module, lines[c.line - 1].strip(), c.new) for c in every}
    assert {key for key in SURVIVORS if key[0] == module} <= possible


def test_the_rules_find_files_and_tests_for_each() -> None:
    """No rule names nothing, nothing is left out that no rule names, and each file has its tests."""
    for globs in RULES.values():
        for glob in globs:
            assert [*ROOT.glob(glob)], glob
    modules = find_modules()
    for module, reason in LEFT_OUT.items():
        assert (ROOT / module).exists()
        assert module not in modules
        assert reason
    assert {name for name, _, _ in SURVIVORS} | TESTS.keys() | {*MEASURED} <= {*modules}
