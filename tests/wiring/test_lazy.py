"""Ports that are made on the first question are made once, whoever asks first."""

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.slurm.client import RequestCount
from sentinel.wiring.lazy import LazyRemote, LazySlurm

THREADS = 16


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def asked_at_once(ask: Callable[[], object]) -> set[int]:
    """What so many threads got that asked at the same moment."""
    start, got = threading.Barrier(THREADS), list[object]()

    def one() -> None:
        start.wait(20)
        got.append(ask())

    threads = [threading.Thread(target=one) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(got) == THREADS
    return {id(thing) for thing in got}


def test_all_checks_of_the_first_pass_share_one_view_of_slurm() -> None:
    """Else each of them would send slurmctld the same question."""
    for _ in range(20):
        slurm = LazySlurm(Settings(), [], SystemClock())
        assert len(asked_at_once(slurm.get_snapshot)) == 1


def test_all_checks_share_one_way_to_the_nodes() -> None:
    """It knows which nodes hang, and what is under way to them."""
    for _ in range(20):
        remote = LazyRemote(Settings())
        assert len(asked_at_once(remote._connect_once)) == 1


def test_what_asked_the_controllers_is_part_of_the_view_of_slurm() -> None:
    """Else their configuration would be asked for twice, and requests counted apart."""
    slurm = LazySlurm(Settings(), [], SystemClock())
    probe = slurm._connect_controllers()
    snapshot = slurm.get_snapshot()
    assert (snapshot.client, snapshot._config) == (probe.client, probe.config)
    probe.client.counts["scontrol"] = RequestCount()
    assert list(slurm.counts()) == ["scontrol"]
