"""Jobs and nodes as every check sees them, whatever version of Slurm printed them."""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

RESUME_TIMEOUT, SUSPEND_TIMEOUT = 60.0, 30.0
"""Slurm's defaults in seconds: https://slurm.schedmd.com/slurm.conf.html"""


WISH_MARK = "sentinel:"
"""A comment that begins with it is a wish. Any other comment belongs to another tool."""

MAX_WISH_CHARS = 1024

COMPLETING = "COMPLETING"
"""The state of a job that Slurm ends on its nodes."""


class Job(Struct, frozen=True, gc=False):
    """A row of squeue. Times are epoch seconds UTC or None; texts are as Slurm has them.

    id: `%i`: `15`, `15_3` or `15_[4-9%1]`.
    job_id: `%A`: the id that scancel takes.
    array_id: `%F`: the id of the array itself.
    elements: How many array elements the row stands for.
    time_limit: Seconds; None: without a limit.
    overdue: It is COMPLETING, and Slurm has had all the time that it may take to end a job.
    """

    # The fields may be given by position. The garbage collector does not track the objects, because
    # they contain only text and numbers. A queue may have 100,000 jobs, and each pass creates them
    # anew.
    id: str
    job_id: str
    array_id: str
    task: str  # Index of the array's element, as Slurm writes it; empty for none.
    name: str  # The job's name, any text.
    user: str  # The owner's name.
    partition: str  # The partition, or several with commas between.
    state: str  # The state, as `RUNNING`.
    reason: str  # Why it is pending, as Slurm writes it.
    nodes: str  # Host list of its nodes; empty while it has none.
    node_count: int  # How many nodes it has or asks for.
    dependency: str  # The jobs that it waits for, e.g. `afterany:4711`.
    submitted: int | None  # When it was submitted, epoch seconds.
    started: int | None  # When it started, or is expected to start, epoch seconds.
    ends: int | None  # When it reaches its time limit, epoch seconds.
    time_limit: int | None
    elements: int = 1
    exclude: str = ""  # Host list of the nodes that it must not get.
    workdir: str = ""  # Its working directory.
    account: str = ""  # The account that it is charged to.
    command: str = ""  # Its script, as Slurm shows it.
    wish: str = ""  # Its owner's wish, from the comment, else from the script (core/wishes.py).
    wish_trouble: str = ""  # Why the wish in its script is not known.
    overdue: bool = False


def has_processes(job: Job) -> bool:
    """Whether the job runs, so that it has processes. A pending job has none yet, and a completing
    job has none for long."""
    return bool(job.nodes) and job.state not in ("PENDING", COMPLETING)


def may_have_processes(job: Job) -> bool:
    """Whether processes of the job are there by right. Those of a completing job got SIGTERM, may save
    something until KillWait, and are followed by the epilog; only then are they leftovers."""
    ending = bool(job.nodes) and job.state == COMPLETING and not job.overdue
    return ending or has_processes(job)


def process_job_ids(job: Job) -> set[str]:
    """Values that SLURM_JOB_ID may have in the job's processes. In the components of a
    heterogeneous job (`12+1`) it is the first component's id
    (https://slurm.schedmd.com/heterogeneous_jobs.html)."""
    leader, plus, _ = job.id.partition("+")
    return {job.job_id, leader} if plus else {job.job_id}


class JobEnd(Struct, frozen=True, kw_only=True):
    """How a job ended, from slurmctld while it remembers the job, else from accounting.

    exit_code, signal: As Slurm keeps them.
    or_exit_code: Another exit code that accounting prints as `exit_code`, so it may be that one.
    state: A word of squeue: FAILED, TIMEOUT, NODE_FAIL, …
    cancelled_by: A user name or uid.
    failed_node: The node that failed, if it is known.
    step_failed: The worst exit code of its steps as `1:0` (DerivedExitCode); empty for none.
    """

    job_id: str  # The job's id for scancel.
    state: str
    exit_code: int | None = None
    or_exit_code: int | None = None
    signal: int | None = None
    cancelled_by: str = ""
    reason: str = ""  # Why it ended, as Slurm writes it.
    nodes: str = ""  # Host list of the nodes that it had.
    failed_node: str = ""
    started: int | None = None  # When it started, epoch seconds.
    ended: int | None = None  # When it ended, epoch seconds.
    stdout: str = ""  # The path of its output.
    source: str = ""  # Which command gave this answer.
    step_failed: str = ""


class JobRun(JobEnd, frozen=True, kw_only=True, gc=False):
    """One run of a job, ended or not, and its user.

    `id`, `array_id` and `submitted` are as in Job. The name and user are empty if they are not
    known. `node_count` and `gpus` are its size, None if it is not known.
    """

    id: str = ""
    array_id: str = ""
    name: str = ""
    user: str = ""
    partition: str = ""
    workdir: str = ""
    submitted: int | None = None
    node_count: int | None = None
    gpus: int | None = None

    @property
    def run_end(self) -> JobEnd:
        """How the run ended, without its owner and size."""
        return JobEnd(**{field: getattr(self, field) for field in JobEnd.__struct_fields__})


