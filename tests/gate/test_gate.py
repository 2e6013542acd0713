"""A failing test is heard again; the last screen says why a step failed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.paths import ROOT

PASSES = "def test_passes():\n    pass\n"
FAILS = "def test_fails():\n    wanted = 2\n    assert 1 + 2 == wanted, 'sums'\n"
UNSTEADY = """
import pathlib, pytest
@pytest.mark.parametrize("number", range({count}))
def test_unsteady(number):
    seen = pathlib.Path(f"seen-{{number}}")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first, "lost a race"
"""


def _hear(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        **environ,
        "PYTHONPATH": str(ROOT),
        # Of all plugins the needed one: the others cost a second at each start.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p xdist.plugin -p no:cacheprovider",
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.gate.hearing", "test", *words],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def _table(folder: Path, steps: str) -> subprocess.CompletedProcess[str]:
    gate = folder / "build/gate"
    gate.mkdir(parents=True, exist_ok=True)
    (gate / "steps").write_text(steps)
    return subprocess.run(
        [sys.executable, "-m", "tests.gate.table", str(gate)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_what_passes_is_not_heard_again(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").write_text(PASSES)
    done = _hear(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "again, alone" not in done.stdout


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_a_failing_test_fails_and_is_shown_with_its_reason(
    tmp_path: Path, workers: list[str]
) -> None:
    (tmp_path / "test_here.py").write_text(PASSES + FAILS)
    done = _hear(tmp_path, *workers)
    assert done.returncode == 1
    assert done.stdout.rstrip().splitlines()[-1] == "FAILED test_here.py::test_fails"
    said = _table(tmp_path, "check 3 0\ntest 12 1\n")
    assert said.returncode == 1
    assert "FAILED in test: test_here.py::test_fails" in said.stdout
    assert "AssertionError: sums" in said.stdout
    assert "test_here.py:5: AssertionError" in said.stdout.rstrip().splitlines()[-1]


def test_an_unsteady_test_is_named_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").write_text(PASSES + UNSTEADY.format(count=1))
    done = _hear(tmp_path, "-n", "2")
    assert done.returncode == 0, done.stdout
    assert "1 unsteady" in done.stdout
    said = _table(tmp_path, "test 12 0\n")
    assert said.returncode == 0
    assert "unsteady in test: test_here.py::test_unsteady[0]" in said.stdout
    assert "lost a race" in said.stdout


@pytest.mark.long
def test_six_unsteady_tests_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").write_text(UNSTEADY.format(count=6))
    done = _hear(tmp_path)
    assert done.returncode == 1
    assert "more than 5 unsteady tests fail the run" in done.stdout


def test_more_than_ten_failing_tests_are_not_heard_again(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").write_text(UNSTEADY.format(count=11))
    done = _hear(tmp_path)
    assert done.returncode == 1
    assert "again, alone" not in done.stdout
    outcomes = json.loads((tmp_path / "build/gate/test.json").read_text())
    assert len(outcomes["failed"]) == 11


def test_a_file_that_cannot_be_imported_fails(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").write_text("import no_such_module\n")
    (tmp_path / "test_there.py").write_text(PASSES)
    done = _hear(tmp_path, "-n", "2")
    assert done.returncode != 0
    said = _table(tmp_path, f"test 12 {done.returncode}\n")
    assert "no_such_module" in said.stdout


@pytest.mark.parametrize("words", [["-x"], ["--maxfail=1", "-n", "2"]])
def test_a_run_that_was_cut_short_never_passes(tmp_path: Path, words: list[str]) -> None:
    """The tests after the unsteady one have not run."""
    (tmp_path / "test_here.py").write_text(UNSTEADY.format(count=1) + FAILS)
    assert _hear(tmp_path, *words).returncode != 0


def test_words_that_pytest_does_not_know_are_no_failed_test(tmp_path: Path) -> None:
    assert _hear(tmp_path, "--no-such-option").returncode == int(pytest.ExitCode.USAGE_ERROR)


def test_a_run_that_selects_no_test_fails(tmp_path: Path) -> None:
    """A marker that is misspelled would make everything pass."""
    (tmp_path / "test_here.py").write_text(PASSES)
    done = _hear(tmp_path, "-k", "no_such_test")
    assert done.returncode == int(pytest.ExitCode.NO_TESTS_COLLECTED)


@pytest.mark.root
def test_a_disk_without_room_is_said_before_any_test_runs(tmp_path: Path) -> None:
    (tmp_path / "test_here.py").write_text(PASSES)
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(small)], check=True)
    try:
        done = _hear(tmp_path, TMPDIR=str(small))
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"the tests need 3 GiB in {small}, where 0.0 GiB are free" in done.stderr


def test_no_step_is_no_success(tmp_path: Path) -> None:
    """The disk was full, so nothing was noted."""
    said = _table(tmp_path, "")
    assert said.returncode == 1
    assert "no step is noted" in said.stdout


STEPS = """
cd "$1" || exit
source "$2/.ci/steps"
python3() { (cd "$root" && command python3 "$@"); }
root=$2 folder=$1/build/gate
step well true
{lose}
step bad false
{find}
tell_steps
"""


@pytest.mark.root
@pytest.mark.parametrize("is_full", [False, True])
def test_a_step_that_cannot_be_noted_fails_the_run(tmp_path: Path, is_full: bool) -> None:
    """/dev/full stands for a disk on which nothing can be written while the bad step runs."""
    gate = tmp_path / "build/gate"
    lose = f"mv {gate}/steps {gate}/kept; ln -s /dev/full {gate}/steps" if is_full else ""
    find = f"rm {gate}/steps; mv {gate}/kept {gate}/steps" if is_full else ""
    script = STEPS.replace("{lose}", lose).replace("{find}", find)
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(tmp_path), str(ROOT)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "well" in done.stdout


def test_a_step_without_tests_is_shown_by_its_last_lines(tmp_path: Path) -> None:
    gate = tmp_path / "build/gate"
    gate.mkdir(parents=True)
    (gate / "install.log").write_text("\n".join(f"line {n}" for n in range(30)) + "\nno network\n")
    said = _table(tmp_path, "install 5 2\n")
    assert said.returncode == 1
    assert said.stdout.rstrip().endswith("no network")
    assert "line 5\n" not in said.stdout
