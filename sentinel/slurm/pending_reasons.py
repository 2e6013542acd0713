"""Why a job is pending: every reason Slurm has, and whether waiting is enough.

Names: `job_state_reason_string()` in src/common/job_state_reason.c (before 24.05
`job_reason_string()` in src/common/slurm_protocol_defs.c), all releases from 20.11.9 to
26.05.3 and the release candidate of 26.11, which has no new ones. Meanings: https://slurm.schedmd.com/job_reason_codes.html, squeue(1) "JOB REASON
CODES", sacctmgr(1) for the limits. Texts: what slurmctld and its plugins write into
`state_desc`, which squeue prints in place of the name. Which of the three classes each
belongs to is sentinel's judgement, made from where the source sets and clears it.
"""

from msgspec.structs import replace

from sentinel.core.text import shortened, visible
from sentinel.slurm.pending_reason_row import DAY_S, PendingReason, ReasonEnd

# The names of each group stand in the place of its code.
_GROUPS = (
    PendingReason(
        "None WaitingForScheduling", ReasonEnd.ITSELF, "not yet considered by the scheduler"
    ),
    PendingReason("Priority", ReasonEnd.ITSELF, "jobs of higher priority go first"),
    PendingReason("Resources", ReasonEnd.ITSELF, "waits for nodes to become free"),
    PendingReason("Dependency", ReasonEnd.ITSELF, "waits for another job", needs_nodes=False),
    PendingReason("BeginTime", ReasonEnd.ITSELF, "its begin time has not come", needs_nodes=False),
    PendingReason(
        "JobArrayTaskLimit",
        ReasonEnd.ITSELF,
        "as many tasks of its array run as may run at once",
        needs_nodes=False,
    ),
    PendingReason("Reservation", ReasonEnd.ITSELF, "waits for its reservation", needs_nodes=False),
    PendingReason(
        "Licenses", ReasonEnd.ITSELF, "waits for a licence", needs_nodes=False, shared=True
    ),
    PendingReason("Prolog", ReasonEnd.ITSELF, "its nodes are being prepared"),
    PendingReason("Cleaning", ReasonEnd.ITSELF, "its previous run is being cleaned up"),
    PendingReason(
        "BurstBufferResources BurstBufferStageIn",
        ReasonEnd.ITSELF,
        "waits for the burst buffer",
        needs_nodes=False,
    ),
    PendingReason(
        "FedJobLock",
        ReasonEnd.ITSELF,
        "waits for the other clusters of the federation",
        needs_nodes=False,
    ),
    PendingReason("SchedDefer", ReasonEnd.ITSELF, "immediate start is deferred to the scheduler"),
    PendingReason(
        "MaxPoweredUpNodes MpiPortsBusy NvidiaImexChannels PowerNotAvail PowerReserved"
        " BlockFreeAction",
        ReasonEnd.ITSELF,
        "waits for something the cluster has too few of",
    ),
    PendingReason(
        "PartitionDown PartitionInactive ReqNodeNotAvail NodeDown FrontEndDown Constraints",
        ReasonEnd.ITSELF,
        "its nodes or partition are down, reserved or in maintenance",
        patience=DAY_S,
    ),
    PendingReason(
        "QOSUsageThreshold",
        ReasonEnd.ITSELF,
        "its share of use is too low at present",
        DAY_S,
        needs_nodes=False,
    ),
    PendingReason(
        """AssociationJobLimit AssociationResourceLimit QOSJobLimit QOSResourceLimit
        AssocGrpCpuLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpEnergy AssocGrpGRES
        AssocGrpLicense AssocGrpBB AssocGrpBilling AssocGrpUnknown AssocGrpJobsLimit
        AssocGrpSubmitJobsLimit AssocMaxJobsLimit AssocMaxSubmitJobLimit
        QOSGrpCpuLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpEnergy QOSGrpGRES
        QOSGrpLicense QOSGrpBB QOSGrpBilling QOSGrpUnknown QOSGrpJobsLimit
        QOSGrpSubmitJobsLimit QOSMaxJobsPerUserLimit QOSMaxSubmitJobPerUserLimit
        MaxJobsPerAccount MaxSubmitJobsPerAccount""",
        ReasonEnd.ITSELF,
        "its account or QOS runs as much as it may at once; starts when other jobs of it end",
        needs_nodes=False,
        shared=True,
    ),
    PendingReason(
        """AssocGrpCPURunMinutesLimit AssocGrpMemRunMinutes AssocGrpNodeRunMinutes
        AssocGrpEnergyRunMinutes AssocGrpGRESRunMinutes AssocGrpLicenseRunMinutes
        AssocGrpBBRunMinutes AssocGrpBillingRunMinutes AssocGrpUnknownRunMinutes
        QOSGrpCPURunMinutesLimit QOSGrpMemoryRunMinutes QOSGrpNodeRunMinutes
        QOSGrpEnergyRunMinutes QOSGrpGRESRunMinutes QOSGrpLicenseRunMinutes
        QOSGrpBBRunMinutes QOSGrpBillingRunMinutes QOSGrpUnknownRunMinutes
        MaxBBRunMinsPerAccount MaxBillingRunMinsPerAccount MaxCpuRunMinsPerAccount
        MaxEnergyRunMinsPerAccount MaxGRESRunMinsPerAccount MaxLicenseRunMinsPerAccount
        MaxMemoryRunMinsPerAccount MaxNodeRunMinsPerAccount MaxUnknownRunMinsPerAccount
        MaxBBRunMinsPerUser MaxBillingRunMinsPerUser MaxCpuRunMinsPerUser
        MaxEnergyRunMinsPerUser MaxGRESRunMinsPerUser MaxLicenseRunMinsPerUser
        MaxMemoryRunMinsPerUser MaxNodeRunMinsPerUser MaxUnknownRunMinsPerUser""",
        ReasonEnd.ITSELF,
        "running jobs of its account or QOS have too many minutes left; these shrink",
        needs_nodes=False,
        shared=True,
    ),
    PendingReason(
        """QOSMaxCpuPerUserLimit QOSMaxNodePerUserLimit QOSMaxMemoryPerUser QOSMaxEnergyPerUser
        QOSMaxGRESPerUser QOSMaxLicensePerUser QOSMaxBBPerUser QOSMaxBillingPerUser
        QOSMaxUnknownPerUser MaxBBPerAccount MaxBillingPerAccount MaxCpuPerAccount
        MaxEnergyPerAccount MaxGRESPerAccount MaxLicensePerAccount MaxMemoryPerAccount
        MaxNodePerAccount MaxUnknownPerAccount""",
        ReasonEnd.ITSELF,
        "its user or account holds too much of a QOS's limit, or asks for more than all of it",
        needs_nodes=False,
        patience=DAY_S,
    ),
    PendingReason(
        "JobHeldUser",
        ReasonEnd.PERSON,
        "held by its user or an account coordinator; somebody must release it",
        held=True,
    ),
    PendingReason(
        "JobHeldAdmin", ReasonEnd.PERSON, "held by an administrator, who must release it", held=True
    ),
    PendingReason(
        "JobHoldMaxRequeue", ReasonEnd.PERSON, "held after too many failed launches", held=True
    ),
    PendingReason(
        "DependencyNeverSatisfied",
        ReasonEnd.PERSON,
        "the job it depends on ended the wrong way",
        never=True,
    ),
    PendingReason("BadConstraints", ReasonEnd.PERSON, "no node has what it asks for", never=True),
    PendingReason("DeadLine", ReasonEnd.PERSON, "cannot meet its deadline", never=True),
    PendingReason(
        "ReservationDeleted ReservationInvalid",
        ReasonEnd.PERSON,
        "its reservation is gone",
        never=True,
    ),
    PendingReason(
        "InvalidAccount InvalidQOS AccountNotAllowed QOSNotAllowed",
        ReasonEnd.PERSON,
        "its account or QOS may not be used here",
        never=True,
        one_partition=True,
    ),
    PendingReason(
        "PartitionNodeLimit PartitionTimeLimit MaxMemPerLimit",
        ReasonEnd.PERSON,
        "asks for more than its partition allows",
        never=True,
        one_partition=True,
    ),
    PendingReason(
        "PartitionConfig",
        ReasonEnd.PERSON,
        "asks for more nodes than its partition has",
        one_partition=True,
    ),
    PendingReason(
        """AssociationTimeLimit QOSTimeLimit AssocGrpWallLimit QOSGrpWallLimit
        AssocGrpCPUMinutesLimit AssocGrpMemMinutes AssocGrpNodeMinutes AssocGrpEnergyMinutes
        AssocGrpGRESMinutes AssocGrpLicenseMinutes AssocGrpBBMinutes AssocGrpBillingMinutes
        AssocGrpUnknownMinutes
        QOSGrpCPUMinutesLimit QOSGrpMemoryMinutes QOSGrpNodeMinutes QOSGrpEnergyMinutes
        QOSGrpGRESMinutes QOSGrpLicenseMinutes QOSGrpBBMinutes QOSGrpBillingMinutes
        QOSGrpUnknownMinutes""",
        ReasonEnd.PERSON,
        "the account or QOS has used up its granted time",
    ),
    PendingReason(
        """AssocMaxCpuPerJobLimit AssocMaxNodePerJobLimit AssocMaxWallDurationPerJobLimit
        AssocMaxMemPerJob AssocMaxEnergyPerJob AssocMaxGRESPerJob AssocMaxLicensePerJob
        AssocMaxBBPerJob AssocMaxBillingPerJob AssocMaxUnknownPerJob
        AssocMaxCpuPerNode AssocMaxMemPerNode AssocMaxEnergyPerNode AssocMaxGRESPerNode
        AssocMaxBBPerNode AssocMaxBillingPerNode AssocMaxUnknownPerNode
        AssocMaxCpuMinutesPerJobLimit AssocMaxMemMinutesPerJob AssocMaxNodeMinutesPerJob
        AssocMaxEnergyMinutesPerJob AssocMaxGRESMinutesPerJob AssocMaxLicenseMinutesPerJob
        AssocMaxBBMinutesPerJob AssocMaxBillingMinutesPerJob AssocMaxUnknownMinutesPerJob
        QOSMaxCpuPerJobLimit QOSMaxNodePerJobLimit QOSMaxWallDurationPerJobLimit
        QOSMaxMemoryPerJob QOSMaxEnergyPerJob QOSMaxGRESPerJob QOSMaxLicensePerJob
        QOSMaxBBPerJob QOSMaxBillingPerJob QOSMaxUnknownPerJob
        QOSMaxCpuPerNode QOSMaxMemoryPerNode QOSMaxEnergyPerNode QOSMaxGRESPerNode
        QOSMaxBBPerNode QOSMaxBillingPerNode QOSMaxUnknownPerNode
        QOSMaxCpuMinutesPerJobLimit QOSMaxMemoryMinutesPerJob QOSMaxNodeMinutesPerJob
        QOSMaxEnergyMinutesPerJob QOSMaxGRESMinutesPerJob QOSMaxLicenseMinutesPerJob
        QOSMaxBBMinutesPerJob QOSMaxBillingMinutesPerJob QOSMaxUnknownMinutesPerJob""",
        ReasonEnd.PERSON,
        "asks for more than its account or QOS allows one job",
        never=True,
    ),
    PendingReason(
        """QOSMinCpuNotSatisfied QOSMinMemory QOSMinNode QOSMinEnergy QOSMinGRES QOSMinLicense
        QOSMinBB QOSMinBilling QOSMinUnknown""",
        ReasonEnd.PERSON,
        "asks for less than its QOS demands",
        never=True,
    ),
    PendingReason(
        "JobLaunchFailure SystemFailure BurstBufferOperation BlockMaxError",
        ReasonEnd.PERSON,
        "Slurm could not start it",
    ),
    PendingReason(
        "NonZeroExitCode RaisedSignal TimeLimit InactiveLimit OutOfMemory",
        ReasonEnd.UNKNOWN,
        "how its last run ended; what it waits for is not said",
    ),
    PendingReason("AccountingPolicy", ReasonEnd.UNKNOWN, "a limit that Slurm does not name"),
    PendingReason("InvalidReason", ReasonEnd.UNKNOWN, "a number without a name inside Slurm"),
)

