"""`make release` tags what was checked and built, and nothing else."""

import hashlib
import json
import runpy
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.lab.systemd import ROOT

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "packaging")
    RELEASE: dict[str, Any] = runpy.run_path(str(ROOT / "packaging" / "release.py"))
    list_artefacts = RELEASE["list_artefacts"]
NotReady: Any = RELEASE["NotReady"]
TODAY = date(2026, 12, 1)
CHANGELOG = """\
# Changelog

## Unreleased

## 0.2.0 (2026-12-01)

- New.

## 0.1.0 (2026-11-27)

- Old.
"""


LINES = "### For all\n\n- New.\n"


def run_git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def make_tree(root: Path, changelog: str = CHANGELOG, version: str = "0.2.0") -> Path:
    """A project, committed."""
    (root / "sentinel").mkdir(parents=True)
    (root / "sentinel" / "__init__.py").write_text(f'"""s."""\n\n__version__ = "{version}"\n')
    (root / "CHANGELOG.md").write_text(changelog)
    states = root / "tests" / "store" / "states"
    states.mkdir(parents=True)
    for kind in ("sqlite", "postgresql"):
        (states / f"{version}.{kind}.sql").write_text("SELECT 1;\n")
    run_git(root, "init", "-q")
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", "a")
    return root


def test_a_tree_that_is_ready(tmp_path: Path) -> None:
    """The notes are that version's lines alone."""
    assert RELEASE["check_tree"](make_tree(tmp_path), "0.2.0", TODAY) == "- New.\n"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## Unreleased\n", "## Unreleased\n\n- More.\n", "not empty"),
        ("## Unreleased\n\n", "", "has to begin with '## Unreleased'"),
        ("0.2.0 (2026-12-01)", "0.2.0 (2026-12-02)", "has to begin with"),
        ("0.2.0 (2026-12-01)", "0.2.0", "has to begin with"),
        ("0.2.0 (2026-12-01)", "0.2.1 (2026-12-01)", "has to begin with"),
        ("- New.\n", "", "says nothing"),
    ],
)
def test_a_changelog_that_is_not(tmp_path: Path, old: str, new: str, says: str) -> None:
    tree = make_tree(tmp_path, CHANGELOG.replace(old, new, 1))
    with pytest.raises(NotReady, match=says):
        RELEASE["check_tree"](tree, "0.2.0", TODAY)


@pytest.mark.parametrize("version", ["", "0.2", "v0.2.0", "0.2.0rc1", "0.2.0; true"])
def test_what_is_no_version(tmp_path: Path, version: str) -> None:
    with pytest.raises(NotReady, match="no version"):
        RELEASE["check_tree"](make_tree(tmp_path), version, TODAY)


def test_a_tree_that_is_not_clean_tagged_or_of_another_version(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "a")
    (tree / "left").write_text("x")
    with pytest.raises(NotReady, match="not committed"):
        RELEASE["check_tree"](tree, "0.2.0", TODAY)
    (tree / "left").unlink()
    run_git(tree, "tag", "v0.2.0")
    with pytest.raises(NotReady, match="there already"):
        RELEASE["check_tree"](tree, "0.2.0", TODAY)
    with pytest.raises(NotReady, match=r"says 0\.1\.9, not 0\.2\.0"):
        RELEASE["check_tree"](make_tree(tmp_path / "b", version="0.1.9"), "0.2.0", TODAY)


def test_a_release_without_its_golden_state(tmp_path: Path) -> None:
    """Later versions could not be tried on it."""
    tree = make_tree(tmp_path)
    run_git(tree, "rm", "-q", "tests/store/states/0.2.0.sqlite.sql")
    run_git(tree, "commit", "-qm", "b")
    with pytest.raises(NotReady, match=r"tests\.store\.golden 0\.2\.0"):
        RELEASE["check_tree"](tree, "0.2.0", TODAY)


