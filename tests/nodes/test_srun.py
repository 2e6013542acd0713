"""What srun complains of, and what that says of a node."""

import pytest

from sentinel.core.node_answers import NotAsked, Refused, Unreachable
from sentinel.nodes.settings import RemoteSettings
from sentinel.nodes.srun import Srun

LAUNCH = "srun: error: Task launch for StepId=7.3 failed on node n1: "


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (f"{LAUNCH}Socket timed out on send/recv operation", Unreachable),
        (f"{LAUNCH}Communication connection failure", Unreachable),
        (f"{LAUNCH}Transport endpoint is not connected", Unreachable),
        ("srun: error: timeout waiting for task launch, started 0 of 1 tasks", Unreachable),
        (f"{LAUNCH}Job credential expired", Refused),
        (f"{LAUNCH}Unable to satisfy cpu bind request", Refused),
        (f"{LAUNCH}Can't find an address, check slurm.conf", NotAsked),
        ("srun: error: Unable to create step for job 7: Requested nodes are busy", NotAsked),
        ("srun: error: Unable to create step for job 7: Memory required by task is not", NotAsked),
        ("srun: error: Unable to confirm allocation for job 7: Invalid job id spec", NotAsked),
        ("srun: error: Unable to create step for job 7: Access/permission denied", Refused),
        ("srun: error: Unable to allocate resources: Zero Bytes were transmitted", NotAsked),
        ("srun: error: Unable to allocate resources: Unable to contact slurm controller", NotAsked),
        ("srun: error: Unable to allocate resources: Socket timed out on send/recv", NotAsked),
        ("srun: error: Unable to allocate resources: User's group not permitted to", Refused),
        ("srun: error: You are not a member of the specified account x", Refused),
        ("srun: error: Unable to allocate resources: Required node not available", Unreachable),
    ],
)
def test_only_a_node_that_does_not_answer_is_unreachable(said: str, answer: type) -> None:
    """Where others answer, it is told as silent: a step that Slurm did not make blames no node."""
    told = Srun(RemoteSettings()).failure(f"{said}\nsrun: Job step aborted\n", 1)
    assert isinstance(told, answer)
