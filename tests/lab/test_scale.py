"""The large controller: ten thousand nodes and a hundred thousand jobs, really answered for."""

import pytest

from tests.lab.scale import ScaleLab


@pytest.mark.lab
def test_a_hundred_thousand_jobs_wait_on_ten_thousand_idle_nodes() -> None:
    """squeue lists each array element, scontrol each node."""
    with ScaleLab() as lab:
        lab.fill()
        nodes = lab.ask(["scontrol", "-o", "show", "node"]).splitlines()
        jobs = lab.ask(["squeue", "-h", "-r", "-o", "%i %T"]).splitlines()
    assert sum(" State=IDLE " in line for line in nodes) == 10_000
    assert sum(line.endswith(" PENDING") for line in jobs) == 100_000