def make_artefacts(dist: Path, version: str = "0.2.0") -> None:
    """Files of all the names, and their checksums."""
    dist.mkdir(exist_ok=True)
    names = sorted(list_artefacts(version) - {"SHA256SUMS"})
    for name in names:
        (dist / name).write_text(name)
    sums = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names]
    (dist / "SHA256SUMS").write_text("".join(sums))


def test_artefacts_have_to_be_whole(tmp_path: Path) -> None:
    find_unfit = RELEASE["find_unfit_artefacts"]
    assert "SHA256SUMS" in find_unfit(tmp_path / "dist", "0.2.0")
    make_artefacts(tmp_path / "dist")
    assert find_unfit(tmp_path / "dist", "0.2.0") == ""
    assert "0.3.0" in find_unfit(tmp_path / "dist", "0.3.0")
    (tmp_path / "dist/sentinel.pyz").write_text("cut")
    assert "sentinel.pyz: FAILED" in find_unfit(tmp_path / "dist", "0.2.0")
    (tmp_path / "dist/slurm_sentinel_training-0.2.0.tar.gz").unlink()
    assert "not in dist/: slurm_sentinel_training" in find_unfit(tmp_path / "dist", "0.2.0")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """At 0.1.0, with lines for the next. `make packages` and the maker of states are stand-ins; each
    step writes its name to `steps`, and fails where a file of its name with .fails lies there."""
    tree = make_tree(
        tmp_path / "tree",
        CHANGELOG.replace("## 0.2.0 (2026-12-01)\n\n", "").replace("- New.\n", LINES),
        version="0.1.0",
    )
    for name, value in {"GIT_AUTHOR": "a", "GIT_COMMITTER": "a"}.items():
        monkeypatch.setenv(f"{name}_NAME", value)
        monkeypatch.setenv(f"{name}_EMAIL", f"{value}@example.org")
    step = "echo {0} >>{1}/steps; test ! -e {1}/{0}.fails"
    make_states = "for k in sqlite postgresql; do echo a >tests/store/states/0.2.0.$k.sql; done"
    make_dist = f"rm -rf dist; cp -a {tmp_path}/made dist"
    make_artefacts(tmp_path / "made")
    for name, more in {"packages": make_dist, "checks": "true", "states": make_states}.items():
        (tmp_path / name).write_text(f"{step.format(name, tmp_path)} || exit 1; {more}\n")
    (tree / ".gitignore").write_text("/dist/\n/build/\n__pycache__/\n")
    (tree / "Makefile").write_text(f"packages:\n\t@test -z '$(ARGS)' && sh {tmp_path}/packages\n")
    for package in ("tests", "tests/store"):
        (tree / package / "__init__.py").touch()
    (tree / "tests/store/golden.py").write_text(
        f"import subprocess\nsubprocess.run(['sh', '{tmp_path}/states'], check=True)\n"
    )
    run_git(tree, "add", "-A")
    run_git(tree, "commit", "-qm", "b")
    return tree


def release(tree: Path) -> str:
    """The tag, or why there is none."""
    try:
        return str(RELEASE["release"](tree, "0.2.0", f"sh {tree.parent}/checks"))
    except NotReady as error:
        return str(error)


