"""From a hang to a message that names the odd rank, through the service's own way."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.stacks.training import LINES, Training

CONFIG = """\
cluster: lab
state: {folder}/state
checks:
  progress:
    kind: log
    every: 1s
    job: llm
    path: {log}
    progress: 'iteration (\\d+)'
    startup: 0s
    stale_after: {stale}s
    on_stale: [stacks]
channels: {{book: {{kind: file, path: {folder}/book}}}}
"""
STALE = 3


@pytest.fixture
def book(fresh: Lab, tmp_path: Path) -> Path:
    """What people are told, in a file."""
    log = fresh.work / "log"
    log.write_text("iteration 7\n")
    config = tmp_path / "sentinel.yaml"
    config.write_text(CONFIG.format(folder=tmp_path, log=log, stale=STALE))
    return tmp_path / "book"


def told(book: Path, lab: Lab) -> list[dict[str, Any]]:
    """One pass, and all that was told until then."""
    config = str(book.parent / "sentinel.yaml")
    done = lab.run([sys.executable, "-m", "sentinel", "tick", "--all", "-c", config], limit=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []


def until_action(book: Path, lab: Lab) -> list[dict[str, Any]]:
    return wait_until(
        lambda: (said := told(book, lab)) and any(m["reason"] == "action" for m in said) and said,
        "the message about the stacks",
        60.0,
    )


def dead(training: Training) -> None:
    training.on(6, f"kill -9 {training.pid(6)}")


def blocked(training: Training) -> None:
    """FUSE waits in state S until somebody tries to end it."""
    wait_until(training.lab.fuse.withheld, "the open that never ends")
    training.on(5, f"kill -9 {training.pid(5)}")


def cut(training: Training) -> None:
    training.lab.cut_node(3)


ODD = f"rank 5 (node-2) in load_batch (train.py:{LINES['load']})"


@pytest.mark.parametrize(
    ("how", "fault", "said"),
    [
        ("", None, f"stacks 1: done: {ODD}; ranks 0-4,6-7 "),
        ("", dead, f"rank 6 (node-3) has no process any more; {ODD}; "),
        ("fuse", blocked, "rank 5 (node-2) blocked opening "),
        ("", cut, "node-3 (ranks 6-7) was not reached: "),
    ],
)
def test_a_hang_is_told_with_rank_node_function_line_and_evidence(
    fresh: Lab, book: Path, how: str, fault: Callable[[Training], None] | None, said: str
) -> None:
    """The alert fires, and with it people hear where the odd rank stands, whatever else is ill."""
    if how == "fuse":
        fresh.fuse.hold("open")
    training = Training(fresh, odd=5, how=how)
    if fault:
        fault(training)
    messages = until_action(book, fresh)
    assert [m["reason"] for m in messages[:2]] == ["firing", "action"]
    text = messages[1]["summary"]
    assert said.replace("stacks 1:", f"stacks {training.job}:") in text
    if how != "fuse":
        assert ODD in text
    place = Path(text.rpartition("evidence in ")[2])
    assert (place / "stacks.txt").read_text().splitlines()[0] in text
