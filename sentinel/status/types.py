"""What the page, the API, the metrics, `status` and `top` all show; plain data, all text inert.

Times are seconds since 1970 UTC; what ends in `_s` are seconds, in `_bytes` bytes, in `_percent`
shares of 100. None: not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.declared import Panel
from sentinel.core.guidance import NO_GUIDANCE, Guidance
from sentinel.core.model import Status, Value
from sentinel.core.run_ledger import StripClass

AlertState = Literal["firing", "pending"]


class AlertFact(Struct, frozen=True, kw_only=True):
    """A firing or pending alert. `told` has the channels that were notified, and since when.
    `elsewhere` is the name of its cluster, if it is not the local one.

    `host` ran its check, where the trouble is one of that host.
    `seen` is when its check last saw it. `stale` says why that is not current. It is empty if it is
    current.
    """

    id: str
    incident: str = ""
    cluster: str
    elsewhere: str = ""
    check: str
    kind: str
    subject: str
    status: Status
    severity: Status
    state: AlertState
    since: float
    for_s: float
    summary: str
    seen: float = 0.0
    stale: str = ""
    details: str = ""
    commands: tuple[str, ...] = ()
    acts: tuple[str, ...] = ()
    guidance: Guidance = NO_GUIDANCE
    labels: Mapping[str, str] = {}
    host: str = ""
    runbook: str = ""
    told: Mapping[str, float] = {}
    held: str = ""
    acknowledged_by: str = ""
    ack_note: str = ""
    silenced_until: float | None = None
    silenced_by: str = ""
    silence_reason: str = ""
    flapping: bool = False

    @property
    def tone(self) -> Status:
        """The colour: unknown if nothing is known, otherwise by its severity."""
        return Status.UNKNOWN if self.status is Status.UNKNOWN else self.severity

    @property
    def quiet(self) -> bool:
        """Whether it is acknowledged, or nobody is to be notified. Then it is no news."""
        return bool(self.acknowledged_by) or self.silenced_until is not None


class IncidentFact(Struct, frozen=True, kw_only=True):
    """Alerts of one cause, as long as one of them fires. `trainings`: those of it that stand still, which
    hold so many `gpus`; `users`: whom it hurts."""

    incident: str
    severity: Status
    title: str
    since: float
    for_s: float
    alerts: int
    trainings: tuple[str, ...] = ()
    gpus: float = 0
    users: tuple[str, ...] = ()
    acknowledged_by: tuple[str, ...] = ()
    assigned_to: str = ""
    comment: str = ""


class CheckFact(Struct, frozen=True, kw_only=True):
    """A configured check with its last run. `panel`: where its findings are shown. `blind_s`: for
    how long it has not seen all. `seen`: when it last saw something; `stale`: why its last run is
    not current, which makes its status unknown. `elsewhere`: as of an alert."""

    name: str
    kind: str
    elsewhere: str = ""
    panel: Panel = "none"
    status: Status | None = None
    summary: str = "has not run yet"
    ran: float | None = None
    duration_s: float | None = None
    next: float | None = None
    seen: float | None = None
    stale: str = ""
    blind: bool = False
    blind_s: float = 0.0


class DiskFact(Struct, frozen=True, kw_only=True):
    """A file system as it was `seen`; `stale`: why that is not current, which makes its status
    unknown. `full_in_s` with its early and late bounds: see the forecast of `fs`. `parts`: bytes of the
    largest directories and owners of a tree (`dir /x/y`, `owner ann`)."""

    check: str
    path: str
    status: Status
    summary: str
    seen: float
    stale: str = ""
    used_percent: float | None = None
    free_bytes: float | None = None
    used_bytes: float | None = None
    size_bytes: float | None = None
    inodes_used_percent: float | None = None
    warn_percent: float | None = None
    critical_percent: float | None = None
    full_in_s: float | None = None
    full_in_early_s: float | None = None
    full_in_late_s: float | None = None
    parts: Mapping[str, float] = {}

    @property
    def is_tree(self) -> bool:
        """Whether it is a tree without a limit: it has a size, and nothing is free or full."""
        return self.used_percent is None and self.used_bytes is not None and not self.stale


class JobFact(Struct, frozen=True, kw_only=True):
    """A training that is watched, by its queue or its log, as it was `seen`. `rate` in steps a
    second over the last minutes. `stale`: why it is not current, which makes its status unknown and
    leaves out how fast it is and how long it has been quiet. `elsewhere`: as of an alert."""

    check: str
    elsewhere: str = ""
    kind: str
    subject: str
    status: Status
    summary: str
    seen: float
    stale: str = ""
    job: str = ""
    running: float | None = None
    queued: float | None = None
    progress: float | None = None
    rate: float | None = None
    quiet_s: float | None = None
    limit_s: float | None = None
    phase: str = ""
    user: str = ""
    nodes: str = ""

    def join_log(self, log: JobFact) -> JobFact:
        """One row for a training of which one check sees the queue and another one its log: the worse
        one speaks."""
        worse = max(self, log, key=lambda j: j.status.rank)
        return replace(
            self,
            status=worse.status,
            summary=worse.summary,
            stale=self.stale or log.stale,
            progress=self.progress if log.progress is None else log.progress,
            rate=log.rate,
            quiet_s=log.quiet_s,
            limit_s=log.limit_s,
            phase=log.phase,
        )

    @property
    def is_quiet(self) -> bool:
        """Whether it is well, and makes no steps at the moment: it may be silent for `limit_s`."""
        return (
            self.status is Status.OK and self.rate == 0 and None not in (self.quiet_s, self.limit_s)
        )

    @property
    def pace(self) -> str:
        """Steps a minute, in words."""
        if self.rate is None:
            return "–"
        pace = self.rate * 60
        return f"{pace:,.0f}" if 100 <= pace < 1e12 else f"{pace:.3g}"


class StripFact(Struct, frozen=True, gc=False):
    """A span of one class."""

    began: float
    ended: float
    kind: StripClass


class StepLine(Struct, frozen=True, gc=False):
    """Steps that were made one after the other."""

    began: float
    ended: float
    first: float
    last: float


class PartFact(Struct, frozen=True, kw_only=True):
    """A part of the GPU-hours that were held, as the report says it."""

    label: str
    percent: float
    share: str
    hours: str


class RunFact(Struct, frozen=True, kw_only=True):
    """What a training did in the last week. `elsewhere`: the name of its cluster, if it is not the
    local one; `gpu_seconds`: by part of the report."""

    run: str
    elsewhere: str = ""
    sentence: str = ""
    goodput: float | None = None
    gpu_seconds: Mapping[str, float] = {}
    parts: tuple[PartFact, ...] = ()
    strip: tuple[StripFact, ...] = ()
    steps: tuple[StepLine, ...] = ()


class MetricSeries(Struct, frozen=True, kw_only=True):
    """A number with the values of its metric's labels."""

    labels: tuple[str, ...]
    value: float


