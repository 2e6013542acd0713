"""Commands that only look at the state."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOKING = [("status",), ("status", "--json"), ("alerts", "list"), ("explain", "abc")]


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_who_only_looks_makes_no_state(words: tuple[str, ...], tmp_path: Path) -> None:
    """Made by root's curious look, it would be in the way of the service's own user."""
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    env.pop("SENTINEL_CONFIG", None)
    done = subprocess.run(
        [sys.executable, "-m", "sentinel", *words],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 66
    assert done.stderr == (
        f"sentinel: {tmp_path}/sentinel: no state yet; sentinel run or sentinel tick makes it\n"
    )
    assert list(tmp_path.iterdir()) == []