REASONS: dict[str, PendingReason] = {
    name: replace(group, code=name) for group in _GROUPS for name in group.code.split()
}

# Reasons by the beginning of their text; the first that matches decides.
TEXTS: tuple[PendingReason, ...] = (
    PendingReason(
        "ReqNodeNotAvail, Reserved for maintenance", ReasonEnd.ITSELF, "waits for a maintenance"
    ),
    PendingReason(
        "ReqNodeNotAvail, May be reserved", ReasonEnd.ITSELF, "its nodes may be reserved for a job"
    ),
    PendingReason("ReqNodeNotAvail", ReasonEnd.ITSELF, "nodes it needs are down or drained", DAY_S),
    PendingReason(
        "Nodes required for job are DOWN",
        ReasonEnd.ITSELF,
        "nodes it needs are down or drained",
        DAY_S,
    ),
    PendingReason(
        "Required nodes lack available resources", ReasonEnd.ITSELF, "waits for its nodes", DAY_S
    ),
    PendingReason(
        "No suitable topology unit found", ReasonEnd.ITSELF, "no fitting nodes are free", DAY_S
    ),
    PendingReason(
        "Insufficient resources in topology", ReasonEnd.ITSELF, "no fitting nodes are free", DAY_S
    ),
    PendingReason(
        "Weight-based selection could not", ReasonEnd.ITSELF, "no fitting nodes are free", DAY_S
    ),
    PendingReason(
        "No available nodes in topology", ReasonEnd.ITSELF, "no fitting nodes are free", DAY_S
    ),
    PendingReason(
        "Required nodes do not fit topology", ReasonEnd.PERSON, "its nodes do not fit together"
    ),
    PendingReason(
        "Exceeded maximum node limit during", ReasonEnd.PERSON, "asks for too many nodes"
    ),
    PendingReason(
        "Requested topology configuration", ReasonEnd.PERSON, "no nodes fit its topology"
    ),
    PendingReason(
        "launch failed requeued held",
        ReasonEnd.PERSON,
        "held: its launch (prolog) failed",
        held=True,
    ),
    PendingReason(
        "launch failure limit exceeded",
        ReasonEnd.PERSON,
        "held after too many failed launches",
        held=True,
    ),
    PendingReason(
        "user env retrieval failed",
        ReasonEnd.PERSON,
        "held: its user's environment failed",
        held=True,
    ),
    PendingReason(
        "job requeued in held state", ReasonEnd.PERSON, "was requeued and held", held=True
    ),
    PendingReason(
        "job requeued in special exit state",
        ReasonEnd.PERSON,
        "ended specially and is held",
        held=True,
    ),
    PendingReason("License request ", ReasonEnd.PERSON, "held: a licence it asks for is gone"),
    PendingReason("Reservation ", ReasonEnd.PERSON, "its reservation is gone", never=True),
    PendingReason(
        "Job's account not ",
        ReasonEnd.PERSON,
        "its account may not use this partition",
        never=True,
        one_partition=True,
    ),
    PendingReason(
        "Job's QOS not ",
        ReasonEnd.PERSON,
        "its QOS may not use this partition",
        never=True,
        one_partition=True,
    ),
    PendingReason(
        "uid ",
        ReasonEnd.PERSON,
        "its user may not use this partition",
        never=True,
        one_partition=True,
    ),
    PendingReason(
        "Memory resize to ",
        ReasonEnd.UNKNOWN,
        "its memory could not be changed while it ran (26.11)",
    ),
    PendingReason(
        "Job is at or exceeds ", ReasonEnd.PERSON, "the account or QOS has used up its time"
    ),
    PendingReason("Unable to load job ", ReasonEnd.PERSON, "Slurm lost its script or environment"),
    PendingReason("Burst buffer ", ReasonEnd.PERSON, "the burst buffer failed"),
    PendingReason("Could not find ", ReasonEnd.PERSON, "the burst buffer failed"),
    PendingReason("burst_buffer/", ReasonEnd.PERSON, "the burst buffer failed"),
)


