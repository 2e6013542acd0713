"""Lists of nodes: Slurm's own forms, and nothing that could be anything else."""

import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.errors import Invalid
from sentinel.core.hostlist import (
    MAX_NAMES,
    MAX_RANGE_NUMBERS,
    check_name,
    describe_nodes,
    expand_hostlist,
    expand_printed,
    fold_for_people,
    fold_hostlist,
    get_first_name,
)
from tests.lab import needs
from tests.lab.hostlists import Scontrol, drawn

needs_scontrol = pytest.mark.skipif(
    bool(needs.absent(["scontrol"])) and not needs.required(), reason="scontrol is not installed"
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node-0", ("node-0",)),
        ("node-[0-2]", ("node-0", "node-1", "node-2")),
        ("node-[2,0]", ("node-2", "node-0")),
        ("node1[8-12]", ("node18", "node19", "node110", "node111", "node112")),
        ("gpu0[8-12]", ("gpu08", "gpu09", "gpu010", "gpu011", "gpu012")),
        ("n[009-011]", ("n009", "n010", "n011")),
        ("n6[1-2][3-4]", ("n613", "n614", "n623", "n624")),
        ("n[1-2][3-4][5-6]", ("n135", "n136", "n235", "n236", "n145", "n146", "n245", "n246")),
        ("n[01-2]", ("n01", "n02")),
        ("n[9-010]", ("n9", "n10")),
        ("n[1-2,2-3]", ("n1", "n2", "n3")),
        ("n[1-2]-ib", ("n1-ib", "n2-ib")),
        ("[1-2]", ("1", "2")),
        ("gpu[08-10]", ("gpu08", "gpu09", "gpu10")),
        ("a[1-2]b[3-4]", ("a1b3", "a1b4", "a2b3", "a2b4")),
        ("n1,n2,n1", ("n1", "n2")),
        ("n1,login.example.org", ("n1", "login.example.org")),
        (" n1 ", ("n1",)),
        ("n1 n2, n3\tn4 ,n5", ("n1", "n2", "n3", "n4", "n5")),
        ("10.77.0.10", ("10.77.0.10",)),
    ],
)
def test_hostlists_stand_for_names(text: str, names: tuple[str, ...]) -> None:
    """Ranges, lists, leading zeros, several brackets; each name once, in Slurm's order."""
    assert expand_hostlist(text) == names
    assert get_first_name(text) == names[0]


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
        ("node-1;reboot", "';' is in no node name"),
        ("$(reboot)", "'$' is in no node name"),
        ("`reboot`", "'`' is in no node name"),
        ("a[1,2", "bracket is missing"),
        ("n[1, 2]", "' 2' is no range of numbers"),
        ("n[1-]", "no range of numbers"),
        ("n[1,]", "no range of numbers"),
        ("n[1] ,", "a name or a bracket is missing"),
        ("n99999999999999999999", "is no name of a node"),
        ("n[99999999999999999999]", "is no name of a node"),
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
        ("n[0-999999999]", f"at most {MAX_RANGE_NUMBERS} numbers"),
        ("n[0-65536]", f"at most {MAX_RANGE_NUMBERS} numbers"),
        ("n[0-40000,40001-70000]x[1]", f"at most {MAX_RANGE_NUMBERS} numbers"),
        ("a[0-999]b[0-999]", f"more than {MAX_NAMES} nodes"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, word: str) -> None:
    """Backwards, unclosed, empty, too many; an option, a user, a group, a command."""
    with pytest.raises(Invalid) as told:
        expand_hostlist(text)
    assert word in str(told.value)
    assert "\n" not in str(told.value)


def test_a_name_that_only_slurm_takes_stands_for_itself_in_what_slurm_prints() -> None:
    """One such node in slurm.conf, and nothing would be known of all the others."""
    assert expand_printed("-oProxyCommand=x") == ("-oProxyCommand=x",)
    assert expand_printed("n1[8-10],-v,a+b") == ("n18", "n19", "n110", "-v", "a+b")
    with pytest.raises(Invalid):
        expand_printed("n[1-2000000]")


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "-oProxyCommand=x", "n2", "n1"], "n[1-2],-oProxyCommand=x"),
        (["a+b", "\x1b[2J"], "a+b,\\x1b[2J"),
        (["n18446744073709551615", "n7"], "n7,n18446744073709551615"),
        ([], ""),
    ],
)
def test_a_name_that_only_slurm_takes_is_shown_behind_the_others(
    names: list[str], text: str
) -> None:
    """Nobody is kept from being told of nodes by one odd name among them."""
    assert fold_for_people(names) == text
    count = len(names)
    assert describe_nodes(names) == f"{count} node{'' if count == 1 else 's'}: {text}"


def test_a_name_that_is_too_long_for_people_is_read_where_slurm_prints_it() -> None:
    """It takes no page from anybody; typed, it is refused."""
    assert expand_printed(f"n[1-2],{'x' * 255}") == ("n1", "n2", "x" * 255)
    with pytest.raises(Invalid):
        expand_hostlist(f"n[1-2],{'x' * 255}")


