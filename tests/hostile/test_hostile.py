"""All attacks at once, on a real cluster: none achieves anything."""

import subprocess
import sys

import pytest

from tests.hostile.__main__ import ROWS
from tests.lab import paths


@pytest.mark.nightly
@pytest.mark.lab
@pytest.mark.timeout(1200)
def test_an_ordinary_user_of_the_cluster_achieves_nothing() -> None:
    """And all was tried: a row without a try is none."""
    argv = [sys.executable, "-m", "tests.hostile"]
    done = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    fallen = "\n".join(line for line in lines if "NOT HELD" in line)
    assert done.returncode == 0, f"{fallen}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    rows = [line for line in lines if line.endswith(" held")]
    assert len(rows) == len(ROWS) + 3  # the head, /proc and /healthz
    assert not [row for row in rows if "       0 " in row]
