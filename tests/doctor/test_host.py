"""Doctor on the host: the state's place, munge; nothing is made or changed."""

import os
import subprocess
from pathlib import Path

import pytest

from sentinel.core.model import Status
from sentinel.doctor import host


def test_a_state_that_can_be_written(tmp_path: Path) -> None:
    """A file was written there, and is gone again."""
    item = host.check_state_dir(str(tmp_path))
    assert (item.status, item.text) == (Status.OK, f"{tmp_path} is writable")
    assert list(tmp_path.iterdir()) == []


def test_a_state_to_come_is_not_made(tmp_path: Path) -> None:
    """doctor is run by root, too: the service could not enter what root has made."""
    wanted = tmp_path / "sentinel" / "state"
    item = host.check_state_dir(str(wanted))
    assert item.status is Status.OK
    assert item.text == f"{tmp_path} is writable; {wanted} is made at the first start"
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """Whoever asks; and with what to do."""
    (tmp_path / "state").write_text("")
    for wanted in ("state", "state/of/sentinel"):
        item = host.check_state_dir(str(tmp_path / wanted))
        assert item.status is Status.CRITICAL
        assert item.text == f"{tmp_path}/state: not a directory that may be written"
        assert item.remedy


def test_a_directory_of_the_kernel_takes_no_file() -> None:
    """It says that it may be written and refuses: only trying tells."""
    item = host.check_state_dir("/proc/self/fd")
    assert item.status is Status.CRITICAL


@pytest.mark.parametrize("directory", ["-n", "$(touch x)", "a\nb", "-e /"])
def test_an_odd_name_is_a_name(
    directory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No option, no command, one line."""
    monkeypatch.chdir(tmp_path)
    item = host.check_state_dir(directory)
    assert "\n" not in item.text
    assert item.status is Status.OK
    assert os.listdir() == []


def test_munge_that_fails_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm may be asked from another host, or do without it; if not, slurmctld is critical."""
    fake = tmp_path / "munge"
    fake.write_text("#!/bin/sh\necho 'munge: Error: Failed to access socket' >&2\nexit 6\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    item = host.check_munge()
    assert (item.status, item.text) == (Status.WARNING, "munge: Error: Failed to access socket")
    assert "munged" in item.remedy


def test_another_projects_sentinel_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index has a distribution of that name, which hides sentinel.training; ours is none."""
    assert list(host.check_namesake()) == []
    info = tmp_path / "sentinel-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sentinel\nVersion: 1.0.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (item,) = host.check_namesake()
    assert (item.status, "sentinel 1.0.0" in item.text) == (Status.WARNING, True)
    assert "pip uninstall sentinel" in item.remedy


def test_an_installation_that_every_start_compiles_is_told(tmp_path: Path) -> None:
    """Its folder may not be written, or a start would have left it compiled; the remedy mends it."""
    package = tmp_path / "site packages" / "sentinel"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (item,) = host.check_bytecode(str(package))
    assert item.status is Status.WARNING
    assert "every start compiles it" in item.text
    command = item.remedy.removeprefix("once, as its owner: ")
    subprocess.run(["sh", "-c", command], check=True, timeout=60)
    assert list(host.check_bytecode(str(package))) == []
    assert list(host.check_bytecode(str(tmp_path / "sentinel.pyz" / "sentinel"))) == []
