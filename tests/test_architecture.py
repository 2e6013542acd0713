"""The map of the house: every path in docs/architecture.md is there, and every room is in it."""

import re
import subprocess

import pytest

from tests.lab.systemd import ROOT

MAP = (ROOT / "docs/architecture.md").read_text()
PATHS = frozenset(re.findall(r"`((?:sentinel|tests|docs)/[^`]*)`", MAP))

TOP_LEVEL = frozenset(
    [
        ".ci",
        ".github",
        ".gitignore",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "SECURITY.md",
        "benchmarks",
        "config",
        "docs",
        "mkdocs.yml",
        "packaging",
        "pyproject.toml",
        "sentinel",
        "slurm",
        "systemd",
        "tests",
    ]
)


def test_the_top_level_holds_what_is_known() -> None:
    """What a test or a script wrote into the current directory was not committed with the rest."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    listed = ["git", "-C", str(ROOT), "ls-files", "-z"]
    done = subprocess.run(listed, capture_output=True, text=True, check=True)
    assert {path.partition("/")[0] for path in done.stdout.split("\0") if path} == TOP_LEVEL


def test_every_path_of_the_map_is_there() -> None:
    """Whoever moves a file moves it on the map, too."""
    assert [path for path in sorted(PATHS) if not (ROOT / path).exists()] == []


def test_every_room_is_on_the_map() -> None:
    """A new folder gets a line that says what it holds."""
    rooms = {f"sentinel/{path.parent.name}/" for path in ROOT.glob("sentinel/*/__init__.py")}
    assert rooms - PATHS == set()


def test_the_glossary_leads_from_the_fields_words_to_files() -> None:
    """Each of its rows names one, and the words are in the order in which one looks for them."""
    glossary = MAP.partition("## Glossary")[2]
    rows = re.findall(r"^\| (.*?) \| (.*) \|$", glossary, re.MULTILINE)[1:]
    assert len(rows) > 40
    assert [words for words, file in rows if not PATHS & {*re.findall("`(.*?)`", file)}] == []
    words = [words.lower() for words, _ in rows]
    assert words == sorted(words)
