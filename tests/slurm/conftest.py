"""Stand-ins for Slurm's commands."""

from pathlib import Path

import pytest

from tests.slurm.stand_ins import StandIns


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    """An empty folder at the head of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return StandIns(folder)