class JobPast(Struct, frozen=True, kw_only=True):
    """What Slurm remembers of jobs that may be over.

    unasked: Why accounting could not be asked, though it might have known more.
    left_out: The job ids and names that it was not asked about; None: all, if `unasked`.
    booted: When slurmctld started, epoch seconds; None: it was not asked.
    next_id: The id that slurmctld gives to the next job.
    keeps: Seconds for which slurmctld remembers a job that is over.
    accounting: Whether accounting was asked; it may be behind.
    """

    runs: tuple[JobRun, ...] = ()  # The runs, the oldest first.
    unasked: str = ""
    left_out: frozenset[str] | None = None
    booted: int | None = None
    next_id: int | None = None
    keeps: int = 0
    accounting: bool = False

    def was_asked(self, *words: str) -> bool:
        """Whether nothing kept accounting from being asked about all of these ids and names."""
        known = bool(words) and self.left_out is not None and self.left_out.isdisjoint(words)
        return known or not self.unasked


class Node(Struct, frozen=True, kw_only=True):
    """A line of `scontrol show node`.

    state: The base word of the state.
    flags: All other words of the state.
    comment, extra: Free text of administrators and of other programs.
    """

    name: str  # The node's name.
    state: str
    flags: frozenset[str] = frozenset()
    reason: str = ""  # Why it was drained or set down, as Slurm shows it.
    reason_user: str = ""  # Who gave the reason.
    reason_time: int | None = None  # When the reason was given, epoch seconds.
    partitions: tuple[str, ...] = ()  # The partitions that it belongs to.
    gres: str = ""  # Its generic resources, as `gpu:8`.
    features: str = ""  # Its active features, with commas between.
    cpus: int = 0  # How many processors Slurm counts.
    boot_time: int | None = None  # When it was booted, epoch seconds.
    version: str = ""  # The version of its slurmd.
    address: str = ""  # Its address, as Slurm reaches it.
    comment: str = ""
    extra: str = ""


class Reservation(Struct, frozen=True, kw_only=True):
    """A line of `scontrol show reservation`."""

    name: str  # The reservation's name.
    starts: int  # When it begins, epoch seconds.
    ends: int  # When it ends, epoch seconds.
    nodes: frozenset[str] = frozenset()  # The names of its nodes.
    flags: frozenset[str] = frozenset()  # Its flags, such as `MAINT`.
    users: frozenset[str] = frozenset()  # The users that it names.
    others: bool = False  # Whether groups or accounts may use it too.


class Controller(Struct, frozen=True, kw_only=True):
    """Answer of `scontrol ping`.

    trouble: A complaint beside it, as of munge, in one line. If munge keeps scontrol from naming
        the primary, `primary` is the last one known, or empty.
    """

    primary: str  # Host name of the primary slurmctld.
    primary_up: bool  # Whether the primary answers.
    backups: tuple[tuple[str, bool], ...] = ()  # Host name of each backup, and whether it answers.
    latency: float = 0.0  # Seconds until the answer came.
    cluster: str = ""  # The cluster's name.
    version: str = ""  # The version of slurmctld.
    trouble: str = ""


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds that a node may take to wake (or reboot) and to go to sleep: ResumeTimeout and
    SuspendTimeout of slurm.conf, and of `partitions` that have their own."""

    resume: float | None = None  # ResumeTimeout in seconds; None: not known.
    suspend: float | None = None  # SuspendTimeout in seconds; None: not known.
    partitions: Mapping[str, tuple[float | None, float | None]] = {}

    def node_timeout(self, partitions: Iterable[str], *, suspend: bool) -> float:
        """Seconds that a node in these partitions may take to wake, or with `suspend` to go to
        sleep.

        The longest time of the partitions counts, as in Slurm (power_save.c), else that of
        slurm.conf. If that is None or 0, the documented default counts."""
        own = [self.partitions.get(name, (None, None))[suspend] for name in partitions]
        longest = max((seconds for seconds in own if seconds is not None), default=None)
        usual = self.suspend if suspend else self.resume
        default = SUSPEND_TIMEOUT if suspend else RESUME_TIMEOUT
        return (usual if longest is None else longest) or default


class Submission(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job was submitted with.

    command: Its script and the arguments; empty if it was piped or wrapped.
    line: The command as it was typed.
    gpus, nodes: How many it had. No GPUs: none, or not told.
    stdout: Where its output goes, with the patterns of sbatch(1).
    host: The host from which it was submitted.
    bare: `command` lacks the arguments, if there were any.
    batch: It has a batch script: sbatch submitted it, and not srun or salloc.
    accounting: Whether sacct has anything to tell.
    """

    id: str  # The job's id.
    name: str  # The job's name.
    user: str  # The owner's name.
    workdir: str  # The directory in which it was submitted.
    command: str = ""
    stdout: str = ""
    line: str = ""
    options: tuple[str, ...] = ()  # Options of sbatch that Slurm stores with the job.
    exclude: str = ""  # Host list of the nodes that it must not get.
    gpus: int = 0
    nodes: int = 0
    host: str = ""
    bare: bool = False
    batch: bool = True
    accounting: bool = False


class ControllerLogEntry(Struct, frozen=True):
    """One line of slurmctld's log about a node. `text`: the reason, or the word for the state.

    reason: given by update_node(), to be drained or not; drained: by slurmctld itself; back: in
    service again by an update; rebooted: a reboot was asked for. `uids`: who had asked for
    updates until then and was not yet heard of, where RPCs are audited.
    """

    kind: Literal["reason", "drained", "back", "rebooted"]  # What the line is about, see above.
    text: str
    uids: frozenset[int] = frozenset()
