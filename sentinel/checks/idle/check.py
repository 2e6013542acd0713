"""The `idle` check: asks the nodes of each job, remembers, and says what was not used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import ClassVar

from msgspec import Struct, to_builtins

from sentinel.checks.idle.findings import JobAtLook, make_finding
from sentinel.checks.idle.job_watch import MAX_GAP_SHARE, JobWatch, follow_job, judge_use
from sentinel.checks.idle.node_use import LOOK_PARTS, NodeUse, read_node_use
from sentinel.checks.idle.stored_use import StoredUse, ask_stored_use
from sentinel.checks.nodes_asked import probe_nodes
from sentinel.checks.trial import WEEK_S, SilentTrial
from sentinel.checks.users import count_gpus, refuse_cut, training_subject, watched_users
from sentinel.core import hostlist
from sentinel.core.clock import SECOND, Instant, get_elapsed_s
from sentinel.core.cluster import Job
from sentinel.core.declared import Metric, Panel
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, covered
from sentinel.core.ports import Context
from sentinel.core.settings import is_web_address
from sentinel.core.shown import Column
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import visible
from sentinel.core.values import Duration, Size
from sentinel.nodes.probe import ProbeRequest
from sentinel.plugin import Check
from sentinel.slurm.job_states import Phase, find_unknown_state, state_phase

LOOKUP_LIMIT_S = 5.0
"""How many seconds the search for the members of a group may take."""

MIN_WINDOW_S = 600.0

MIN_READINGS = 30
"""So many readings of a Prometheus lie in a window at least. One reading is the use of a second or less: a
program that computes for one second of ten showed 0 % in 19 of 22."""

DAY_S = 86400.0


class IdleMemory(Struct, frozen=True, kw_only=True):
    """The memory of the check.

    told: When each training was last reported, by subject, for a day.
    bad: Subjects that were reported at the last run.
    """

    jobs: Mapping[str, JobWatch] = {}  # Each watched job, by its id.
    told: Mapping[str, Instant] = {}
    bad: tuple[str, ...] = ()
    trial: SilentTrial | None = None  # Set by the first run.


class IdleCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GPUs that a batch job holds and did not use for a whole window. It only tells.

    users: Whose jobs count: user names, `group:NAME`, or `*` for everybody; unset, who runs sentinel.
    exclude: Partitions that are not watched; shell patterns such as `debug*`.
    window: How long GPUs have to be unused.
    grace: How long after its start a job is not looked at.
    traffic: A job that uses no GPU counts as idle only if each node moves fewer bytes a second than
        this.
    prometheus: Address of a Prometheus with the metrics of DCGM's exporter, which then tells how busy each
        GPU was, in place of its node.
    trial: From its first run on it only counts for so long, and notifies nobody.
    """

    EVERY: ClassVar[float] = 300
    TIMEOUT: ClassVar[float] = 120
    METRICS = (
        Metric(
            "idle_gpus",
            "idle_gpus",
            "GPUs that a training holds and did not use over the window.",
            "",
            "training",
            ("user",),
        ),
    )
    PANEL: ClassVar[Panel] = "none"
    COLUMNS = (
        Column("training", "subject"),
        Column("GPUs", "gpus", "count"),
        Column("unused", "idle_gpus", "count"),
        Column("for", "idle_s", "time"),
        Column("status", "status", "status"),
        Column("summary", "summary"),
    )
    SOURCES = (
        "squeue of slurmctld for the jobs and how many GPUs they have.",
        "nvidia-smi, the cgroups of processes, and the traffic of each node of these jobs; with `prometheus`, a"
        " Prometheus with DCGM's exporter for the use of GPUs.",
    )
    RUNBOOK = "docs/idle.md"

    users: list[str] = []
    exclude: list[str] = []
    window: Duration = Duration(3600)
    grace: Duration = Duration(900)
    traffic: Size = Size(5_000_000)
    prometheus: str = ""
    trial: Duration = Duration(WEEK_S)

    def __post_init__(self) -> None:
        if self.window < MIN_WINDOW_S:
            raise Invalid("a training loads and saves for minutes; 10m at least", "window")
        if self.prometheus and not is_web_address(self.prometheus):
            raise Invalid("is no address like http://prometheus.example.org:9090", "prometheus")

    def jobs_of(self) -> None:
        """Everybody's jobs, because another user's job on a node makes it a shared one."""

    @property
    def looks_into_nodes(self) -> bool:
        """All of it is seen on nodes."""
        return True

    def run(self, ctx: Context) -> Report:
        """One finding for each training that holds GPUs. Raises CannotTell if Slurm or the way to the
        nodes gives no answer."""
        before = (None if ctx.one_shot else decode_memory(ctx.memory, IdleMemory)) or IdleMemory()
        began = before.trial.began if before.trial else ctx.now
        trial = SilentTrial(began=began, lasts=float(self.trial))
        refuse_cut(ctx, before.jobs)
        if why := find_unknown_state([j for j in ctx.slurm.jobs() if j.job_id in before.jobs]):
            raise CannotTell(visible(why))
        looked = self._look_at_jobs(ctx, before)
        told = {s: at for s, at in before.told.items() if get_elapsed_s(at, ctx.now) < DAY_S}
        findings = [
            self._make_finding(ctx, subject, jobs, None if subject in before.bad else told)
            for subject, jobs in self._group_by_training(looked).items()
        ]
        bad = tuple(f.subject for f in findings if f.status.bad)
        silent = trial.is_silent(ctx.now)
        memory = IdleMemory(
            jobs={one.job.job_id: one.watch for one in looked},
            told=told if silent else {**dict.fromkeys(bad, ctx.now), **told},
            bad=() if silent else bad,
            trial=trial,
        )
        nodes = {look.node: look for one in looked for look in one.looks}
        return Report(
            findings=tuple(trial.silence_findings(findings, ctx.now)),
            coverage=covered(
                "nodes",
                nodes,
                (name for name, look in nodes.items() if not look.unseen),
                "" if nodes else "no job holds GPUs for long enough",
            ),
            samples=tuple(s for f in findings for s in f.samples(("idle_gpus",))),
            memory=None if ctx.one_shot else to_builtins(memory),
        )

    def _look_at_jobs(self, ctx: Context, before: IdleMemory) -> list[JobAtLook]:
        jobs = self._select_jobs(ctx)
        counts = Counter(n for job in ctx.slurm.jobs() if job.nodes for n in _expand_nodes(job))
        asked = [n for job in jobs for n in _expand_nodes(job) if counts[n] == 1]
        stored = self._ask_prometheus(ctx, before) if self.prometheus and asked else None
        parts = tuple(part for part in LOOK_PARTS if stored is None or part != "gpu_use")
        answers = probe_nodes(ctx, asked, ProbeRequest(parts=parts))
        names, held = _find_job_names(ctx, jobs), ctx.slurm.gpus() if jobs else {}
        window, found = float(self.window), list[JobAtLook]()
        for job in jobs:
            looks = tuple(
                read_node_use(n, answers[n], names[job.job_id], stored)
                if n in answers
                else NodeUse(node=n, unknown="another job has the node too")
                for n in _expand_nodes(job)
            )
            watch = follow_job(
                before.jobs.get(job.job_id),
                job.started or 0,
                looks,
                ctx.now,
                window=window,
                traffic=float(self.traffic),
            )
            use = judge_use(watch, looks, held.get(job.job_id) or 0, window)
            found.append(JobAtLook(job=job, looks=looks, watch=watch, use=use))
        return found

    def _ask_prometheus(self, ctx: Context, before: IdleMemory) -> StoredUse:
        """What it has since the last look. Of looks too far apart nothing is kept."""
        since = max((get_elapsed_s(w.looked, ctx.now) for w in before.jobs.values()), default=0.0)
        window = float(self.window)
        seconds, gap = min(since, window * MAX_GAP_SHARE), window / MIN_READINGS
        return ask_stored_use(self.prometheus, seconds, gap, ctx.now, ctx.limit / 4)

    def _group_by_training(self, looked: Sequence[JobAtLook]) -> dict[str, list[JobAtLook]]:
        groups: dict[str, list[JobAtLook]] = {}
        for one in looked:
            subject = training_subject(self.users, one.job.user, one.job.name)
            groups.setdefault(subject, []).append(one)
        return groups

    def _make_finding(
        self,
        ctx: Context,
        subject: str,
        jobs: Sequence[JobAtLook],
        told: Mapping[str, Instant] | None,
    ) -> Finding:
        """The finding about a training. `told`: when each was reported in the last day; None if this one
        still is."""
        return make_finding(
            subject,
            jobs,
            float(self.window),
            ctx.now,
            told.get(subject) if told else None,
            one_shot=ctx.one_shot,
        )

    def _select_jobs(self, ctx: Context) -> list[Job]:
        """The jobs to look at. Parts of a heterogeneous job are left out: only one of them has the
        batch script."""
        users = watched_users(self.users, min(LOOKUP_LIMIT_S, ctx.limit / 4))
        running = [
            job
            for job in ctx.slurm.jobs()
            if state_phase(job.state) is Phase.RUNNING
            and job.nodes
            and "+" not in job.id
            and (users is None or job.user in users)
            and not any(fnmatchcase(job.partition, pattern) for pattern in self.exclude)
            and job.started is not None
            and ctx.now.wall / SECOND - job.started >= self.grace
        ]
        held = count_gpus(running, ctx.slurm)
        return [job for job in running if held.get(job.job_id, 0) != 0]


def _expand_nodes(job: Job) -> tuple[str, ...]:
    return hostlist.expand_printed(job.nodes)


def _find_job_names(ctx: Context, jobs: Sequence[Job]) -> dict[str, set[str]]:
    """The names by which the kernel and slurmstepd may know each job: its id and its SLUIDs."""
    names = {job.job_id: {job.job_id} for job in jobs}
    try:
        sluids = ctx.slurm.sluids() if jobs else {}
    except CannotTell:
        return names
    for sluid, number in sluids.items():
        if number in names:
            names[number].add(sluid)
    return names
