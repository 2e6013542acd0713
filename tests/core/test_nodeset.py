"""Lists of nodes: Slurm's own forms, and nothing that could be anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.errors import Invalid
from sentinel.core.nodeset import MOST, check_name, expand, fold


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node-0", ("node-0",)),
        ("node-[0-2]", ("node-0", "node-1", "node-2")),
        ("node-[2,0]", ("node-0", "node-2")),
        ("gpu[08-10]", ("gpu08", "gpu09", "gpu10")),
        ("a[1-2]b[3-4]", ("a1b3", "a1b4", "a2b3", "a2b4")),
        ("n1,n2,n1", ("n1", "n2")),
        ("n1,login.example.org", ("login.example.org", "n1")),
        (" n1 ", ("n1",)),
        ("10.77.0.10", ("10.77.0.10",)),
    ],
)
def test_hostlists_stand_for_names(text: str, names: tuple[str, ...]) -> None:
    """Ranges, lists, leading zeros, several brackets; each name once."""
    assert sorted(expand(text)) == sorted(names)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no node is named"),
        ("  ", "no node is named"),
        ("node-[3-1]", "the range 3-1 runs backwards"),
        ("node-[0-3", "bracket is missing"),
        ("node-0-3]", "bracket is missing"),
        ("node-[]", "no range of numbers"),
        ("node-[a-b]", "no range of numbers"),
        ("node-[1--2]", "no range of numbers"),
        ("node-[[1]]", "bracket is missing"),
        ("n1,,n2", "a name or a bracket is missing"),
        (",", "a name or a bracket is missing"),
        ("n[01-2]", "padding"),
        ("node-1;reboot", "';' is in no node name"),
        ("$(reboot)", "'$' is in no node name"),
        ("`reboot`", "'`' is in no node name"),
        ("n1 n2", "' ' is in no node name"),
        ("n1\nn2", "'\\n' is in no node name"),
        ("@all", "'@' is in no node name"),
        ("root@node-1", "'@' is in no node name"),
        ("n[1-9/2]", "'/' is in no node name"),
        ("n[1-3]!n2", "'!' is in no node name"),
        ("n*", "'*' is in no node name"),
        ("nöde", "'ö' is in no node name"),
        ("-oProxyCommand", "is no name of a node"),
        ("n1,-v", "is no name of a node"),
        (".", "is no name of a node"),
        ("..,n1", "is no name of a node"),
        ("n[0-999999999]", f"more than {MOST} nodes"),
        ("a[0-999]b[0-999]", f"more than {MOST} nodes"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, word: str) -> None:
    """Backwards, unclosed, empty, too many; an option, a user, a group, a command."""
    with pytest.raises(Invalid) as told:
        expand(text)
    assert word in str(told.value)
    assert "\n" not in str(told.value)


def test_the_largest_list_is_allowed() -> None:
    """One more is not."""
    assert len(expand(f"n[1-{MOST}]")) == MOST
    with pytest.raises(Invalid):
        expand(f"n[0-{MOST}]")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["gpu08", "gpu10", "gpu09", "login"], "gpu[08-10],login"),
        (["r1n3", "r0n3"], "r0n3,r1n3"),
        (["r0n3", "r0n4", "r1n3", "r1n4"], "r0n[3-4],r1n[3-4]"),
        (["gpu1.example.org", "gpu0.example.org"], "gpu0.example.org,gpu1.example.org"),
        (["n2-ib", "n1-ib", "n1"], "n1,n1-ib,n2-ib"),
        (["15_3", "15_4"], "15_[3-4]"),
        ([], ""),
    ],
)
def test_names_fold_to_a_list_that_slurm_reads(names: list[str], text: str) -> None:
    """Brackets at the end of a name only: `r[0-1]n3` is an invalid host list for scontrol, srun and
    sbatch (22.05)."""
    assert fold(names) == text


def test_only_names_fold() -> None:
    """A name that is none does not get into a list either."""
    with pytest.raises(Invalid, match="no name of a node"):
        fold(["n1", "n2;x"])


@given(st.text(max_size=40))
def test_whatever_is_taken_can_be_nothing_but_names(text: str) -> None:
    """Every name is plain, and folding it gives the same names."""
    try:
        names = expand(text)
    except Invalid:
        return
    assert names
    assert all(check_name(name) and name[0].isalnum() for name in names)
    assert sorted(expand(fold(names))) == sorted(names)


@given(st.text("n0123456789-,[]", max_size=20))
def test_lists_that_are_nearly_right_raise_nothing_else(text: str) -> None:
    """Brackets and commas in any order."""
    try:
        assert expand(text)
    except Invalid:
        return
