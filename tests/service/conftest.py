"""`watch`: a sentinel with its configuration; `night`: one that watches the lab."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.cluster import Lab
from tests.lab.service import Service
from tests.service.watch import Watch


@pytest.fixture
def watch(tmp_path: Path, service: Callable[..., Service]) -> Watch:
    """Without Slurm: SLURM_CONF names nothing."""
    return Watch(tmp_path, service, None)


@pytest.fixture
def night(tmp_path: Path, service: Callable[..., Service], fresh: Lab) -> Watch:
    """On the lab's cluster."""
    return Watch(tmp_path, service, fresh.env)
