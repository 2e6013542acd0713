"""What nodes print, hostile and broken ones too."""

import gzip
import json
from base64 import b64encode

import pytest

from sentinel.core.errors import CannotTell
from sentinel.stacks.parse.group import process_kind
from sentinel.stacks.parse.model import StandKind
from sentinel.stacks.parse.read import packed_by_node, read_node, unpack_node

MARK = "m" * 8
FRAME = {"name": "f", "filename": "/w/a.py", "short_filename": "a.py", "line": 3}
STACK = json.dumps([{"thread_name": "MainThread", "os_thread_id": 9, "frames": [FRAME]}])
HEAD = "node\tn1\t1\nwitness\tslurmd\t1001\tbob\ntool\t/x/py-spy\tpy-spy 0.4\nscope\t1\n"
PROC = "proc\t9\t1\t0\t3\t7\tS\tpython3\nexe\t9\t/usr/bin/python3\nenv\t9\tRANK\t7 \n"


def sent(text: str, node: str = "n1", width: int = 40) -> list[str]:
    data = b64encode(gzip.compress(text.encode())).decode()
    pieces = [data[i : i + width] for i in range(0, len(data), width)]
    rows = [f"{MARK} {node} {n} {piece}" for n, piece in enumerate(pieces, 1)]
    return [*rows, f"{MARK} {node} end {len(rows)}"]


def joined(*lines: str) -> bytes:
    return "\n".join(lines).encode() + b"\n"


def test_answers_of_many_nodes_are_told_apart_in_whatever_order() -> None:
    """srun mixes lines of nodes, and login scripts add their own."""
    one, two = sent("first\n" * 50), sent("second\n" * 50, "n2")
    mixed = [line for pair in zip(one[::-1], two[::-1], strict=False) for line in pair]
    rest = [line for line in (*one, *two) if line not in mixed]
    found = {
        n: unpack_node(d)
        for n, d in packed_by_node(joined("Welcome!", *mixed, "", *rest), MARK).items()
    }
    assert found == {"n1": "first\n" * 50, "n2": "second\n" * 50}


@pytest.mark.parametrize("lost", [0, 1, -1])
def test_an_answer_that_lacks_a_piece_is_none(lost: int) -> None:
    rows = sent("first\n" * 50)
    del rows[lost]
    assert packed_by_node(joined(*rows), MARK) == {}


@pytest.mark.parametrize("piece", [b"!!!!", b"AAAA"])
def test_what_is_no_packed_text_cannot_be_told(piece: bytes) -> None:
    with pytest.raises(CannotTell, match="damaged"):
        unpack_node(piece)


def test_a_text_that_unfolds_without_end_is_no_answer() -> None:
    """A node may be in anybody's hands; half an answer would make its last ranks look gone."""
    for data in (gzip.compress(bytes(200 * 2**20), 1), gzip.compress(b"proc\t9" * 99)[:-9]):
        with pytest.raises(CannotTell, match="cut off"):
            unpack_node(b64encode(data))


def test_a_python_process_with_its_stack() -> None:
    told = read_node(f"{HEAD}{PROC}python\t9\nstack\t9\t{STACK}\nseen\t1\n", "n1")
    [process] = told.processes
    assert (process.pid, process.task, process.env, process.python) == (9, 7, {"RANK": "7"}, True)
    assert process.main_thread is not None
    assert (process.main_thread.frames[0].function, process.main_thread.frames[0].line) == ("f", 3)
    assert process_kind(process) is StandKind.PYTHON


@pytest.mark.parametrize(
    ("lines", "kind", "why"),
    [
        ("failed\t9\t1\tError: Permission denied (os error 13)", StandKind.UNREADABLE,
         "no permission to read it as uid 1001 (kernel.yama.ptrace_scope=1 there)"),
        ("failed\t9\t1\tError: Failed to get process executable name. Check", StandKind.UNREADABLE,
         "it ended during the dump"),
        ("failed\t9\t124\t", StandKind.UNREADABLE, "py-spy did not finish in time"),
        ("failed\t9\t1\tError: Unknown version 9.9 Stack backtrace: 0: x", StandKind.UNREADABLE,
         "Unknown version 9.9"),
        ("stack\t9\tnot json", StandKind.UNREADABLE, "py-spy's answer is not understood"),
        ("stack\t9\t[{}]", StandKind.UNREADABLE, "py-spy's answer is not understood"),
        ("blocked\t9\t9\tfolio_wait\t\nwaits\t9\treading\t/x", StandKind.BLOCKED, ""),
        ("other\t9", StandKind.OTHER, ""),
    ],
)  # fmt: skip
def test_what_keeps_a_stack_from_being_read_is_named(lines: str, kind: StandKind, why: str) -> None:
    [process] = read_node(f"{HEAD}{PROC}{lines}\nseen\t1\n", "n1").processes
    assert process_kind(process) is kind
    assert process.why.startswith(why)


def test_a_node_without_py_spy_says_so_for_each_process() -> None:
    head = HEAD.replace("tool\t/x/py-spy\tpy-spy 0.4", "no-tool\tpy-spy is not installed")
    [process] = read_node(f"{head}{PROC}python\t9\nseen\t1\n", "n1").processes
    assert (process_kind(process), process.why) == (StandKind.UNREADABLE, "py-spy is not installed")


@pytest.mark.parametrize(
    ("witness", "sees"),
    [
        ("slurmd\t1001\tbob", True),
        ("environment\t0\troot", True),
        ("environment\t1000\talice", True),
        ("environment\t1001\tbob", False),
    ],
)
def test_who_may_not_see_processes_does_not_call_them_gone(witness: str, sees: bool) -> None:
    told = read_node(f"node\tn1\t1\nwitness\t{witness}\nnone\n", "n1")
    assert told.can_see("alice") is sees


@pytest.mark.parametrize(
    "text",
    ["", "hello", HEAD, f"{HEAD}{PROC}python\t9\n", f"{HEAD}cut\n", f"{HEAD}proc\t9", f"{HEAD}exe\t9\tx", f"{HEAD}{PROC}blocked\t9\tx", f"{HEAD}env\t9"],
)  # fmt: skip
def test_another_form_is_no_answer(text: str) -> None:
    with pytest.raises(CannotTell):
        read_node(text, "n1")


def test_escape_sequences_stay_text() -> None:
    """Function and file names are users' own."""
    stack = json.dumps([{"thread_name": "x", "os_thread_id": 9,
                         "frames": [{"name": "\x1b[2J", "filename": "a\nb", "line": 1}]}])  # fmt: skip
    [process] = read_node(f"{HEAD}{PROC}stack\t9\t{stack}\nseen\t1\n", "n1").processes
    assert process.main_thread is not None
    assert (process.main_thread.frames[0].function, process.main_thread.frames[0].file) == (
        "\\x1b[2J",
        "a\\nb",
    )
