"""Nodes and drain reasons, drawn by a seed from `sources/nodes.txt`; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable

from tests.world.case import Case, each
from tests.world.slurm_answers import GITHUB, returns, shown, works

COST = (
    "A node that cannot work counts as one that can, or one that somebody took out is given back."
)
AWSOME = GITHUB + "awslabs/awsome-distributed-ai/issues/"
GRES = (
    "NodeName=gpu-68 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=0.99 Gres=gpu:nvidia-rtx-3090:1"
    " NodeAddr=gpu-68 NodeHostName=gpu-68 Version=24.05.0-0rc1 State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1"
    " Partitions=compute  BootTime=1731962805 SlurmdStartTime=1734608509 CfgTRES=cpu=8,gres/gpu=1"
    " Reason=gres/gpu count reported lower than configured (0 < 1) [slurm@1734606214]\n"
)
NVLINK = "H100 GPU issues detected: DCGM test failed, ECC errors found (2 double-bit errors), see /tmp/dcgm.out and /tmp/ecc_errors.out"

# Seed 2242, from 60 sources.
DRAWN_1 = (
    Case("inval", GITHUB + "crusoecloud/slurm/pull/13", lambda: works("IDLE+DRAIN+INVALID_REG"), False, COST),
    Case("inval-in-a-cloud", GITHUB + "BiBiServ/bibigrid/issues/726", lambda: works("IDLE+CLOUD+INVALID_REG"), False, COST),
    Case("failed-under-a-job", GITHUB + "nextflow-io/nextflow/issues/3422", lambda: works("DOWN+COMPLETING+NOT_RESPONDING"), False, COST),
    Case("a-health-check-in-the-prolog", GITHUB + "GoogleCloudPlatform/slurm-gcp/pull/223", lambda: returns(NVLINK, "root"), False, COST),
    Case("prolog-failure", GITHUB + "AMDResearch/hpcfund/issues/69", lambda: (returns("Prolog error", "root"), returns("Prolog error", "root", "Prolog error")), (False, True), COST),
    Case("resume-failed", GITHUB + "aws/aws-parallelcluster/pull/2309", lambda: works("DOWN*+CLOUD+POWER"), False, COST),
    Case("to-be-replaced", AWSOME + "206", lambda: (works("IDLE+FAIL"), returns("Action:Replace", "root")), (False, False), COST),
    Case("scheduler-health-check", GITHUB + "aws/aws-parallelcluster/issues/6842", lambda: returns("Scheduler health check failed", "root"), False, COST),
    Case("suspended-to-save-energy", GITHUB + "lcrownover/prometheus-slurm-exporter/pull/36", lambda: works("IDLE+POWERED_DOWN"), True, COST),
    Case("planned", GITHUB + "nebius/soperator/pull/1927", lambda: works("MIXED+PLANNED"), True, COST),
    Case("drains-while-it-works", GITHUB + "NVIDIA/nvidia-resiliency-ext/pull/387", lambda: works("MIXED+DRAIN"), False, COST),
    Case("reserved-for-maintenance", GITHUB + "AaltoSciComp/scicomp-docs/pull/445", lambda: works("IDLE+MAINTENANCE+RESERVED"), False, COST),
    Case("down-when-it-may", GITHUB + "nebius/soperator/pull/2577", lambda: works("IDLE+CLOUD+DRAIN+POWER_DOWN"), False, COST),
    Case("drained", GITHUB + "lcrownover/prometheus-slurm-exporter/issues/29", lambda: works("IDLE+DRAIN"), False, COST),
    Case("flaky", GITHUB + "ai4d-iasc/trixie/issues/35", lambda: returns("Kill task failed, flaky: leave it out", "root"), False, COST),
)  # fmt: skip
DRAWN_2 = (
    Case("allocated-and-drained", GITHUB + "vpenso/prometheus-slurm-exporter/issues/3", lambda: works("ALLOCATED+DRAIN"), False, COST),
    Case("kill-task-failed", GITHUB + "nebius/soperator/issues/398", lambda: returns("Kill task failed", "root"), True, COST),
    Case("rebooted-by-itself", GITHUB + "SlinkyProject/slurm-exporter/pull/1", lambda: returns("Node unexpectedly rebooted", "slurm"), False, COST),
    Case("kill-task-failed-then-silent", GITHUB + "lyulyul/shine-cluster/issues/166", lambda: returns("Kill task failed : Not responding", "slurm"), True, COST),
    Case("drains-then-reboots", GITHUB + "ArjunaCluster/ArjunaUsers/issues/69", lambda: (works("MIXED+DRAIN+REBOOT_REQUESTED"), works("IDLE+FAIL+NOT_RESPONDING")), (False, False), COST),
    Case("a-check-of-soperator", GITHUB + "nebius/soperator/issues/1316", lambda: returns("[node_problem] gpu_health: Kill task failed", "root"), False, COST),
    Case("reboot-while-it-works", GITHUB + "mej/nhc/pull/174", lambda: (works("ALLOCATED+REBOOT_REQUESTED"), works("DOWN+REBOOT_ISSUED"), works("IDLE+PLANNED")), (True, False, True), COST),
    Case("a-users-memory", GITHUB + "nebius/soperator/pull/2773", lambda: returns("[user_problem] idle_mem_used", "root"), False, COST),
    Case("words-of-old", GITHUB + "rackslab/Slurm-web/issues/144", lambda: (works("MIXED#+CLOUD"), works("RESERVED"), works("MAINT*"), works("MIXED+COMPLETING")), (True, True, False, True), COST),
    Case("shared-node-drained", GITHUB + "lyulyul/shine-cluster/issues/170", lambda: works("MIXED+COMPLETING+DRAIN"), False, COST),
    Case("gres-reported-lower", AWSOME + "195", lambda: shown(GRES), (False, "gres/gpu count reported lower than configured (0 < 1)", "slurm"), COST),
    Case("gres-wrongly-low", GITHUB + "nebius/soperator/pull/1232", lambda: returns("gres/gpu count reported lower than configured (7 < 8)", "slurm"), False, COST),
    Case("busy-and-inval", GITHUB + "SckyzO/slurm_exporter/pull/3", lambda: works("MIXED+INVALID_REG"), False, COST),
    Case("nhc-timed-out", GITHUB + "mej/nhc/issues/161", lambda: returns("NHC: Script timed out.", "root"), False, COST),
    Case("killed-with-a-note", GITHUB + "ai4d-iasc/trixie/issues/45", lambda: returns("Kill task failed - see job 63532", "root"), False, COST),
)  # fmt: skip


@each(*DRAWN_1, *DRAWN_2)
def test_a_form_of_nodes_that_was_drawn(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
