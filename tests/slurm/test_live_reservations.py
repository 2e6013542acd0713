"""Reservations of a real Slurm."""

import time
from collections.abc import Iterator

import pytest

from sentinel.alerting.slurm_maintenance import maintenance_changes
from sentinel.clock import SystemClock
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.lab.cluster import Lab

FLAGS = "MAINT,IGNORE_JOBS,OVERLAP"


def told(lab: Lab) -> SlurmSnapshot:
    client = SlurmClient(environ={**lab.env, "SLURM_TIME_FORMAT": "relative"})
    return SlurmSnapshot(client, SystemClock(), users=None, max_age=30.0)


def reserve(lab: Lab, name: str, **how: str) -> None:
    given = {"StartTime": "now", "Duration": "60", "Users": "root", "Flags": FLAGS, **how}
    words = [f"{key}={value}" for key, value in given.items()]
    lab.ask(["scontrol", "create", "reservation", f"ReservationName={name}", *words])


@pytest.fixture
def names(lab: Lab) -> Iterator[list[str]]:
    """Names of reservations that are deleted afterwards."""
    made: list[str] = []
    yield made
    for name in made:
        lab.run(["scontrol", "delete", f"ReservationName={name}"])


def test_maintenance_in_a_real_slurm_is_seen(lab: Lab, names: list[str]) -> None:
    """None, one of a node, one of all to come, and one that is no maintenance."""
    assert told(lab).reservations() == ()
    names += ["one", "all", "course"]
    reserve(lab, "one", Nodes="node-0")
    reserve(lab, "all", Nodes="ALL", StartTime="now+2hours")
    reserve(lab, "course", Nodes="node-1", Flags="OVERLAP,IGNORE_JOBS")
    slurm, now = told(lab), SystemClock().now()
    found = {r.name: r for r in slurm.reservations()}
    assert set(found) == {"one", "all", "course"}
    assert found["one"].nodes == {"node-0"}
    assert 3500 < found["one"].ends - time.time() < 3700
    silences = maintenance_changes(found.values(), (), [n.name for n in slurm.nodes()], now)
    by_reason = {s.reason.split()[-1]: s.nodes for s in silences}
    assert by_reason == {"one": frozenset(["node-0"]), "all": None}