def explain_reason(text: str) -> PendingReason:
    """The meaning of squeue's reason. Of several joined by commas, the one that ends soonest.

    squeue joins the reasons of an array's tasks, so one that ends by itself is enough for something
    to start. A text that is in no table comes back as unknown, made visible."""
    plain = text.strip().strip("()").replace("_", " ")
    known = REASONS.get(text.strip("() ")) or _find_by_text(plain)
    if known:
        return known
    listed = dict.fromkeys(map(str.strip, plain.split(",")))
    parts = [REASONS.get(p) or _find_by_text(p) for p in listed]
    found = [p for p in parts if p]
    if not found:
        return PendingReason(
            _show_reason(text), ReasonEnd.UNKNOWN, "a reason that sentinel does not know"
        )
    return min(found, key=lambda r: (_ORDER[r.ends], r.patience or 0))


def explain_job_reason(
    reason: str, partition: str, *, expected: bool = False, grows: bool = False
) -> PendingReason:
    """What the reason of a job in this partition (or these, `a,b`) means. `expected`: Slurm has an
    estimate of its start. `grows`: its partition is empty, or its nodes come and go. The QOS of a reason may
    be that of one partition (https://slurm.schedmd.com/qos.html#partition)."""
    told = explain_reason(reason)
    if told.ends is not ReasonEnd.PERSON or told.held:
        return told
    if expected:
        return PendingReason(
            told.code, ReasonEnd.ITSELF, "not everywhere; Slurm expects it to start", DAY_S
        )
    if (told.one_partition or told.code.startswith("QOS")) and "," in partition:
        words = f"{told.meaning} (Slurm tried several; this is the last of them)"
        return PendingReason(told.code, ReasonEnd.ITSELF, words, DAY_S)
    if grows and told.code == "PartitionConfig":
        return PendingReason(
            told.code, ReasonEnd.ITSELF, "waits for nodes to come into its partition", DAY_S
        )
    return told


_ORDER = {ReasonEnd.ITSELF: 0, ReasonEnd.UNKNOWN: 1, ReasonEnd.PERSON: 2}


def _find_by_text(plain: str) -> PendingReason | None:
    if plain.endswith("Stage-out in progress"):
        return PendingReason(
            "Stage-out in progress", ReasonEnd.ITSELF, "waits for the burst buffer"
        )
    head = REASONS.get(plain.partition(":")[0])
    if head and head.code == "RaisedSignal":
        return head
    return next((r for r in TEXTS if plain.startswith(r.code.replace("_", " "))), None)


def _show_reason(text: str) -> str:
    return shortened(visible(text), 120) or "none given"