def test_the_largest_list_is_allowed() -> None:
    """One more is not; nor is a range that Slurm finds too wide."""
    assert len(expand_hostlist(f"n[1-{MAX_RANGE_NUMBERS}]")) == MAX_RANGE_NUMBERS
    assert len(expand_hostlist(f"n[1-50000],m[1-{MAX_NAMES - 50000}]")) == MAX_NAMES
    with pytest.raises(Invalid):
        expand_hostlist(f"n[1-50000],m[0-{MAX_NAMES - 50000}]")


HUGE: dict[str, Callable[[], str]] = {
    "names": lambda: ",".join(f"node{n}" for n in range(2_000_000)),
    "numbers": lambda: f"node[{','.join(map(str, range(2_000_000)))}]",
    "range": lambda: "n[1-2000000]",
    "letters": lambda: "n" * 10_000_000,
    "open": lambda: "n[" * 1_000_000,
    "brackets": lambda: "n[1]" * 1_000_000,
}


@pytest.mark.parametrize("what", HUGE)
def test_two_million_names_are_refused_in_one_short_line_and_little_memory(what: str) -> None:
    """Nothing is made of what is refused: some MB for what was read up to then."""
    text = HUGE[what]()
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(Invalid) as told:
        expand_hostlist(text)
    used, seconds = tracemalloc.get_traced_memory()[1], time.process_time() - began
    tracemalloc.stop()
    assert len(str(told.value)) < 200
    assert used < 64 * 2**20
    assert seconds < 20  # 2 s here, under tracemalloc


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["gpu08", "gpu10", "gpu09", "login"], "gpu[08-10],login"),
        (["node110", "node19", "node18", "node112", "node111"], "node[18-19,110-112]"),
        (["n9", "n10", "n08", "n8", "n010"], "n[8,08,9-10,010]"),
        (["gpu08", "gpu010"], "gpu[08,010]"),
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
    assert fold_hostlist(names) == text


def test_only_names_fold() -> None:
    """A name that is none does not get into a list either."""
    with pytest.raises(Invalid, match="no name of a node"):
        fold_hostlist(["n1", "n2;x"])


@given(st.text(max_size=40))
def test_whatever_is_taken_can_be_nothing_but_names(text: str) -> None:
    """Every name is plain, and folding it gives the same names."""
    try:
        names = expand_hostlist(text)
    except Invalid:
        return
    assert names
    assert all(check_name(name) and name[0].isalnum() for name in names)
    assert sorted(expand_hostlist(fold_hostlist(names))) == sorted(names)


@given(st.sets(st.from_regex(r"[a-z0-9]{1,3}-?[0-9]{0,4}", fullmatch=True), min_size=1))
def test_what_is_folded_stands_for_the_same_names(names: set[str]) -> None:
    """And the list of a folded list is that list."""
    folded = fold_hostlist(names)
    again = expand_hostlist(folded)
    assert set(again) == names
    assert len(again) == len(names)
    assert fold_hostlist(again) == folded


def test_a_fold_keeps_to_the_ranges_that_slurm_takes() -> None:
    """70,001 names are two ranges."""
    names = [f"n{number}" for number in range(70_001)]
    assert fold_hostlist(names) == "n[0-65535,65536-70000]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node1[8-12]", "5 nodes: node[18-19,110-112]"),
        ("n1", "1 node: n1"),
        ("n1,n1,n2", "2 nodes: n[1-2]"),
    ],
)
def test_a_list_is_counted(text: str, said: str) -> None:
    """What a deed says before it is done."""
    assert describe_nodes(expand_hostlist(text)) == said


def test_a_count_is_not_cut_with_its_list() -> None:
    """A thousand odd names are shortened."""
    said = describe_nodes([f"n{number}x" for number in range(1000)])
    assert said.startswith("1000 nodes: n0x,")
    assert len(said) < 1100


@needs_scontrol
def test_three_hundred_random_lists_stand_for_what_slurm_says(tmp_path: Path) -> None:
    """Name by name in its order, and so do the lists that they are folded to. More of them:
    python -m benchmarks.bench_hostlists"""
    slurm, rng = Scontrol(tmp_path), random.Random(16)
    for text in [drawn(rng) for _ in range(300)]:
        names = expand_hostlist(text)
        assert (text, list(names)) == (text, slurm.names(text))
        assert (text, sorted(names)) == (text, sorted(slurm.names(fold_hostlist(names)) or ()))


@needs_scontrol
@pytest.mark.parametrize(
    "text", ["n[3-1]", "n[0-65536]", "n[]", "n[1,]", "n[a-b]", "n[1--2]", "n[[1]]", "n[1-3:2]"]
)
def test_what_slurm_refuses_is_refused(tmp_path: Path, text: str) -> None:
    """And so are the lists that it garbles; they are above."""
    assert Scontrol(tmp_path).names(text) is None
    with pytest.raises(Invalid):
        expand_hostlist(text)


@given(st.text("n0123456789-,[]", max_size=20))
def test_lists_that_are_nearly_right_raise_nothing_else(text: str) -> None:
    """Brackets and commas in any order."""
    try:
        assert expand_hostlist(text)
    except Invalid:
        return
