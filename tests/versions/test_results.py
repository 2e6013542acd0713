"""What tests said, in a table."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.versions import results

SAYS = """\
import pytest

@pytest.mark.parametrize("x", ["a.b::c", "d|e"])
def test_good(x): pass

def test_bad(): assert 1 == 2, "one | two"

def test_left_out(): pytest.skip("no licence here")

@pytest.fixture
def broken(): raise OSError("no lab")

def test_without(broken): pass
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file and a page of the test's own, with one run of pytest kept as 25.11.7."""
    monkeypatch.setattr(results, "FILE", tmp_path / "results.json")
    monkeypatch.setattr(results, "PAGE", tmp_path / "versions.md")
    folder = tmp_path / "tests/checks/drained"
    folder.mkdir(parents=True)
    (folder / "test_live.py").write_text(SAYS)
    xml = tmp_path / "out.xml"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={xml}"]
    subprocess.run([*argv, "--rootdir=."], cwd=tmp_path, check=False, capture_output=True)
    results.keep("25.11.7", results.read(xml))
    return tmp_path


def test_the_table_says_what_passed_and_why_not(kept: Path) -> None:
    """A version that was not run has no row; each test that did not pass has a line."""
    rows = results.table(results.load()).splitlines()
    assert rows[0] == "| Slurm | checks/drained |"
    assert "| 25.11.7 | 2 passed, 2 failed, 1 skipped |" in rows
    assert not any(row.startswith("| 26.05") for row in rows)
    assert "- 25.11.7, `test_bad` failed: AssertionError: one / two" in rows
    assert any("`test_left_out` skipped: " in row and "no licence here" in row for row in rows)
    assert any("`test_without` failed: " in row and "no lab" in row for row in rows)


def test_a_later_run_counts_and_the_others_stay(kept: Path) -> None:
    """Runs merge by version and test; what stands around the table in the page stays too."""
    results.PAGE.write_text(f"# Versions\n{results.BEGIN}old\n{results.END}after\n")
    results.keep("25.11.7", {"tests.checks.drained.test_live::test_bad": ("passed", "")})
    results.keep("22.05.8", {"tests.slurm.test_live::test_x": ("passed", "")})
    results.write()
    page = results.PAGE.read_text()
    assert "| 22.05.8 | not run | 1 passed |" in page
    assert "| 25.11.7 | 3 passed, 1 failed, 1 skipped | not run |" in page
    assert page.startswith("# Versions\n")
    assert page.endswith("after\n")
    assert "old" not in page


def test_the_page_says_what_was_kept() -> None:
    """`python -m tests.versions table` has been run."""
    assert results.table(results.load()) in results.PAGE.read_text()
