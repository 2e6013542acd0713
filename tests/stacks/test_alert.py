"""From a hang to a message that names the odd rank, through the service's own way."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Lab
from tests.lab.service import Service
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes
from tests.stacks.training import LINES, Training

CONFIG = """\
cluster: lab
state: {folder}/state
checks:
  progress:
    kind: log
    every: {every}s
    job: llm
    path: {log}
    progress: 'iteration (\\d+)'
    startup: 0s
    stale_after: {stale}s
    on_stale: [stacks]
channels: {{book: {{kind: file, path: {folder}/book}}}}
"""
STALE = 3
EVERY = 2


@pytest.fixture
def book(fresh: Lab, tmp_path: Path) -> Path:
    """What people are told, in a file."""
    log = fresh.work / "log"
    log.write_text("iteration 7\n")
    config = tmp_path / "sentinel.yaml"
    config.write_text(CONFIG.format(folder=tmp_path, log=log, stale=STALE, every=EVERY))
    return tmp_path / "book"


def written(book: Path) -> list[dict[str, Any]]:
    """All that was told until now."""
    text = book.read_text() if book.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]


def told(book: Path, lab: Lab) -> list[dict[str, Any]]:
    """One pass, and all that was told until then."""
    config = str(book.parent / "sentinel.yaml")
    done = lab.run([sys.executable, "-m", "sentinel", "tick", "--all", "-c", config], limit=60)
    assert done.returncode == 0, done.stderr
    return written(book)


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


@pytest.mark.long
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
    assert messages[0]["alert"] == messages[1]["alert"]
    assert messages[1]["commands"] == [f"scontrol show job {training.job} | cat -v"]
    text = messages[1]["summary"]
    assert said.replace("stacks 1:", f"stacks {training.job}:") in text
    if how != "fuse":
        assert ODD in text
    place = Path(text.rpartition("evidence in ")[2])
    assert (place / "stacks.txt").read_text().splitlines()[0] in text


def test_a_service_tells_a_hang_soon_after_its_limit_and_then_who_is_odd(
    fresh: Lab, book: Path, service: Callable[..., Service]
) -> None:
    """From the last step to the alert it takes `stale_after`, an interval, and a look at the
    nodes: seconds here, an order of magnitude below which no machine is too slow."""
    training = Training(fresh, odd=5)
    running = service("run", "-c", book.parent / "sentinel.yaml", env=fresh.env)
    with (fresh.work / "log").open("a") as log:
        log.write("iteration 8\n")
    stood_still = time.monotonic()
    running.wait_for(lambda: written(book), "the alert", 60.0)
    assert STALE <= time.monotonic() - stood_still < 10 * (STALE + EVERY)
    running.wait_for(lambda: len(written(book)) > 1, "what was done", 60.0)
    alert, action = written(book)[:2]
    assert (alert["reason"], alert["status"]) == ("firing", "critical")
    assert (action["reason"], action["alert"]) == ("action", alert["alert"])
    assert f"stacks {training.job}: done: {ODD}; ranks 0-4,6-7 " in action["summary"]


@pytest.mark.long
def test_a_successor_is_kept_from_the_node_whose_rank_has_died(fresh: Lab, book: Path) -> None:
    """The witnesses name it; the queue has it, and people hear of it beside the alert."""
    config, ssh = book.parent / "sentinel.yaml", Nodes(fresh, book.parent).config
    way = f'remote: {{ssh_options: "-F {ssh} -o UserKnownHostsFile={book.parent}/known_hosts"}}\n'
    config.write_text(config.read_text().replace("[stacks]", "[exclude]") + way)
    training = Training(fresh, each=1, odd=3)
    successor = fresh.sbatch("sleep 1", name="llm", hold=True)
    training.on(2, f"kill -9 {training.pid(2)}")
    alert, action = until_action(book, fresh)[:2]
    assert "no process of the job is left on node-2" in alert["summary"]
    assert action["alert"] == alert["alert"]
    assert action["summary"].startswith(f"exclude {successor}: done: ")
    assert fresh.ask(["squeue", "-h", "-j", successor, "-o", "%x"]).strip() == "node-2"
