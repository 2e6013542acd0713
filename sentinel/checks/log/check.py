"""The `log` check: which files are read, what they show, and how bad that is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from sentinel.checks.log.cadence import LimitBounds
from sentinel.checks.log.gather import LogSource
from sentinel.checks.log.judge import UNSEEN_LINE, UNSEEN_METRICS, StaleRules
from sentinel.checks.log.memory import Memory, load_memory
from sentinel.checks.log.plan import LogPlan
from sentinel.checks.log.reader import LogReader
from sentinel.checks.log.requests import ActionParams
from sentinel.checks.log.requests import make_multiline_regex as by_line_text
from sentinel.checks.log.run import LogPass
from sentinel.checks.log.scan import LogPatterns, list_allowances, merge_phases
from sentinel.checks.log.settings import (
    Auto,
    CloserLookMode,
    OnStale,
    PhaseSettings,
    ProgressSetting,
    SignalName,
    name_patterns,
)
from sentinel.checks.log.topics import Thresholds
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.checks.trainings import jobs_by_subject, look_at_each
from sentinel.checks.users import (
    EVERYBODY,
    names_one_user,
    refuse_cut,
    running_jobs,
    watched_users,
)
from sentinel.core.action_limits import Limits
from sentinel.core.checkpoints import CheckpointPlace
from sentinel.core.cluster import Job
from sentinel.core.declared import TRAINING, Panel
from sentinel.core.errors import Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.core.patterns import compile_by_line
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.shown import Column
from sentinel.core.text import visible
from sentinel.core.values import Duration, Share
from sentinel.plugin import Check
from sentinel.slurm.filename_patterns import has_symbols

READ_SHARE = 0.9
"""The share of the run's time limit for reading logs. The rest is for storing the result."""


