"""Whoever types a command in somebody else's folder runs nothing of theirs."""

import ast
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sentinel.nodes import node_tests
from tests.hostile.lure import COMMANDS, lay_lures, make_typed
from tests.lab.paths import ROOT


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_module_or_program_is_taken_from_the_working_directory(
    words: Sequence[str], tmp_path: Path
) -> None:
    lures, home = tmp_path / "lures", tmp_path / "home"
    lures.mkdir()
    home.mkdir()
    caught = lay_lures(lures)
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run(
        make_typed(words), cwd=lures, env=env, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert [path.name for path in caught.iterdir()] == []


def test_nor_is_it_where_a_test_of_nodes_runs(tmp_path: Path) -> None:
    """srun begins in the directory in which it was typed, on every node."""
    caught = lay_lures(tmp_path)
    with open(Path(node_tests.__file__).with_name("node_test.py"), "rb") as program:
        done = subprocess.run(
            [*node_tests.ARGV, "MARK", "cuda", "n1", "n1", "20000", "0", "", ""], stdin=program,
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert "MARK" in done.stdout, done.stderr
    assert [path.name for path in caught.iterdir()] == []


def test_every_python_of_ours_begins_elsewhere() -> None:
    """`-m` and `-c` look for modules in the working directory first: -I, or another directory."""
    bare = [f"{path}:{call.lineno}" for path, call in _list_python_starts() if not _is_safe(call)]
    assert bare == []


def _list_python_starts() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted((ROOT / "sentinel").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(call, ast.Call)
                and any("sys.executable" in ast.unparse(a) for a in call.args)
                and ast.unparse(call.func)
                in (
                    "proc.run",
                    "run",
                    "subprocess.run",
                    "subprocess.Popen",
                )
            ):
                yield str(path.relative_to(ROOT)), call


def _is_safe(call: ast.Call) -> bool:
    text = ast.unparse(call)
    return "'-I'" in text or "cwd='/'" in text
