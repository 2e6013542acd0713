"""Many nodes: the real fan-out, real processes, and a limit that holds."""

import os
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from sentinel.core.node_answers import Answered, NotAsked, Partial, TimedOut, Unreachable
from sentinel.nodes.fanout import GRACE, ask_all
from sentinel.nodes.probe import ALL_PARTS_REQUEST, NodeProbe
from tests.lab.fuse import Fuse
from tests.lab.waiting import wait_until
from tests.nodes.cluster import Cluster

ALL_DEAD = "*"
PROBE = Path(__file__).parent / "fixtures/probe.txt"


@pytest.mark.long
def test_a_thousand_nodes_with_five_percent_dead_finish_within_the_limit(tmp_path: Path) -> None:
    """Every node has one answer of its own kind and was asked once; nothing is left running."""
    cluster = Cluster(tmp_path, 1000)
    began = time.monotonic()
    told = cluster.reach(timeout=8).run(cluster.names, ["printf", "%s", "fine"], limit=60)
    assert time.monotonic() - began < 60 + GRACE
    assert list(told) == cluster.names
    kinds = Counter(type(answer) for answer in told.values())
    assert kinds == {Answered: 960, TimedOut: 20, Unreachable: 10, Partial: 10}
    assert told["n0001"] == Answered(code=0, out=b"fine")
    assert isinstance(told["n0050"], TimedOut)
    assert isinstance(told["n0013"], Unreachable)
    assert sorted(cluster.asked()) == cluster.names
    assert _left(tmp_path) == []


def test_when_all_are_dead_the_limit_ends_it(tmp_path: Path) -> None:
    """Those whose turn never came were not asked, which is another answer than timed out."""
    cluster = Cluster(tmp_path, 40, dead=ALL_DEAD)
    began = time.monotonic()
    told = cluster.reach(fanout=8, timeout=2).run(cluster.names, ["true"], limit=5)
    assert 5 <= time.monotonic() - began < 5 + GRACE + 1
    kinds = Counter(type(answer) for answer in told.values())
    assert set(kinds) == {TimedOut, NotAsked}
    assert kinds[TimedOut] == len(cluster.asked())
    assert 16 <= kinds[TimedOut] <= 24
    assert _left(tmp_path) == []


@pytest.mark.long
def test_two_hundred_probes_are_read(tmp_path: Path) -> None:
    """What 192 healthy nodes tell, each behind a mark of its own, is all there."""
    canned = tmp_path / "canned"
    canned.write_bytes(PROBE.read_bytes().replace(b"0123456789abcdef" * 2, b"MARK"))
    cluster = Cluster(tmp_path, 200, canned=canned)
    told = cluster.reach(timeout=30).probe(cluster.names, ALL_PARTS_REQUEST, limit=90)
    probes = [answer for answer in told.values() if isinstance(answer, NodeProbe)]
    assert len(probes) == 192
    assert {tuple(probe.unread_parts) for probe in probes} == {("disks./dev/shm",)}


def test_an_ssh_that_hangs_in_the_kernel_is_not_piled_upon(tmp_path: Path, fuse: Fuse) -> None:
    """Its node is not asked while that process is there; afterwards it is again."""
    cluster = Cluster(tmp_path, 1, dead="none")
    (tmp_path / "ssh").write_text(f"#!/bin/sh\necho x >>$COUNT\nexec cat {fuse.point}/data\n")
    fuse.hold("open")
    reach = cluster.reach(timeout=1)
    first = reach.run(cluster.names, ["true"], limit=5)["n0000"]
    second = reach.run(cluster.names, ["true"], limit=5)["n0000"]
    assert isinstance(first, TimedOut)
    assert isinstance(second, NotAsked)
    assert f"process {reach.hanging.children['n0000'].pid} still waits" in second.why
    assert cluster.asked() == ["x"]
    fuse.release()
    Cluster(tmp_path, 1, dead="none")
    wait_until(
        lambda: reach.run(cluster.names, ["true"], limit=5)["n0000"] == Answered(code=0),
        "the node to be asked again",
    )
    assert reach.hanging.children == {}


def test_no_more_than_the_fanout_run_at_once() -> None:
    """Eight at a time, and always eight while enough wait."""
    running, most, lock, eight = 0, 0, threading.Lock(), threading.Event()

    def ask(node: str, seconds: float) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if most == 8:
                eight.set()
        eight.wait(10)
        time.sleep(0.02)
        with lock:
            running -= 1
        return node

    names = [str(number) for number in range(50)]
    told = ask_all(names, ask, fanout=8, limit=20, patience=5, late=str)
    assert told == {name: name for name in names}
    assert most == 8


def test_a_node_named_twice_is_asked_once(tmp_path: Path) -> None:
    """One answer, one login."""
    cluster = Cluster(tmp_path, 2)
    told = cluster.reach().run(["n0001", "n0001"], ["true"], limit=60)
    assert told == {"n0001": Answered(code=0)}
    assert cluster.asked() == ["n0001"]


def test_no_nodes_are_no_question() -> None:
    """Nothing is started."""
    assert ask_all([], lambda n, s: n, fanout=8, limit=5, patience=5, late=str) == {}


def test_a_question_that_ignores_its_time_does_not_hold_the_others() -> None:
    """The call returns after the limit and its grace; what came until then is kept."""
    over = threading.Event()

    def ask(node: str, seconds: float) -> str:
        if node == "stuck":
            over.wait(60)
        return "fine"

    began = time.monotonic()
    told = ask_all(["stuck", "a", "b"], ask, fanout=2, limit=1, patience=1, late=lambda why: why)
    over.set()
    assert time.monotonic() - began < 1 + GRACE + 1
    assert (told["a"], told["b"]) == ("fine", "fine")
    assert "passed before its answer" in told["stuck"]


def test_a_fault_of_sentinel_itself_is_not_an_answer() -> None:
    """It is raised, whichever thread it happened in."""

    def ask(node: str, seconds: float) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask_all(["a", "b"], ask, fanout=2, limit=5, patience=5, late=str)


def _left(folder: Path) -> list[str]:
    """Processes of the stand-in that still run."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,args="], capture_output=True, text=True)
    found = []
    for line in listed.stdout.splitlines():
        pid = line.split()[0]
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if f"COUNT={folder}".encode() in environ and int(pid) != os.getpid():
            found.append(line)
    return found
