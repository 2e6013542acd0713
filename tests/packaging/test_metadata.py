"""What an index of packages shows of the wheel: its licences, and a README whose links lead somewhere."""

import re
import runpy
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from tests.lab.systemd import ROOT
from tests.packaging.wheels import build_wheel

resolve_links = runpy.run_path(str(ROOT / "packaging" / "index_readme.py"))["resolve_links"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RELATIVE = re.compile(r"\]\((?!https?:|#)[^)]*\)")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel")))


def read_metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_both_licences_are_named_and_there(wheel: zipfile.ZipFile) -> None:
    """uPlot, which lies in the page, is MIT; its text and its holder travel with it."""
    metadata = read_metadata(wheel)
    assert metadata["License-Expression"] == "Apache-2.0 AND MIT"
    texts = [
        wheel.read(name).decode()
        for file in metadata.get_all("License-File", [])
        for name in wheel.namelist()
        if name.endswith(f".dist-info/licenses/{file}")
    ]
    assert [re.findall(r"Copyright (?:\(c\) )?20.*", text) for text in texts] == [
        ["Copyright 2026 The sentinel authors"],
        ["Copyright (c) 2022 Leon Sorokin"],
    ]
    source = wheel.read("sentinel/web/static/uplot.js")[:80].decode()
    assert source.startswith("/*! https://github.com/leeoniya/uPlot (v1.")


def test_every_classifier_is_one_that_an_index_takes(wheel: zipfile.ZipFile) -> None:
    """An index refuses an upload for a single one that it does not know."""
    trove = pytest.importorskip("trove_classifiers")
    named = read_metadata(wheel).get_all("Classifier", [])
    assert set(named) - trove.classifiers == set()
    assert len(named) > 10


@pytest.mark.parametrize("source", ["", "https://example.org/sentinel"])
def test_no_link_of_the_readme_leads_nowhere(source: str) -> None:
    """An index has no other file of the project: links lead to its source, or are text."""
    assert len(RELATIVE.findall(README)) > 20
    shown = resolve_links(README, source)
    assert RELATIVE.findall(shown) == []
    assert ("![" in shown) == bool(source)
    assert (f"]({source}/raw/main/docs/pictures/mail.png)" in shown) == bool(source)
    assert (f"]({source}/blob/main/CHANGELOG.md)" in shown) == bool(source)


def test_links_that_are_whole_stay() -> None:
    text = "[a](https://example.org) [b](#here) ![c](https://example.org/c.png) [d](mailto:x@y.z)"
    assert resolve_links(text, "") == text


def test_the_wheel_has_that_readme(wheel: zipfile.ZipFile) -> None:
    shown = str(read_metadata(wheel).get_payload())
    assert shown.startswith("# sentinel\n")
    assert RELATIVE.findall(shown) == []


def test_what_is_packed_as_source_builds_again(tmp_path: Path) -> None:
    """The hook travels with it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (packed,) = tmp_path.glob("*.tar.gz")
    subprocess.run(["tar", "-xf", str(packed), "-C", str(tmp_path)], check=True)
    (source,) = (p for p in tmp_path.iterdir() if p.is_dir())
    for name in ("SECURITY.md", "CONTRIBUTING.md"):
        assert (source / name).exists()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    assert [*source.glob("dist/*.whl")]
