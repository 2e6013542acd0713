"""The faults that are planted are faults, and the table of modules is true."""

import pytest

from tests.mutants.__main__ import ROOT
from tests.mutants.changes import changes
from tests.mutants.known import SURVIVORS, TESTS

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


@pytest.mark.parametrize("module", TESTS)
def test_every_fault_can_be_tried(module: str) -> None:
    """The module and its tests are there, and what survives is a fault that is planted."""
    source = (ROOT / module).read_text()
    every = changes(source)
    for change in every:
        compile(change.applied(source), module, "exec")
    assert all((ROOT / path).exists() for path in TESTS[module])
    lines = source.splitlines()
    possible = {(module, lines[c.line - 1].strip(), c.new) for c in every}
    assert {key for key in SURVIVORS if key[0] == module} <= possible
