"""Jobs, nodes and schedules that somebody looked for who had read the code; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable

from sentinel.chain.model import ChainLink
from sentinel.core.cluster import Job
from sentinel.core.model import Status
from sentinel.testing import FixedSlurm
from tests.checks.job.making import Watch, check, pending
from tests.world.case import Case, each
from tests.world.slurm_answers import booked, field, returns, seconds, waits, works
from tests.world.test_chains_drawn import BEGIN, END, kept, times

SQUEUE = "https://slurm.schedmd.com/squeue.html"
REASONS = "https://slurm.schedmd.com/job_reason_codes.html"
SINFO = "https://slurm.schedmd.com/sinfo.html"
CRON = "https://man7.org/linux/man-pages/man5/crontab.5.html"
TZ = "https://www.iana.org/time-zones"
COST = (
    "A job, a node or a schedule is judged by a word alone, and somebody loses a night or is woken."
)


def among(*jobs: Job) -> Status:
    """What is told of the training `train` with these jobs in the queue."""
    return Watch(check()).see(FixedSlurm(jobs=jobs, nodes=(), partitions={"a": 4, "b": 4})).status


def link(reason: str, partition: str) -> bool:
    """Whether a link of a chain counts as one that can never start, so that it is cancelled."""
    one = ChainLink(job="7", name="x-a", state="PENDING", reason=reason, partition=partition)
    return one.can_never_start


# Two of these were written down otherwise, and are arguable: a reason that nobody knows is named and wakes
# nobody ("unknown" was written), and Slurm's silence about a node that sleeps says nothing ("cannot work" was).
JOBS = (
    Case("a-part-in-two-partitions", "https://slurm.schedmd.com/heterogeneous_jobs.html", lambda: among(pending("13", "Resources", id="13+0"), pending("14", "PartitionTimeLimit", id="13+1", partition="a,b")), Status.OK, COST),
    Case("waits-for-one-in-two-partitions", SQUEUE, lambda: among(pending("21", "Dependency", dependency="afterok:20(unfulfilled)"), pending("20", "PartitionNodeLimit", name="pre", partition="a,b")), Status.OK, COST),
    Case("waits-for-one-in-one-partition", SQUEUE, lambda: among(pending("21", "Dependency", dependency="afterok:20(unfulfilled)"), pending("20", "PartitionNodeLimit", name="pre")), Status.CRITICAL, COST),
    Case("underscores", SQUEUE, lambda: waits("(Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions)"), "waits", COST),
    Case("underscores-of-a-held-one", SQUEUE, lambda: waits("launch_failed_requeued_held"), "person", COST),
    Case("two-reasons-of-an-array", SQUEUE, lambda: waits("JobHeldUser,Priority"), "waits", COST),
    Case("one-that-nobody-knows", REASONS, lambda: waits("QOSMaxQuantumPerUser"), "waits", COST),
    Case("too-much-memory-for-one-of-two", REASONS, lambda: waits("MaxMemPerLimit", partition="a,b"), "waits", COST),
    Case("too-much-memory", REASONS, lambda: waits("MaxMemPerLimit"), "person", COST),
    Case("reservation-deleted", REASONS, lambda: waits("ReservationDeleted"), "person", COST),
    Case("out-of-memory-by-125", "https://slurm.schedmd.com/sacct.html", lambda: booked("OUT_OF_MEMORY", "0:125"), "OUT_OF_MEMORY 0 125 - death", COST),
    Case("a-state-of-tomorrow", "https://slurm.schedmd.com/job_state_codes.html", lambda: booked("TELEPORTED", "0:0"), "TELEPORTED 0 None - no death", COST),
    Case("a-link-in-two-partitions", REASONS, lambda: link("PartitionTimeLimit", "a,b"), False, COST),
    Case("a-link-in-one-partition", REASONS, lambda: link("PartitionTimeLimit", "a"), True, COST),
    Case("a-link-whose-account-fits-one", REASONS, lambda: link("AccountNotAllowed", "a,b"), False, COST),
)  # fmt: skip
NODES = (
    Case("powered-down-and-silent", "https://github.com/aws/aws-parallelcluster/issues/7577", lambda: works("IDLE+CLOUD+POWERED_DOWN+NOT_RESPONDING") is True, True, COST),
    Case("silent-while-it-boots", "https://github.com/aws/aws-parallelcluster/issues/6780", lambda: works("ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP"), True, COST),
    Case("silent-while-it-goes-to-sleep", "https://github.com/aws/aws-parallelcluster-node/pull/350", lambda: works("IDLE+CLOUD+NOT_RESPONDING+POWERING_DOWN"), True, COST),
    Case("dynamic", SINFO, lambda: works("MIXED+DYNAMIC_NORM"), True, COST),
    Case("not-there-yet", SINFO, lambda: (works("FUTURE"), works("UNKNOWN*")), (False, False), COST),
    Case("marks-of-20.11", SINFO, lambda: (works("IDLE$"), works("IDLE^"), works("ALLOCATED@"), works("IDLE~")), (False, False, True, True), COST),
    Case("a-base-of-tomorrow", SINFO, lambda: works("DREAMING+CLOUD"), False, COST),
    Case("a-step-of-a-part", "slurm 25.05, slurmd/slurmstepd", lambda: returns("Kill task failed (JobId=12 StepId=3+0)", "root"), True, COST),
    Case("a-note-behind-what-is-appended", "slurm 23.02, set_node_reason()", lambda: returns("Kill task failed : Not responding : RMA 71", "root"), False, COST),
    Case("in-small-letters", "typed by hand", lambda: returns("kill task failed", "root"), False, COST),
    Case("by-a-person", "typed by hand", lambda: returns("Kill task failed (JobId=12 StepId=0)", "alice"), False, COST),
    Case("a-question-mark", "typed by hand", lambda: returns("Kill task failed?", "root"), False, COST),
    Case("a-stamp-by-hand", "https://github.com/mej/nhc/issues/134", lambda: returns("Kill task failed [ADMIN SHUTDOWN]", "root"), False, COST),
    Case("another-job-in-the-brackets", "typed by hand", lambda: returns("Kill task failed (JobId=12 StepId=0, see 99)", "root"), False, COST),
    Case("blocked-while-it-works", SINFO, lambda: works("MIXED+BLOCKED"), True, COST),
)  # fmt: skip
TIMES = (
    Case("an-editor-of-windows", CRON, lambda: kept(f"a\r\n{BEGIN}\r\nours\r\n{END}\r\n"), "a\r\n", COST),
    Case("a-blank-behind-the-marks", CRON, lambda: kept(f"a\n{BEGIN} \nours\n{END}\t\nb\n"), "a\nb\n", COST),
    Case("an-end-in-another-word", CRON, lambda: kept(f"{BEGIN}\nours\n{END}\n# END xy\nb\n"), "# END xy\nb\n", COST),
    Case("capital-names", CRON, lambda: (field("0 3 * JAN Sun", "months"), field("0 3 * JAN Sun", "weekdays")), ((1,), (0,)), COST),
    Case("leading-zeros", CRON, lambda: (field("05 08 * * *", "minutes"), field("05 08 * * *", "hours")), ((5,), (8,)), COST),
    Case("a-range-to-seven-with-a-step", CRON, lambda: field("0 3 * * 5-7/2", "weekdays"), (0, 5), COST),
    Case("a-step-and-a-number", CRON, lambda: field("*/15,3 * * * *", "minutes"), (0, 3, 15, 30, 45), COST),
    Case("every-seventh-weekday", CRON, lambda: field("0 0 * * */7", "weekdays"), (0,), COST),
    Case("first-week-or-monday", CRON, lambda: field("0 0 1-7 * 1", "either_day"), True, COST),
    Case("beyond-their-fields", CRON, lambda: [field(f, "minutes") for f in ("0 24 * * *", "0 0 0 * *", "0 0 * * 8", "60 * * * *", "0 0 * 13 *")], ["refused"] * 5, COST),
    Case("words-of-quartz", "https://www.quartz-scheduler.org/documentation/quartz-2.3.0/tutorials/crontrigger.html", lambda: [field(f, "minutes") for f in ("0 12 ? * *", "0 0 L * *", "0 0 15W * *", "0 0 * * 1#2")], ["refused"] * 4, COST),
    Case("words-of-jenkins", "https://www.jenkins.io/doc/book/pipeline/syntax/#cron-syntax", lambda: field("H/15 * * * *", "minutes"), "refused", COST),
    Case("half-an-hour-is-left-out", TZ, lambda: times("15 2 * * *", "Australia/Lord_Howe", "2025-10-04 00:00", "2025-10-05 00:00"), ["04 15:30"], COST),
    Case("half-an-hour-comes-twice", TZ, lambda: times("45 1 * * *", "Australia/Lord_Howe", "2025-04-05 00:00", "2025-04-06 00:00"), ["05 14:45"], COST),
    Case("an-interval-through-a-gap", TZ, lambda: len(times("*/30 * * * *", "Europe/Berlin", "2025-03-29 23:45", "2025-03-30 02:45")), 6, COST),
)  # fmt: skip

QUEUE = "https://github.com/SchedMD/slurm/blob/master/src/slurmctld/"
# One was handed over as nobody prints it (`1-12`, which sbatch takes and squeue never shows): it counts as arguable.
JOBS_2 = (
    Case("a-licence-that-is-gone", QUEUE + "job_mgr.c, license_job_test()", lambda: waits("License request matlab no longer valid"), "person", COST),
    Case("a-note-behind-a-hold", QUEUE + "job_mgr.c, scontrol requeuehold reason=", lambda: waits("job requeued in held state (by ann, see 55)"), "person", COST),
    Case("a-reservation-that-was-deleted-in-words", QUEUE + "reservation.c", lambda: waits("Reservation ann_7 was deleted"), "person", COST),
    Case("a-group-limit-while-nothing-runs", "https://github.com/SlinkyProject/slurm-bridge/issues/10", lambda: waits("QOSGrpGRESRunMinutes"), "waits", COST),
    Case("minutes-that-are-used-up", SQUEUE, lambda: waits("AssocGrpCPUMinutesLimit"), "person", COST),
    Case("held-in-small-letters", SQUEUE, lambda: waits("jobheldadmin"), "waits", COST),
    Case("a-number-of-tomorrow", "slurm 26.11, job_state_reason_string() of an unknown number", lambda: waits("InvalidReason"), "waits", COST),
    Case("an-array-that-is-held-and-starts", SQUEUE, lambda: waits("(JobHeldUser,Resources)"), "waits", COST),
    Case("an-array-with-two-that-never-start", SQUEUE, lambda: waits("BadConstraints,PartitionTimeLimit"), "person", COST),
    Case("deadline-in-one-of-two", SQUEUE, lambda: waits("DeadLine", partition="a,b"), "person", COST),
    Case("a-limit-of-half-an-hour-in-seconds", "https://slurm.schedmd.com/sbatch.html#OPT_time", lambda: (seconds("00:30"), seconds("1-12:00:00")), (30, 129600), COST),
    Case("a-coredump-in-the-books", "https://slurm.schedmd.com/job_exit_code.html", lambda: booked("FAILED", "0:139"), "FAILED 0 139 - death", COST),
    Case("resizing", "https://slurm.schedmd.com/job_state_codes.html", lambda: booked("RESIZING", "0:0"), "RESIZING None None - no death", COST),
    Case("cancelled-by-a-name", "https://slurm.schedmd.com/sacct.html", lambda: booked("CANCELLED by ann", "0:15"), "CANCELLED 0 15 ann no death", COST),
    Case("launch-failed-in-the-books", "https://slurm.schedmd.com/job_state_codes.html", lambda: booked("LAUNCH_FAILED", "1:0"), "LAUNCH_FAILED 1 None - death", COST),
)  # fmt: skip


@each(*JOBS, *NODES, *TIMES, *JOBS_2)
def test_a_form_of_slurm_or_time_that_was_hunted(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
