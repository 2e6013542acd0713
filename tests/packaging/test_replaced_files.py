"""Whether the files of a package are being replaced under a process."""

import hashlib
import time
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from sentinel.proc import installation

NAME = "slurm_sentinel-1.0.dist-info"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package that was whole before this process began."""
    folder = tmp_path / "site-packages" / "sentinel"
    metadata = folder.with_name(NAME)
    folder.mkdir(parents=True)
    metadata.mkdir()
    rows = []
    for name in ("__init__.py", "text.py"):
        (folder / name).write_text(name)
        digest = urlsafe_b64encode(hashlib.sha256(name.encode()).digest()).decode().rstrip("=")
        rows.append(f"sentinel/{name},sha256={digest},{len(name)}\n")
    (metadata / "RECORD").write_text("".join(rows))
    monkeypatch.setattr(installation, "PACKAGE_DIR", str(folder))
    monkeypatch.setattr(installation, "LOADED_AT", time.time() + 3600)
    return folder


def begin_before_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "LOADED_AT", 0.0)


def test_a_whole_installation_is_not_being_replaced(package: Path) -> None:
    assert installation.find_replacement() == ""
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "text.pyc").write_bytes(b"the interpreter writes them at any time")
    installation.require_settled_package()


def test_files_that_changed_after_the_start(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although they fit their list again."""
    begin_before_the_changes(monkeypatch)
    assert installation.find_replacement() == "its files changed after this began"
    with pytest.raises(installation.BeingReplaced, match="try again in a minute") as caught:
        installation.require_settled_package()
    assert caught.value.exit_code == 75


def test_half_of_another_version(package: Path) -> None:
    """A process that began between the old files and the new ones."""
    (package / "text.py").write_text("c")
    assert installation.find_replacement() == "sentinel/text.py is not as it was packed"
    (package / "text.py").unlink()
    assert installation.find_replacement() == "sentinel/text.py is not as it was packed"


def test_without_metadata_or_with_those_of_two(package: Path) -> None:
    """pip takes them away first and writes them last; dpkg removes the old ones last."""
    metadata = package.with_name(NAME)
    metadata.rename(metadata.with_name("~lurm_sentinel-1.0.dist-info"))
    assert installation.find_replacement() == "0 versions are installed at once"
    for version in ("1.0", "1.1"):
        metadata.with_name(f"slurm_sentinel-{version}.dist-info").mkdir()
    assert installation.find_replacement() == "2 versions are installed at once"


def test_no_file_is_there(package: Path) -> None:
    package.rename(package.with_name("~entinel"))
    assert installation.find_replacement() == "its files are not there"


def test_what_has_not_changed_for_a_minute_is_not_being_replaced(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a site that took a module out is told what is wrong, and so is a service that stays on its
    version."""
    (package / "text.py").unlink()
    begin_before_the_changes(monkeypatch)
    monkeypatch.setattr(installation, "RECENT_S", -1.0)
    assert installation.find_replacement() == ""


def test_a_checkout_is_never_being_replaced(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = package.parent.rename(package.parent.with_name("checkout"))
    (checkout / NAME / "RECORD").unlink()
    (checkout / NAME).rmdir()
    monkeypatch.setattr(installation, "PACKAGE_DIR", str(checkout / "sentinel"))
    begin_before_the_changes(monkeypatch)
    assert installation.find_replacement() == ""
