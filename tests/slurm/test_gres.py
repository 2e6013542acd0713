"""How many GPUs a job has, in every form in which squeue tells it."""

import pytest

from sentinel.slurm.gres import count_job_gpus

NONE = "N/A"


@pytest.mark.parametrize(
    ("alloc", "per_job", "per_node", "per_task", "per_socket", "gpus"),
    [
        ("cpu=64,mem=1T,node=4,billing=64,gres/gpu=32", NONE, "gres:gpu:8", NONE, NONE, 32),
        ("gres/gpu=64,gres/gpu:a100=64", NONE, NONE, NONE, NONE, 64),
        ("gres/gpu:a100=8,gres/gpu:h100=16", NONE, NONE, NONE, NONE, 24),
        ("cpu=2,node=2,billing=2", NONE, "gres:gpu:2", NONE, NONE, 8),
        ("cpu=2", NONE, "gres/gpu:h100:8", NONE, NONE, 32),
        ("cpu=2", NONE, "gres/gpu:h100=8", NONE, NONE, 32),
        ("cpu=2", NONE, "gres:gpu", NONE, NONE, 4),
        ("cpu=2", NONE, "gpu:a100:2,gpu:v100:1", NONE, NONE, 12),
        ("cpu=2", "gres:gpu:5", NONE, NONE, NONE, 5),
        ("cpu=2", NONE, NONE, "gres/gpu:2", NONE, 6),
        ("cpu=2", NONE, "gres:shard:8,gres:gpumem:9", NONE, NONE, 0),
        ("cpu=2,gres/gpumem=80G,gres/gpuutil=1", NONE, NONE, NONE, NONE, 0),
        ("", NONE, NONE, NONE, NONE, 0),
        # How many sockets it got is told nowhere: https://slurm.schedmd.com/sbatch.html, --gpus-per-socket.
        ("cpu=2", NONE, NONE, NONE, "gres/gpu:2", None),
        ("cpu=2,gres/gpu=8", NONE, NONE, NONE, "gres:gpu:2", 8),
    ],
)
def test_the_gpus_of_a_job(
    alloc: str, per_job: str, per_node: str, per_task: str, per_socket: str, gpus: int | None
) -> None:
    """On 4 nodes, with 3 tasks. As 22.05 prints it (`gres:gpu:2`), and later ones (`gres/gpu:2`)."""
    assert count_job_gpus(alloc, per_job, per_node, per_task, per_socket, 4, 3) == gpus
