"""Nodes and drain reasons: two more drawn batches and a hunted one; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable

from tests.world.case import Case, each
from tests.world.slurm_answers import GITHUB, returns, shown, works
from tests.world.test_nodes_drawn import AWSOME, COST

SOPERATOR = GITHUB + "nebius/soperator/"
EXPORTER = GITHUB + "SckyzO/slurm_exporter/"
SLURM = "https://github.com/SchedMD/slurm/blob/master/src/"
PCLUSTER = GITHUB + "aws/aws-parallelcluster-node/"
BUSY = "[user_problem] alloc_gpus_busy"
HELD = "epilog-bridge-hold: job 46: 1 pod sandbox(es) still ready after 20s"
REPLACED = "Static node maintenance: unhealthy node is being replaced"
OLD_OS = "OS=Linux 5.11.22-100.fc32.x86_64 #1 SMP Wed May 19 18:58:25 UTC 2021"


def line(state: str, reason: str, stamp: str = "root@1786000000", more: str = "") -> str:
    """A node as `scontrol -o show node` prints it."""
    return (
        f"NodeName=w4 Arch=x86_64 CoresPerSocket=8 CPUAlloc=0 CPUTot=8 CPULoad=0.21 Gres=gpu:8 NodeAddr=w4 NodeHostName=w4"
        f" Version=24.05.3 {more or OLD_OS} RealMemory=1 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Partitions=debug"
        f" BootTime=1731962805 SlurmdStartTime=1734608509 CfgTRES=cpu=8 Reason={reason} [{stamp}]\n"
    )


# Seed 20261205, from 62 sources.
DRAWN_3 = (
    Case("flags-behind-a-base", EXPORTER + "pull/178", lambda: (works("MIXED+DRAIN"), works("IDLE+DYNAMIC_NORM+MAINTENANCE+RESERVED+PLANNED")), (False, False), COST),
    Case("epilog-not-executable", "https://github.com/dell/omnia, docs, troubleshooting", lambda: (returns("Kill task failed", "root"), works("DOWN+DRAIN")), (True, False), COST),
    Case("drained-with-a-job", SOPERATOR + "pull/2635", lambda: (works("MIXED+DRAIN"), works("IDLE+DRAIN+COMPLETING")), (False, False), COST),
    Case("gpus-busy", SOPERATOR + "internal/cli", lambda: (shown(line("IDLE+DRAIN", BUSY)), returns(BUSY, "root")), ((False, BUSY, "root"), False), COST),
    Case("marks-of-sinfo", EXPORTER + "issues/243", lambda: (works("IDLE*"), works("MIXED-"), works("IDLE~"), works("ALLOCATED-")), (False, True, True, True), COST),
    Case("prolog-epilog-failure", SLURM + "slurmctld/agent.c", lambda: (returns("Prolog/Epilog failure", "slurm"), returns("Prolog/Epilog failure", "slurm", "Prolog/Epilog failure")), (False, True), COST),
    Case("cordoned", "a test of a table of nodes", lambda: (shown(line("IDLE+DRAIN", "k8s cordon")), returns("k8s cordon", "root")), ((False, "k8s cordon", "root"), False), COST),
    Case("contact-is-lost", "HP XC System Software Administration Guide 3.1, table 14-4", lambda: (works("ALLOCATED*"), works("IDLE*"), works("DOWN*")), (False, False, False), COST),
    Case("drained-by-the-operator", GITHUB + "SlinkyProject/slurm-operator/pull/133", lambda: returns("slurm-operator: Kill task failed on a cordoned pod", "slurm"), False, COST),
    Case("empty-libraries", SOPERATOR + "pull/2684", lambda: returns("[node_problem] libnvidia: libnvidia-ml.so has 0 bytes", "root"), False, COST),
    Case("a-static-node-is-replaced", "a report of 2026-03-13", lambda: (shown(line("DOWN+CLOUD+DRAIN", REPLACED)), returns(REPLACED, "root")), ((False, REPLACED, "root"), False), COST),
    Case("stuck-and-down", GITHUB + "GoogleCloudPlatform/cluster-toolkit/pull/2856", lambda: works("DOWN+CLOUD+NOT_RESPONDING"), False, COST),
    Case("powered-down-and-asked-again", PCLUSTER + "pull/402", lambda: (works("IDLE+CLOUD+POWER_DOWN+POWERED_DOWN"), works("DOWN+CLOUD+POWER_DOWN+POWERED_DOWN+NOT_RESPONDING")), (True, False), COST),
    Case("no-address", "https://wiki.fysik.dtu.dk/Niflheim_system/Slurm_operations/", lambda: (returns("NO NETWORK ADDRESS FOUND", "slurm"), works("DOWN")), (False, False), COST),
    Case("the-health-check-was-ended", "a report of 2026-08-25", lambda: (works("ALLOCATED+DRAIN"), returns("NHC: Terminated by signal SIGTERM.", "root")), (False, False), COST),
)  # fmt: skip
DRAWN_4 = (
    Case("a-hold-with-a-comment", "a test of a bridge", lambda: shown(line("IDLE+DRAIN", HELD)[:-1] + " Comment=x\n"), (False, HELD, "root"), COST),
    Case("hibernated", "aws-plugin-for-slurm with hibernation", lambda: (returns("instance_hibernated", "root"), works("IDLE+CLOUD+DRAIN+POWERING_UP")), (False, False), COST),
    Case("mixed", GITHUB + "grycap/clues/issues/14", lambda: works("MIXED"), True, COST),
    Case("planned-beside-jobs", "a page of UBC's cluster", lambda: works("MIXED+PLANNED"), True, COST),
    Case("drained-by-flag", GITHUB + "ubccr/slurm-exporter/issues/11", lambda: works("IDLE+DRAIN"), False, COST),
    Case("a-kernel-with-blanks", GITHUB + "radiasoft/sirepo/issues/2136", lambda: shown(line("DOWN", "undraining", "vagrant@1627675885")), (False, "undraining", "vagrant"), COST),
    Case("a-node-that-came-back", "https://oracle-japan.github.io/ocitutorials", lambda: works("DOWN+DRAIN"), False, COST),
    Case("booting", PCLUSTER + "tests", lambda: (works("IDLE+CLOUD+NOT_RESPONDING+POWERING_UP"), works("ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP")), (True, True), COST),
    Case("states-of-24.05", "https://manpages.ubuntu.com, sinfo(1)", lambda: (works("ALLOCATED+FAIL"), works("FUTURE"), works("ALLOCATED+COMPLETING"), works("IDLE+RESERVED")), (False, False, True, True), COST),
    Case("silent-not-yet-down", SOPERATOR + "pull/2807", lambda: (works("IDLE+NOT_RESPONDING"), works("DOWN+DRAIN+NOT_RESPONDING")), (False, False), COST),
    Case("a-bad-module-and-silent", "a dashboard's test", lambda: (shown(line("MIXED+DRAIN", "bad DIMM : Not responding")), returns("bad DIMM : Not responding", "root")), ((False, "bad DIMM : Not responding", "root"), False), COST),
    Case("a-shared-outage", "a diary of 2026-08-09", lambda: works("DOWN+NOT_RESPONDING"), False, COST),
    Case("prolog-is-not-there", GITHUB + "mknoxnv/ubuntu-slurm/issues/4", lambda: (returns("Prolog error", "slurm"), returns("Prolog error", "slurm", "Prolog error")), (False, True), COST),
    Case("low-memory-after-a-restart", GITHUB + "geoschem/integrated_methane_inversion/issues/30", lambda: (returns("Low RealMemory", "slurm"), works("IDLE+DRAIN")), (False, False), COST),
    Case("a-gpu-is-lost", "a log of experiments of 2026-09-18", lambda: (works("MIXED+DRAIN+NOT_RESPONDING"), returns("GPU_Error_Detected", "root")), (False, False), COST),
)  # fmt: skip
SINFO = "https://slurm.schedmd.com/sinfo.html"
HAND = "typed by hand"
# Looked for by somebody who had read the tables.
HUNTED_3 = (
    Case("asleep-and-drained", SINFO, lambda: works("IDLE+CLOUD+DRAIN+POWERED_DOWN"), False, COST),
    Case("silent-and-to-be-rebooted", SINFO, lambda: works("MIXED+CLOUD+REBOOT_REQUESTED+NOT_RESPONDING"), False, COST),
    Case("goes-to-sleep", SINFO, lambda: (works("IDLE+CLOUD+POWERING_DOWN"), works("DOWN+CLOUD+POWERED_DOWN")), (True, False), COST),
    Case("a-whole-word-of-tomorrow", SINFO, lambda: (works("IDLE+QUARANTINED"), works("DOWN+QUARANTINED"), works("IDLE+DRAIN+QUARANTINED")), (None, False, False), COST),
    Case("steps-by-name", SLURM + "slurmd/slurmstepd", lambda: [returns(f"Kill task failed (JobId=12 StepId={step})", "root") for step in ("batch", "extern", "interactive", "0")], [True] * 4, COST),
    Case("a-job-of-an-array", SLURM + "slurmctld/node_mgr.c", lambda: (returns("Prolog error (JobId=12_3(15))", "slurm", "Prolog error"), returns("Prolog error (JobId=12_3(15), bad DIMM)", "slurm", "Prolog error")), (True, False), COST),
    Case("silent-twice", SLURM + "slurmctld/node_mgr.c, set_node_reason()", lambda: (returns("Kill task failed : Not responding : Not responding", "slurm"), returns("Prolog error : reboot issued : Not responding", "slurm", "Prolog error")), (True, True), COST),
    Case("a-colon-of-another-width", HAND, lambda: returns("Kill task failed\uff1aRMA 71", "root"), False, COST),
    Case("an-old-stamp-in-the-text", HAND, lambda: returns("Kill task failed [bob@1700000000]", "root"), False, COST),
    Case("blanks-behind-it", SLURM + "slurmctld/node_mgr.c", lambda: returns("Kill task failed  ", "root"), True, COST),
    Case("a-reason-that-quotes-it", HAND, lambda: [returns(text, "root") for text in ("DRAIN: Kill task failed", "was: Kill task failed", "Kill task failedx")], [False] * 3, COST),
    Case("a-reason-with-a-field-in-it", HAND, lambda: shown(line("IDLE+DRAIN", "State=IDLE after RMA Comment=none [x@1]")), (False, "State=IDLE after RMA Comment=none [x@1]", "root"), COST),
    Case("numbers-behind-a-prefix", SLURM + "slurmctld/node_mgr.c", lambda: returns("Low RealMemory (reported:63622 < 100.00% of configured:64000)", "slurm", "Low RealMemory"), True, COST),
    Case("a-signer-without-a-name", SLURM + "slurmctld/node_mgr.c", lambda: (returns("Prolog error", "64030", "Prolog error"), returns("Kill task failed", "nobody")), (False, False), COST),
    Case("a-health-check-by-its-prefix", AWSOME + "195", lambda: (returns("NHC: check_fs_mount:  /scratch not mounted", "root", "NHC:"), returns("NHC: check_fs_mount:  /scratch not mounted", "root")), (True, False), COST),
)  # fmt: skip


@each(*DRAWN_3, *DRAWN_4, *HUNTED_3)
def test_a_form_of_nodes_of_the_later_batches(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
