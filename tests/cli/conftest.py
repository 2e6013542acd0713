"""`host`: a machine of several users."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.host import Host


@pytest.fixture
def host(as_root: None) -> Iterator[Host]:
    """Below /tmp, which every user may enter; pytest's own directories are closed to others."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Host(Path(folder))
