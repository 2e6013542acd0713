"""`host`: a machine of several users."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.host import Host
from tests.lab import needs


@pytest.fixture
def host() -> Iterator[Host]:
    """Below /tmp, which every user may enter; pytest's own directories are closed to others."""
    if os.geteuid() != 0:
        (pytest.fail if needs.required() else pytest.skip)("becomes other users, which needs root")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Host(Path(folder))