class MetricFact(Struct, frozen=True, kw_only=True):
    """A number that a kind of checks declares; `name` without `sentinel_`."""

    name: str
    help: str
    labels: tuple[str, ...]
    series: tuple[MetricSeries, ...]


class NodesFact(Struct, frozen=True, kw_only=True):
    """Nodes in the same state for the same reason. `state` as sinfo words it, `nodes` a hostlist."""

    state: str
    nodes: str
    count: int
    slurm_state: str = ""
    reason: str = ""
    reason_class: str = ""
    by: str = ""
    since: float | None = None


class GpuFact(Struct, frozen=True, kw_only=True):
    """A GPU, or a whole node, under suspicion."""

    subject: str
    node: str
    judged: str
    score: float
    mark: str = ""
    reason: str = ""
    serial: str = ""
    model: str = ""
    slot: str = ""
    seen: float = 0.0


class ActionFact(Struct, frozen=True, kw_only=True):
    """An entry of the audit log."""

    id: str
    at: float
    action: str
    target: str
    by: str
    outcome: str
    reason: str = ""
    rule: str = ""
    why: str = ""
    detail: str = ""
    commands: tuple[str, ...] = ()
    evidence: Mapping[str, str] = {}
    forced: bool = False


class UnsentFact(Struct, frozen=True, kw_only=True):
    """A message that its channel has not taken yet."""

    channel: str
    alert: str
    reason: str
    attempts: int
    waiting_s: float
    error: str = ""
    next_attempt: float | None = None
    """When it is tried again, in seconds since 1970 UTC. None if it was not tried yet."""


class SilenceFact(Struct, frozen=True, kw_only=True):
    """A silence in force."""

    id: str
    match: str
    ends: float
    who: str = ""
    reason: str = ""


class RequestStats(Struct, frozen=True, kw_only=True):
    """Questions of one kind since the start of the service."""

    requests: int
    failures: int
    seconds: float


class Vitals(Struct, frozen=True, kw_only=True):
    """What only the running service knows of itself."""

    lag_s: float | None = None
    started: float = 0.0
    slurm: Mapping[str, RequestStats] = {}


class WorkFact(Struct, frozen=True, kw_only=True):
    """A job that runs, and where: `nodes` is a hostlist."""

    id: str
    name: str
    user: str
    nodes: str