def read_git(tree: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def list_steps(tree: Path) -> list[str]:
    return (tree.parent / "steps").read_text().split()


def test_one_command_sets_checks_builds_and_tags(tree: Path) -> None:
    assert release(tree) == "v0.2.0"
    assert list_steps(tree) == ["states", "checks", "packages"]
    assert '__version__ = "0.2.0"' in (tree / "sentinel/__init__.py").read_text()
    assert read_git(tree, "log", "-1", "--format=%s") == "Release 0.2.0"
    assert read_git(tree, "rev-parse", "v0.2.0^{commit}") == read_git(tree, "rev-parse", "HEAD")
    assert LINES.strip() in read_git(tree, "tag", "--list", "--format=%(contents)", "v0.2.0")
    assert (tree / "dist/NOTES.md").read_text() == LINES
    assert RELEASE["_HEADING"].findall((tree / "CHANGELOG.md").read_text())[0] == "Unreleased"
    assert read_git(tree, "status", "--porcelain") == ""


def test_words_for_the_release_are_not_handed_to_its_steps(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make release ARGS=…` sets both for every make below it."""
    monkeypatch.setenv("ARGS", "--checks true")
    monkeypatch.setenv("MAKEFLAGS", " -- ARGS=--checks\\ true")
    release(tree)
    assert list_steps(tree) == ["states", "checks", "packages"]


@pytest.mark.parametrize("step", ["checks", "packages"])
def test_a_failure_half_way_says_what_is_left_and_goes_on_there(tree: Path, step: str) -> None:
    (tree.parent / f"{step}.fails").touch()
    said = release(tree)
    left = ["make packages", "tag v0.2.0"]
    left = [f"sh {tree.parent}/checks", *left] if step == "checks" else left
    assert f"Left to do: {', '.join(left)}; the same command" in said
    assert read_git(tree, "tag", "--list") == ""
    (tree.parent / f"{step}.fails").unlink()
    assert release(tree) == "v0.2.0"
    again = {
        "checks": ["checks", "checks", "packages"],
        "packages": ["checks", "packages", "packages"],
    }
    assert list_steps(tree) == ["states", *again[step]]
    assert read_git(tree, "log", "--format=%s").splitlines() == ["Release 0.2.0", "b", "a"]


def test_what_was_checked_counts_for_its_commit_alone(tree: Path) -> None:
    (tree.parent / "packages.fails").touch()
    release(tree)
    (tree.parent / "packages.fails").unlink()
    run_git(tree, "commit", "-q", "--allow-empty", "-m", "c")
    assert release(tree) == "v0.2.0"
    assert list_steps(tree) == ["states", "checks", "packages", "checks", "packages"]


def test_packages_that_were_lost_are_built_again(tree: Path) -> None:
    assert release(tree) == "v0.2.0"
    commit = json.loads((tree / "build/release.json").read_text())
    assert [*commit.values()] == [[f"sh {tree.parent}/checks", "make packages"]]
    run_git(tree, "tag", "--delete", "v0.2.0")
    (tree / "dist/sentinel.pyz").write_text("cut")
    assert release(tree) == "v0.2.0"
    assert list_steps(tree) == ["states", "checks", "packages", "packages"]


@pytest.mark.parametrize("trouble", ["states", "changelog"])
def test_a_version_that_cannot_be_set_changes_nothing(tree: Path, trouble: str) -> None:
    if trouble == "states":
        (tree.parent / "states.fails").touch()
    else:
        changelog = tree / "CHANGELOG.md"
        changelog.write_text(changelog.read_text().replace(LINES, ""))
        run_git(tree, "commit", "-qam", "c")
    said = release(tree)
    assert ("no state to keep" if trouble == "states" else "says nothing") in said
    assert read_git(tree, "status", "--porcelain") == ""
    assert '__version__ = "0.1.0"' in (tree / "sentinel/__init__.py").read_text()


def test_a_tree_that_changes_while_it_is_checked_is_not_tagged(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(head, cwd=tree, capture_output=True, text=True, check=True)
    RELEASE["check_unchanged"](tree, commit.stdout.strip())
    run_git(tree, "commit", "-q", "--allow-empty", "-m", "b")
    with pytest.raises(NotReady, match="meanwhile"):
        RELEASE["check_unchanged"](tree, commit.stdout.strip())


def test_this_changelog_has_the_form_of_a_release() -> None:
    """With the newest version's lines below an "Unreleased" that may have some."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = RELEASE["_HEADING"].findall(text)
    assert headings[0] == "Unreleased"
    for heading in headings[1:]:
        assert RELEASE["_is_heading"](heading, heading.partition(" ")[0], date.max)
