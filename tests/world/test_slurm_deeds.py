"""What cancels a link of a chain, gives a node back, submits again: every reason and state, with the answer written down before.

The names are those of job_state_reason_string() of Slurm 20.11 to 26.05; which of them no waiting ends is read off the
names by a rule of their own here, not out of the table of the program.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sentinel.chain.model import ChainLink
from sentinel.slurm.job_states import state_meaning
from tests.world.slurm_answers import returns

NAMES = (Path(__file__).parents[1] / "slurm" / "slurm_reasons.txt").read_text().split()

LIMIT_OF_ONE_JOB = re.compile(r"(Assoc|QOS)Max\w+Per(Job|Node)(Limit)?|QOSMin\w+")
"""sacctmgr(1), MaxTRESPerJob, MaxTRESPerNode, MaxWall, MinTRES: what one job asks for is too much, or too little."""

NEVER = frozenset(
    [
        "BadConstraints",
        "DeadLine",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "AccountNotAllowed",
        "QOSNotAllowed",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "MaxMemPerLimit",
        "ReservationDeleted",
        "ReservationInvalid",
    ]
)
ONE_PARTITION = frozenset(
    [
        "InvalidAccount",
        "InvalidQOS",
        "AccountNotAllowed",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "MaxMemPerLimit",
    ]
)
"""Of several partitions these are about the one that was tried last, as is a QOS, which may be that partition's."""


def never(name: str, partition: str) -> bool:
    one = ChainLink(job="7", name="x-a", state="PENDING", reason=name, partition=partition)
    return one.can_never_start


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_a_link_is_cancelled_where_no_waiting_lets_it_start(name: str) -> None:
    right = name in NEVER or LIMIT_OF_ONE_JOB.fullmatch(name) is not None
    assert never(name, "a") is right
    one = name in ONE_PARTITION or name.startswith("QOS")
    assert never(name, "a,b") is (right and not one)


GIVEN_BACK = (
    "Kill task failed",
    "Kill task failed (JobId=4711 StepId=batch)",
    "Kill task failed (JobId=4711 StepId=extern)",
    "Kill task failed (JobId=4711 StepId=interactive)",
    "Kill task failed (JobId=4711 StepId=0)",
    "Kill task failed (JobId=4711 StepId=3+1)",
    "Kill task failed (JobId=4711)",
    "Kill task failed : Not responding",
    "Kill task failed : reboot issued",
    "Kill task failed : reboot timed out",
    "Kill task failed : ResumeTimeout reached",
    "Kill task failed : Not responding : reboot issued",
)
KEPT = (
    "Kill task failed!", "Kill task failed?", "Kill task failed again", "Kill task failed, RMA", "Kill task failed - RMA",
    "Kill task failed; see 55", "Kill task failed (see 55)", "Kill task failed (JobId=4711 RMA)", "Kill task failed (JobId=x)",
    "Kill task failed (JobId=4711) RMA", "Kill task failed : RMA", "Kill task failed : Not responding : RMA",
    "Kill task failed : RMA : Not responding", "Kill task failed [root@2026-01-01]", "Kill task failed\tRMA",
    "Kill task failed /scratch dead", "Kill task failed #55", "Kill task failed =RMA", "Kill task failedX", "Kill task failed2",
    "kill task failed", "KILL TASK FAILED", "Kill Task Failed", "Task kill failed", "RMA: Kill task failed",
    "NHC: Kill task failed", "sentinel: Kill task failed", "[node_problem] Kill task failed", "Kill  task failed",
    "", "bad", "RMA", "Action:Replace", "Action:Reboot", "NHC: check_fs_mount: /scratch not mounted", "NHC: Script timed out.",
    "[user_problem] idle_mem_used", "[node_problem] gpu_health", "[hardware_problem] allreduce_perf", "Scheduler health check failed",
    "Low RealMemory", "Low RealMemory (reported:435161 < 100.00% of configured:443596)", "Low TmpDisk", "Low CPUs",
    "Low socket*core*thread count, Low CPUs", "gres/gpu count reported lower than configured (0 < 8)", "gres/gpu GRES core specification 0-31",
    "Prolog error", "Epilog error", "Prolog/Epilog failure", "Job env setup error", "batch job complete failure", "Duplicate jobid",
    "SlurmdSpoolDir is full", "Not responding", "Node unexpectedly rebooted", "ResumeTimeout reached", "reboot complete",
    "NO NETWORK ADDRESS FOUND", "Node in maintenance", "Xid 79", "(Code:InsufficientInstanceCapacity)Failure when resuming nodes",
)  # fmt: skip


@pytest.mark.parametrize("reason", GIVEN_BACK)
def test_a_reason_with_which_a_proven_node_is_given_back(reason: str) -> None:
    assert returns(reason, "root")


@pytest.mark.parametrize("user", ["alice", "nhc", "slurmadm", "1000", "operator"])
@pytest.mark.parametrize("reason", GIVEN_BACK[:7])
def test_a_reason_that_a_person_typed_keeps_the_node(reason: str, user: str) -> None:
    assert not returns(reason, user)


@pytest.mark.parametrize("reason", KEPT)
def test_a_reason_with_which_a_node_stays_out(reason: str) -> None:
    assert not returns(reason, "root")


AGAIN = frozenset({"FAILED", "TIMEOUT", "NODE_FAIL"})
"""Ends after which the same job may do well. What ran out of memory or missed its deadline does so again."""
STATES = (
    *(
        "COMPLETED",
        "CANCELLED",
        "CANCELLED by 1000",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
    ),
    *(
        "DEADLINE",
        "OUT_OF_MEMORY",
        "LAUNCH_FAILED",
        "RECONFIG_FAIL",
        "REVOKED",
        "RUNNING",
        "PENDING",
        "SUSPENDED",
    ),
    *(
        "COMPLETING",
        "CONFIGURING",
        "RESIZING",
        "SIGNALING",
        "STAGE_OUT",
        "STOPPED",
        "REQUEUED",
        "REQUEUE_HOLD",
    ),
    *(
        "REQUEUE_FED",
        "SPECIAL_EXIT",
        "RESV_DEL_HOLD",
        "POWER_UP_NODE",
        "UPDATE_DB",
        "EXPEDITING",
        "OF_TOMORROW",
        "",
    ),
)


@pytest.mark.parametrize("state", STATES)
def test_an_end_after_which_a_job_is_submitted_again(state: str) -> None:
    assert state_meaning(state).may_resubmit is (state in AGAIN)
