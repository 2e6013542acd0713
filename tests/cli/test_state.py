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


@pytest.mark.parametrize(
    "words",
    [
        ("nodes", "maintenance", "status"),
        ("nodes", "breaker", "status", "--json"),
        ("nodes", "list", "--history", "n1"),
        ("gpus", "list"),
    ],
)
def test_nor_who_looks_at_what_was_done(words: tuple[str, ...], tmp_path: Path) -> None:
    """There is nothing on record, and nothing stops actions."""
    assert said(tmp_path, *words).returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("status",), ("alerts", "list"), ("top", "--once")])
def test_who_only_looks_leaves_a_damaged_state_to_those_who_tell_people(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """Set aside by a look, nobody would hear that the memory of actions is lost, and the next tick
    would act as if nothing had been done."""
    state = tmp_path / "sentinel"
    assert said(tmp_path, "status").returncode == 0
    state.mkdir()
    (state / "sentinel.db").write_text("this was a state once")
    done = said(tmp_path, *words)
    assert (done.returncode, done.stdout) == (74, "")
    assert "damaged" in done.stderr
    assert "sentinel run or tick sets it aside" in done.stderr
    assert (state / "sentinel.db").read_text() == "this was a state once"


def test_scripts_get_their_document(tmp_path: Path) -> None:
    """Nothing fires where nothing ever ran; stdout is JSON alone."""
    assert json.loads(said(tmp_path, "status", "--json").stdout)["alerts"] == []


def test_an_order_has_to_be_written_somewhere(tmp_path: Path) -> None:
    """A silence into nowhere would be believed to hold."""
    done = said(tmp_path, "alerts", "silence", "check=fs", "--for", "1h", "--reason", "x")
    assert done.returncode == 66
    assert "no state yet" in done.stderr
    assert list(tmp_path.iterdir()) == []
