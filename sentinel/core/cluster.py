"""Jobs and nodes as every check sees them, whatever version of Slurm printed them."""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

RESUME_TIMEOUT, SUSPEND_TIMEOUT = 60.0, 30.0
"""Seconds, where slurm.conf names none: https://slurm.schedmd.com/slurm.conf.html"""


class Job(Struct, frozen=True, gc=False):
    """A row of squeue. Times are epoch seconds UTC or None; texts are as Slurm has them.

    `id` is `%i` (`15`, `15_3`, `15_[4-9%1]`), `job_id` what scancel takes (`%A`),
    `array_id` the array's own id (`%F`). `elements` counts the array elements of the row.
    `time_limit` in seconds, None without limit.
    """

    # By position too, and unseen by the garbage collector (it holds only text and numbers):
    # a queue has 100,000 of them, and each pass makes them anew.
    id: str
    job_id: str
    array_id: str
    task: str
    name: str
    user: str
    partition: str
    state: str
    reason: str
    nodes: str
    node_count: int
    dependency: str
    submitted: int | None
    started: int | None
    ends: int | None
    time_limit: int | None
    elements: int = 1
    exclude: str = ""
    workdir: str = ""
    account: str = ""
    command: str = ""


def has_processes(job: Job) -> bool:
    """Whether it has processes by right: one that is pending has none yet, of one that is
    completing what is left is left over."""
    return bool(job.nodes) and job.state not in ("PENDING", "COMPLETING")


def process_job_ids(job: Job) -> set[str]:
    """What its processes may carry as SLURM_JOB_ID: the components of a heterogeneous job (`12+1`)
    carry the first one's (https://slurm.schedmd.com/heterogeneous_jobs.html)."""
    leader, plus, _ = job.id.partition("+")
    return {job.job_id, leader} if plus else {job.job_id}


class JobEnd(Struct, frozen=True, kw_only=True):
    """How a job ended, from scontrol while it remembers, else from accounting.

    `exit_code` and `signal` as Slurm keeps them; `state` a word of squeue (FAILED,
    TIMEOUT, NODE_FAIL, …); `cancelled_by` a user name or uid; `failed_node` where known.
    `step_failed`: the worst exit code of its steps as `1:0` (DerivedExitCode), empty for none.
    """

    job_id: str
    state: str
    exit_code: int | None = None
    signal: int | None = None
    cancelled_by: str = ""
    reason: str = ""
    nodes: str = ""
    failed_node: str = ""
    started: int | None = None
    ended: int | None = None
    stdout: str = ""
    source: str = ""
    step_failed: str = ""


class JobRun(JobEnd, frozen=True, kw_only=True, gc=False):
    """One run of a job, over or not, and whose it is. `id`, `array_id` and `submitted` as in Job;
    a name or user that was not told is empty."""

    id: str = ""
    array_id: str = ""
    name: str = ""
    user: str = ""
    partition: str = ""
    workdir: str = ""
    submitted: int | None = None

    @property
    def run_end(self) -> JobEnd:
        """How it ended, without whose it is."""
        return JobEnd(**{field: getattr(self, field) for field in JobEnd.__struct_fields__})


class JobPast(Struct, frozen=True, kw_only=True):
    """What Slurm has of jobs that may be over, the oldest run first.

    `unasked`: why accounting could not be asked, where it might have known more. `booted`: when
    slurmctld started, epoch seconds, None where that was not asked; `next_id`: the id that it
    gives to the next job; `keeps`: seconds for which it remembers a job that is over. `accounting`:
    it was asked, and may be behind.
    """

    runs: tuple[JobRun, ...] = ()
    unasked: str = ""
    booted: int | None = None
    next_id: int | None = None
    keeps: int = 0
    accounting: bool = False


class Node(Struct, frozen=True, kw_only=True):
    """A line of `scontrol show node`. `state` is the base word, `flags` all the others; `comment` is
    an administrator's free text."""

    name: str
    state: str
    flags: frozenset[str] = frozenset()
    reason: str = ""
    reason_user: str = ""
    reason_time: int | None = None
    partitions: tuple[str, ...] = ()
    gres: str = ""
    cpus: int = 0
    boot_time: int | None = None
    version: str = ""
    address: str = ""
    comment: str = ""


class Reservation(Struct, frozen=True, kw_only=True):
    """A line of `scontrol show reservation`; times are epoch seconds UTC. `users` are those named;
    `others`: groups or accounts may use it too."""

    name: str
    starts: int
    ends: int
    nodes: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    others: bool = False


class Controller(Struct, frozen=True, kw_only=True):
    """Answer of `scontrol ping`: each slurmctld with whether it is up, and the latency.

    `trouble` is what was complained of beside it (munge), in one line. Where munge keeps even
    scontrol from naming the primary, it is the last one known or empty.
    """

    primary: str
    primary_up: bool
    backups: tuple[tuple[str, bool], ...] = ()
    latency: float = 0.0
    cluster: str = ""
    version: str = ""
    trouble: str = ""


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds that a node may take to wake (or reboot) and to go to sleep: ResumeTimeout and
    SuspendTimeout of slurm.conf, and of `partitions` that have their own."""

    resume: float | None = None
    suspend: float | None = None
    partitions: Mapping[str, tuple[float | None, float | None]] = {}

    def node_timeout(self, partitions: Iterable[str], *, suspend: bool) -> float:
        """Of a node in these partitions: the longest of their own, as Slurm takes it
        (power_save.c), else slurm.conf's. None and 0 are no time: the documented default counts."""
        own = [self.partitions.get(name, (None, None))[suspend] for name in partitions]
        longest = max((seconds for seconds in own if seconds is not None), default=None)
        usual = self.suspend if suspend else self.resume
        default = SUSPEND_TIMEOUT if suspend else RESUME_TIMEOUT
        return (usual if longest is None else longest) or default


class Submission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job was submitted with. `command`: its script and the arguments, empty where it was
    piped or wrapped; `line`: as it was typed; `gpus`, `nodes`: how many it had. `stdout`: where its
    output goes, with the patterns of sbatch(1). `host`: from where it was submitted.

    `bare`: the arguments are not in `command`, if there were any. `accounting`: whether sacct has
    anything to tell.
    """

    id: str
    name: str
    user: str
    workdir: str
    command: str = ""
    stdout: str = ""
    line: str = ""
    options: tuple[str, ...] = ()
    exclude: str = ""
    gpus: int = 0
    nodes: int = 0
    host: str = ""
    bare: bool = False
    accounting: bool = False


class ControllerLogEntry(Struct, frozen=True):
    """One line of slurmctld's log about a node. `text`: the reason, or the word for the state.

    reason: given by update_node(), to be drained or not; drained: by slurmctld itself; back: in
    service again by an update; rebooted: a reboot was asked for. `uids`: who had asked for
    updates until then and was not yet heard of, where RPCs are audited.
    """

    kind: Literal["reason", "drained", "back", "rebooted"]
    text: str
    uids: frozenset[int] = frozenset()
