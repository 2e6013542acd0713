"""`watch`: a sentinel with its configuration; `night`: one that watches the lab."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.cluster import Lab
from tests.lab.service import Service
from tests.service.watch import Watch
from tests.store.disk import Disk


@pytest.fixture
def watch(tmp_path: Path, service: Callable[..., Service]) -> Watch:
    """Without Slurm: SLURM_CONF names nothing."""
    return Watch(tmp_path, service, None)


@pytest.fixture
def night(tmp_path: Path, service: Callable[..., Service], fresh: Lab) -> Watch:
    """On the lab's cluster."""
    return Watch(tmp_path, service, fresh.env)


@pytest.fixture
def disk(tmp_path: Path, as_root: None) -> Iterator[Disk]:
    """A file system of eight megabytes at {folder}/disk that a test can fill."""
    point = tmp_path / "disk"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", str(point)], check=True)
    yield Disk(point)
    subprocess.run(["umount", "--lazy", str(point)], check=True)