class ClusterFact(Struct, frozen=True, kw_only=True):
    """Another sentinel's cluster, as its API said when it was `seen` (s UTC); `trouble`: why that is not
    current or not whole, which makes its status unknown."""

    name: str
    url: str
    status: Status
    firing: int | None = None
    pending: int | None = None
    blind: int | None = None
    nodes: int | None = None
    seen: float | None = None
    trouble: str = ""


class Facts(Struct, frozen=True, kw_only=True):
    """All facts to show, of one moment, the worst first. If there are very many, not all are
    included.

    Checks are in the order of the configuration. `nodes_seen` is None if nobody has asked for
    nodes. `private`: what Slurm hides from ordinary users, in words of PrivateData. None: not
    known. `node_gpus`: host lists by the number of GPUs of each node. `racks`: host lists by leaf
    switch or block. `config`: the configuration that commands have to name, empty if they find it.
    """

    at: float
    cluster: str
    status: Status
    leader: str = ""
    config: str = ""
    pass_every: float = 0.0
    """Seconds between the passes of a chain or crontab that calls sentinel; 0: none is installed."""
    notices: tuple[str, ...] = ()
    alerts: tuple[AlertFact, ...] = ()
    incidents: tuple[IncidentFact, ...] = ()
    checks: tuple[CheckFact, ...] = ()
    disks: tuple[DiskFact, ...] = ()
    jobs: tuple[JobFact, ...] = ()
    runs: tuple[RunFact, ...] = ()
    metrics: tuple[MetricFact, ...] = ()
    queue: Mapping[str, int] = {}
    nodes: tuple[NodesFact, ...] = ()
    nodes_seen: float | None = None
    nodes_trouble: str = ""
    private: tuple[str, ...] | None = None
    node_gpus: Mapping[str, str] = {}
    work: tuple[WorkFact, ...] = ()
    racks: Mapping[str, str] = {}
    gpus: tuple[GpuFact, ...] = ()
    gpu_standings: Mapping[str, int] = {}
    actions: tuple[ActionFact, ...] = ()
    unsent: tuple[UnsentFact, ...] = ()
    silences: tuple[SilenceFact, ...] = ()
    clusters: tuple[ClusterFact, ...] = ()
    vitals: Vitals | None = None

    @property
    def firing(self) -> tuple[AlertFact, ...]:
        """The firing alerts."""
        return tuple(a for a in self.alerts if a.state == "firing")

    @property
    def trainings(self) -> tuple[JobFact, ...]:
        """A row for each training. One whose queue and whose log are watched has one row for both; of
        several checks of its log, the worst one speaks."""
        by_rank = sorted(self.jobs, key=lambda j: j.status.rank)
        logs = {(j.elsewhere, j.subject): j for j in by_rank if j.kind == "log"}
        queued = {(j.elsewhere, j.subject) for j in self.jobs if j.kind == "job"}
        rows = [
            j.join_log(logs[j.elsewhere, j.subject])
            if j.kind == "job" and (j.elsewhere, j.subject) in logs
            else j
            for j in self.jobs
            if j.kind != "log" or (j.elsewhere, j.subject) not in queued
        ]
        return tuple(sorted(rows, key=lambda j: -j.status.rank))

    @property
    def calm_summary(self) -> tuple[str, bool]:
        """The text if nothing fires, and whether all checks have seen everything."""
        waiting = len(self.alerts) - len(self.firing)
        unrun = sum(check.ran is None for check in self.checks)
        blind = sum(check.blind or bool(check.stale) for check in self.checks)
        doubts = [
            *([f"{waiting} waiting"] if waiting else []),
            *([f"{unrun} check{'s' * (unrun != 1)} not run yet"] if unrun else []),
            *([f"{blind} cannot tell now"] if blind else []),
        ]
        return f"no alerts ({'; '.join(doubts)})" if doubts else "no alerts", not doubts

    @property
    def no_gpu_text(self) -> str:
        """What is known where no GPU is listed: those of the ledger are good, or none was seen."""
        looks = [check for check in self.checks if check.kind == "gpu"]
        if not looks and not self.gpu_standings:
            return "No check of kind gpu runs."
        blind = [check for check in looks if check.status in (None, Status.UNKNOWN)]
        if self.gpu_standings and len(blind) < len(looks):
            return "No GPU is under suspicion."
        return f"Not known: {blind[0].stale or blind[0].summary}" if blind else "Not known."

    @property
    def last_pass_at(self) -> float | None:
        """When the last check ran. None if none has run yet."""
        return max((check.ran for check in self.checks if check.ran is not None), default=None)

    @property
    def node_states(self) -> Mapping[str, int]:
        """How many nodes are in each state, the worst states first."""
        counts: dict[str, int] = {}
        for group in self.nodes:
            counts[group.state] = counts.get(group.state, 0) + group.count
        return counts


Numbers = Mapping[str, Value]
