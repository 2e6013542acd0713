"""The root that most tests remove from."""

from pathlib import Path

import pytest

from tests.clean.world import checkpoint


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Five checkpoints, and a treasure outside."""
    root = tmp_path / "ckpt"
    for number in range(1, 6):
        checkpoint(root, number)
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").write_text("gold")
    return root
