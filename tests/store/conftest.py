"""Fixtures of the store's tests."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.disk import Disk
from tests.store.workers import Workers


@pytest.fixture
def disk(tmp_path: Path, as_root: None) -> Iterator[Disk]:
    """A file system of one megabyte that a test can fill."""
    point = tmp_path / "disk"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(point)], check=True)
    yield Disk(point)
    subprocess.run(["umount", "--lazy", str(point)], check=True)


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Starts other processes that write to a state."""
    with Workers() as workers:
        yield workers