class Log(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training's log grows, or the number in it advances, while its job runs.

    path: The log; may hold Slurm's %-symbols and, in its last part, a shell pattern whose newest
        file counts; unset, the job's own output.
    job: The exact name of the job during which the log is watched.
    match: A regular expression for the whole name, in place of `job`: each training is a subject.
    users: Whose jobs: user names, `group:NAME`, or `*` for everybody; unset, who runs sentinel, or
        with a size alone everybody.
    min_gpus: Only jobs with so many GPUs or more; without `job` each training is a subject.
    min_nodes: Only jobs on so many nodes or more; without `job` each training is a subject.
    stale_after: Critical when nothing advanced for so long; `auto` learns it.
    floor: `auto` is never shorter.
    ceiling: `auto` is never longer.
    learn_from: Logs of earlier jobs, of whichever user, that `auto` learns from before it has seen any.
    startup: So long after the job's start no log, or one without progress, is no alarm.
    joining: So long after a rank has announced itself the others have to follow.
    progress: A regular expression whose first group captures a number that has to advance, or
        several: growth alone does not count then. `auto`: found out from the log, which has to
        grow where there is none; `growth`: it has to grow.
    metrics: Files of TensorBoard or W&B, or JSON lines, whose step has to advance; symbols and
        patterns as in `path`. `auto` then searches no number in the log.
    phases: Stretches by name in which no progress is normal.
    loss: A regular expression that captures the loss; unset, the lines of known trainers.
    nan_after: Critical when the loss is NaN or infinite so many times in a row.
    slower_than: A warning below this share of the usual speed.
    errors: Own patterns of errors, by name.
    known_errors: Whether the known ones count: CUDA, NCCL, tracebacks, the OOM killer, full disks.
    ignore: Lines that are no error.
    heartbeat: A file that the training touches: a second witness.
    ask_nodes: Whether the job's nodes are asked when it seems to hang.
    looks: Whose jobs' nodes are looked at closer once they are quiet for unusually long: `own`; `all`
        (others' by root); `srun` (also where that makes steps in accounting); `off`.
    trial: How long closer looks only note what they would have told, before they wake anybody.
    checkpoints: Where they lie: a hang then says how much work is at risk.
    on_stale: What is done with a job that hangs.
    killswitch: The file that the action of that name makes.
    signal: The signal that `cancel` sends; unset, the job is ended.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 60
    METRICS = TRAINING
    PANEL: ClassVar[Panel] = "jobs"
    COLUMNS = (
        Column("training", "subject"),
        Column("step", "progress", "count"),
        Column("a minute", "progress", "rate"),
        Column("loss", "loss_curve", "curve"),
        Column("quiet", "quiet_seconds", "time", optional=True),
        Column("trainer", "trainer", optional=True),
        Column("status", "status", "status"),
        Column("last line", "last_line", "line"),
    )
    SOURCES = (
        "The end of the log, read by a child process that is given up where it hangs.",
        "squeue of slurmctld for the job and the path of its output.",
        "When it seems to hang: the job's nodes for processes and GPUs.",
    )
    RUNBOOK = "docs/log.md"

    path: FilePath | None = None
    job: str | None = None
    match: re.Pattern[str] | None = None
    users: list[str] = []
    min_gpus: int = 0
    min_nodes: int = 0
    stale_after: Duration | Auto = Duration(1800)
    floor: Duration = Duration(120)
    ceiling: Duration = Duration(3600)
    learn_from: list[FilePath] = []
    startup: Duration = Duration(1800)
    joining: Duration = Duration(600)
    progress: ProgressSetting = "auto"
    metrics: list[FilePath] = []
    phases: dict[str, PhaseSettings] = {}
    loss: re.Pattern[str] | None = None
    nan_after: int = 3
    slower_than: Share | None = None
    errors: dict[str, re.Pattern[str]] = {}
    known_errors: bool = True
    ignore: list[re.Pattern[str]] = []
    heartbeat: FilePath | None = None
    ask_nodes: bool = True
    looks: CloserLookMode = "own"
    trial: Duration = Duration(7 * 86400)
    checkpoints: CheckpointPlace | None = None
    on_stale: list[OnStale] = []
    killswitch: FilePath | None = None
    signal: SignalName | None = None

    def __post_init__(self) -> None:
        self._refuse_jobs()
        self._refuse_path()
        self._refuse_metrics()
        name_patterns(self.progress)
        if self.loss and not self.loss.groups:
            raise Invalid("captures nothing; put the loss in a group", "loss")
        if self.stale_after != "auto" and self.stale_after <= 0:
            raise Invalid("must be longer than 0s", "stale_after")
        if not 0 < self.floor <= self.ceiling:
            raise Invalid("must be longer than 0s, and no longer than `ceiling`", "floor")
        if self.nan_after < 1:
            raise Invalid("has to be 1 or more", "nan_after")
        if self.on_stale and not (self.job or self.match):
            raise Invalid("acts on a job; name the `job`, or `match` it", "on_stale")
        if "killswitch" in self.on_stale and not str(self.killswitch or "").startswith("/"):
            raise Invalid("names the file that a hang makes; an absolute path", "killswitch")

    def unused(self) -> Iterator[tuple[str, str]]:
        """Settings that have no effect in this configuration, with the reason."""
        if not self.job:
            yield "learn_from", "it learns from earlier jobs of the same name; name the `job`"
        if not self.is_job_log:
            yield "users", "it says whose `job` is meant; name the job"
            yield "startup", "it is counted from the start of a `job`; name the job"
            yield "ask_nodes", "the nodes of a `job` are asked; name the job"
            yield "looks", "the nodes of a `job` are looked at; name the job"
            yield "trial", "it is the trial time of `looks`, which need a `job`; name the job"
        if self.stale_after != "auto":
            for key in ("floor", "ceiling"):
                yield key, "it bounds what `stale_after: auto` learns"
        if self.progress == "growth":
            yield "looks", "nodes are looked at when a number stands still; growth has no number"
            yield "trial", "it is the trial time of `looks`, and growth leads to none"
            yield "slower_than", "speed is measured by the numbers of `progress`; growth has none"
        if self.looks == "off":
            yield "trial", "it is the trial time of `looks`, which is off"
        if not (self.errors or self.known_errors):
            yield "ignore", "no errors are looked for"
        for key, action in (("killswitch", "killswitch"), ("signal", "cancel")):
            if action not in self.on_stale:
                yield key, f"it is for `on_stale: [{action}]`"

    def run(self, ctx: Context) -> Report:
        """One finding about the job's name or the path, or one about each training if there are
        many.

        Also one about each further topic that was ever reported. Raises CannotTell if the queue
        cannot be read.
        """
        logs = {} if self.has_many_subjects else load_memory(ctx.memory).logs
        jobs = (
            self._list_running_jobs(ctx, before=not ctx.memory or bool(logs))
            if self.is_job_log
            else []
        )
        with LogReader(in_child=not ctx.one_shot, total_s=ctx.limit * READ_SHARE) as reader:
            if self.has_many_subjects:
                theirs = jobs_by_subject(self.watched_users, jobs)
                look = partial(self._observe_logs, reader)
                return look_at_each(
                    ctx, theirs, look, self._make_idle_finding(self.alert_subject), "logs"
                )
            # one job with this name does not prove that the list is complete
            if jobs and not ctx.one_shot:
                refuse_cut(ctx, logs)
            return self._observe_logs(reader, ctx, self.alert_subject, jobs)

    def jobs_of(self) -> frozenset[str] | None:
        """The users whose jobs squeue is asked for. None means everybody. Raises CannotTell."""
        return watched_users(self.watched_users) if self.is_job_log else frozenset()

    def watched_logs(self) -> list[str]:
        """Paths and patterns of the logs that only the job may write to."""
        return [*([self.path] if self.path else []), *self.metrics]

    def grants(self) -> Mapping[str, Limits | None]:
        """The actions that `on_stale` allows. To name an action there switches it on, within its
        own limits."""
        return dict.fromkeys(map(str, self.on_stale))

    @property
    def may_ask(self) -> bool:
        """Whether this configuration can request any action."""
        return bool(self.on_stale)

    @property
    def alert_subject(self) -> str:
        """The subject of the alert: the job's configured name, or the path.

        If many trainings are watched, it is the pattern that finds them.
        """
        found = self.match.pattern if self.match else ""
        return visible(str(self.job or found or ("" if self.is_job_log else self.path)))

    @property
    def is_job_log(self) -> bool:
        """Whether the log belongs to a job."""
        return bool(self.job or self.match or self.min_gpus or self.min_nodes)

    @property
    def has_many_subjects(self) -> bool:
        """Whether each training that is found is a subject. Otherwise the configured name or path
        is the subject."""
        return self.is_job_log and (not self.job or EVERYBODY in self.users)

    @property
    def watched_users(self) -> list[str]:
        """`users`, or everybody if only a size says which jobs are watched."""
        return self.users if self.users or self.job or self.match else [EVERYBODY]

    def _list_running_jobs(self, ctx: Context, *, before: bool) -> list[Job]:
        return running_jobs(
            ctx,
            self.job or "",
            self.watched_users,
            before=before,
            match=self.match,
            min_gpus=self.min_gpus,
            min_nodes=self.min_nodes,
        )

    def _observe_logs(
        self, reader: LogReader, ctx: Context, subject: str, jobs: Sequence[Job]
    ) -> Report:
        """Read the logs of one training, or of the path."""
        memory = Memory() if ctx.one_shot else load_memory(ctx.memory)
        one = LogPass(ctx, replace(self._make_plan(ctx, reader), subject=subject), memory)
        if self.is_job_log and not jobs:
            return one.report_idle(self._make_idle_finding(subject))
        return one.report_jobs([*jobs] or [None])

    def _make_idle_finding(self, subject: str) -> Finding:
        which = (
            "that fits"
            if subject != self.job and subject == self.alert_subject
            else "of exactly this name"
        )
        nothing = f"no job {which} runs, so there is no log to watch"
        return Finding(subject=subject, status=Status.OK, summary=nothing)

    def _refuse_jobs(self) -> None:
        if self.job and self.match:
            raise Invalid("`job` (exact) and `match` (regex) exclude each other")
        for key in ("min_gpus", "min_nodes"):
            if getattr(self, key) < 0:
                raise Invalid(f"`{key}` cannot be negative", key)

    def _refuse_path(self) -> None:
        path, symbols = self.path, has_symbols(self.path or "")
        if not path and not self.is_job_log:
            raise Invalid("a log check needs a `path`, or a `job` whose output is watched")
        if path and symbols and not self.is_job_log:
            raise Invalid(f"{path!r} depends on a job; name the `job`", "path")
        if path and not symbols and self.is_job_log and not self.job:
            raise Invalid(f"{path!r} is one log of many trainings; write %x or %j in it", "path")
        if path and not self.is_job_log and not path.startswith("/"):
            raise Invalid(f"{path!r} is no absolute path; begin it with /", "path")

    def _refuse_metrics(self) -> None:
        for number, path in enumerate(self.metrics):
            if not path.startswith("/"):
                raise Invalid(f"{path!r} is no absolute path; begin it with /", "metrics", number)
            if has_symbols(path) and not self.is_job_log:
                raise Invalid(f"{path!r} depends on a job; name the `job`", "metrics", number)
            if self.is_job_log and not self.job and not has_symbols(path):
                raise Invalid(
                    f"{path!r} is of one of many trainings; write %x or %j in it", "metrics", number
                )
        if self.metrics and self.progress == "growth":
            raise Invalid(
                "changes nothing with `progress: growth`, which looks at no step", "metrics"
            )

    def _make_plan(self, ctx: Context, reader: LogReader) -> LogPlan:
        known = merge_phases(self.phases)
        numbers = name_patterns(self.progress)
        loss = compile_by_line(self.loss) if self.loss else None
        finder = TroubleFinder(
            {name: compile_by_line(pattern) for name, pattern in self.errors.items()},
            self.ignore,
            self.known_errors,
        )
        return LogPlan(
            subject=self.alert_subject,
            source=LogSource(
                path=str(self.path) if self.path else None,
                patterns=LogPatterns(numbers, known, loss, finder),
                by_number=bool(numbers),
                auto=self.progress == "auto" and not self.metrics,
                metrics=tuple(map(str, self.metrics)),
                reader=reader,
            ),
            rules=StaleRules(
                stale_after=None if self.stale_after == "auto" else self.stale_after,
                startup=self.startup,
                by_number=bool(numbers or self.metrics),
                unseen=UNSEEN_METRICS if self.metrics else UNSEEN_LINE,
                allow=list_allowances(known),
                bounds=LimitBounds(floor=self.floor, ceiling=self.ceiling),
                joining=self.joining,
                one_look=ctx.one_shot,
            ),
            wishes=Thresholds(
                nan_after=self.nan_after, slower_than=self.slower_than, one_look=ctx.one_shot
            ),
            heartbeat=str(self.heartbeat or ""),
            ask_nodes=self.ask_nodes,
            looks=self.looks,
            trial=float(self.trial),
            checkpoints=self.checkpoints,
            learn_from=[*map(str, self.learn_from)] if self.job else [],
            means=ActionParams(
                names=tuple(self.on_stale),
                patterns={name: by_line_text(p.pattern) for name, p in numbers.items()},
                file=str(self.killswitch or ""),
                signal=self.signal or "",
                shared=self.has_many_subjects and not names_one_user(self.watched_users),
            ),
        )
