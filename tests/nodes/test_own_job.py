"""The job in which a command runs, as Slurm describes it to its processes."""

import pytest

from sentinel.core.errors import CannotTell, Invalid
from sentinel.nodes.own_job import OwnJob, find_own_job

ENVIRON = {
    "SLURM_JOB_ID": "77",
    "SLURM_JOB_NODELIST": "gpu[01-02],fat1",
    "SLURM_GPUS_ON_NODE": "8",
    "SLURM_JOB_CPUS_PER_NODE": "128(x2),64",
}


def test_a_job_by_its_environment() -> None:
    """The fewest processors of a node count: there others may run."""
    job = find_own_job(ENVIRON)
    assert job == OwnJob(job_id="77", nodes=("gpu01", "gpu02", "fat1"), gpus=8, cpus=64)
    assert job.list_tests() == ["disk", "memory", "nccl", "ib"]


def test_a_job_of_one_node_without_gpus_has_fewer_tests() -> None:
    job = find_own_job({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1"})
    assert job == OwnJob(job_id="7", nodes=("n1",), gpus=0, cpus=0)
    assert job.list_tests() == ["disk", "memory"]


@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "SLURM_JOB_NODELIST"])
def test_outside_of_a_job(name: str) -> None:
    """Also where only one of both is set."""
    with pytest.raises(CannotTell, match="no job of Slurm"):
        find_own_job(ENVIRON | {name: ""})


def test_an_environment_that_somebody_made_up() -> None:
    """A user's own variables are the user's own trouble, and never an option of srun."""
    with pytest.raises(CannotTell):
        find_own_job(ENVIRON | {"SLURM_JOB_ID": "7 --uid=0"})
    with pytest.raises(Invalid):
        find_own_job(ENVIRON | {"SLURM_JOB_NODELIST": "n[1-"})
    odd = find_own_job(ENVIRON | {"SLURM_GPUS_ON_NODE": "-1", "SLURM_JOB_CPUS_PER_NODE": "all"})
    assert (odd.gpus, odd.cpus) == (0, 0)
