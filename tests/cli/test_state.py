"""Commands that only look at the state."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def said(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "XDG_STATE_HOME": str(folder), "HOME": str(folder)}
    env.pop("SENTINEL_CONFIG", None)
    return subprocess.run(
        [sys.executable, "-m", "sentinel", *words],
        env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("words", [("status",), ("alerts", "list"), ("alerts", "history")])
def test_who_only_looks_makes_no_state(words: tuple[str, ...], tmp_path: Path) -> None:
    """Made by root's curious look, it would be in the way of the service's own user."""
    done = said(tmp_path, *words)
    assert done.returncode == 0
    assert done.stderr == (
        f"sentinel: {tmp_path}/sentinel: no state yet; sentinel run or sentinel tick makes it\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_scripts_get_their_document(tmp_path: Path) -> None:
    """Nothing fires where nothing ever ran; stdout is JSON alone."""
    assert json.loads(said(tmp_path, "status", "--json").stdout)["alerts"] == []


def test_an_order_has_to_be_written_somewhere(tmp_path: Path) -> None:
    """A silence into nowhere would be believed to hold."""
    done = said(tmp_path, "alerts", "silence", "check=fs", "--for", "1h", "--reason", "x")
    assert done.returncode == 66
    assert "no state yet" in done.stderr
    assert list(tmp_path.iterdir()) == []
