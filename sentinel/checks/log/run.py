"""One run of the check: every running job's log looked at, remembered, judged and told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from shlex import quote
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.actions.job_requests import make_exclude_command, make_job_target
from sentinel.checks.log import log_findings, slowdown
from sentinel.checks.log.ask import (
    HeartbeatFile,
    ask_flight_recorder,
    ask_node_witnesses,
    find_heartbeat,
    judge_heartbeat,
    resolve_peer_nodes,
)
from sentinel.checks.log.cadence import TrainingBaseline
from sentinel.checks.log.closer_look_state import (
    LOOK_LIMIT_SHARE,
    CloserLookState,
    apply_closer_look,
    compute_due_in_s,
    may_look_at_nodes,
    measure_quiet_s,
    record_log_look,
    take_closer_look,
)
from sentinel.checks.log.file_offset import ReadPosition
from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.gather import (
    MAX_JOB_FILES,
    LogSource,
    list_job_nodes,
    observe_log,
    read_earlier_logs,
)
from sentinel.checks.log.judge import LogVerdict, StaleRules, judge_log
from sentinel.checks.log.log_findings import WatchedLog
from sentinel.checks.log.memory import MAX_KEPT_POSITIONS, MAX_KEPT_SIZES, Memory
from sentinel.checks.log.progress import LogObservation, LogState, begin_state, update_state
from sentinel.checks.log.requests import (
    ActionParams,
    ActionRequests,
    HangContext,
    find_culprit_node,
    is_request_due,
    make_requests,
)
from sentinel.checks.log.settings import CloserLookMode
from sentinel.checks.log.topics import Thresholds, judge_topics
from sentinel.checks.log.witness import Testimony, merge_testimonies
from sentinel.checks.users import own_user_name
from sentinel.core.checkpoints import CheckpointPlace
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import Coverage, Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.text import shortened, visible
from sentinel.slurm.job_states import is_leader
from sentinel.slurm.submission import resubmit_shell
from sentinel.user_files.whose import Whose

LOOKUP_LIMIT_S = 5.0  # seconds for one question to a file system
RISK_LIMIT_S = 10.0  # seconds for all questions about checkpoints
ABSENT_EXCUSE = f"not there, or beyond the {MAX_JOB_FILES} files of a job that are looked at"
FILES_LIMIT_SHARE = 0.7  # of the run's limit that looking at files may take
MIN_RERUN_S = 5.0  # seconds at least between two runs of which the second looks closer


class LogPlan(Struct, frozen=True, kw_only=True):
    """The check's settings in the form that a run needs."""

    subject: str
    source: LogSource
    rules: StaleRules
    wishes: Thresholds
    heartbeat: str = ""
    ask_nodes: bool = True
    looks: CloserLookMode = "off"
    trial: float = 0.0
    checkpoints: CheckpointPlace | None = None
    learn_from: Sequence[str] = ()
    means: ActionParams = ActionParams()


class LogPass:
    """One run. `memory` is what was remembered before; the report carries what is now."""

    def __init__(self, ctx: Context, plan: LogPlan, memory: Memory) -> None:
        self._ctx, self._plan, self._memory = ctx, plan, memory
        self._deadline = time.monotonic() + ctx.limit * FILES_LIMIT_SHARE
        self._files = LogFiles(
            min(LOOKUP_LIMIT_S, ctx.limit / 4), ctx.limit * FILES_LIMIT_SHARE, memory.stuck
        )
        self._learned = dict(memory.learned)
        self._trial = memory.get_pace_trial(ctx.now)
        self._early = memory.get_early_trial(ctx.now, plan.trial)
        self._suspicions: dict[str, CloserLookState] = {}
        self._wishes = replace(plan.wishes, silent=self._trial.is_silent(ctx.now))
        self._beats: dict[str, HeartbeatFile] = {}
        self._again = inf  # of time.monotonic

    def report_idle(self, finding: Finding) -> Report:
        """No job runs: what was learned stays, and so do the places in logs that go on."""
        rest = replace(
            self._memory,
            logs={},
            beats={},
            told=(),
            places=self._merge_positions({}),
            trial=self._trial,
            suspicions={},
            early=self._early,
        )
        none = Coverage(of="logs", meant=0, excused="no such job is running")
        return Report(findings=(finding,), coverage=none, memory=self._export_memory(rest))

    def report_jobs(self, jobs: Sequence[Job | None]) -> Report:
        """All of them: the worst speaks for the subject, and for each further topic."""
        seen = [self._watch_job(job) for job in jobs]
        findings, told = log_findings.make_findings(
            self._plan.subject, seen, self._memory.told, self._files
        )
        logs = {_make_job_key(one.sight.job): one.seen for one in seen}
        wishes = [self._request_actions(one) for one in seen]
        for made in wishes:
            logs[made.job] = replace(logs[made.job], asked=made.asked)
            if made.early and made.requests:
                doubt = self._suspicions[made.job]
                self._suspicions[made.job] = replace(doubt, asked=True)
        memory = Memory(
            logs=logs,
            stuck=self._files.hanging_by_path,
            learned=self._select_kept_baselines(jobs),
            places=self._merge_positions(logs),
            beats=self._beats,
            told=told,
            trial=self._trial,
            suspicions=self._suspicions,
            early=self._early,
        )
        return Report(
            findings=findings,
            coverage=_compute_coverage(seen),
            requests=tuple(request for made in wishes for request in made.requests),
            samples=log_findings.make_samples(self._plan.subject, seen),
            memory=self._export_memory(memory),
            again=max(1.0, self._again - time.monotonic()) if self._again < inf else None,
        )

    def _watch_job(self, job: Job | None) -> WatchedLog:
        before = self._memory.logs.get(_make_job_key(job)) or self._inherit_positions(job)
        look = observe_log(self._ctx, job, before, self._plan.source, self._files)
        before = begin_state(look, before)
        rules, size = self._select_rules(look), _make_size_key(job)
        learned = self._learned.get(size) or self._learn_from_earlier(look)
        seen, learned = update_state(look, before, learned, rules.by_number, self._ctx.due)
        self._learned = {**{k: v for k, v in self._learned.items() if k != size}, size: learned}
        verdict = judge_log(look, seen, rules, learned)
        doubt = self._look_closer(look, seen, before, learned)
        verdict = self._apply_early_verdict(verdict, doubt, seen)
        nodes = list_job_nodes(job) if verdict.hung or seen.troubles else ()
        testimony = self._check_heartbeat(job, seen, verdict.limit.seconds if verdict.limit else 0)
        if verdict.early:
            testimony = Testimony(nodes=doubt.nodes, confirms=True)
        elif verdict.hung:
            closer = Testimony(nodes=doubt.nodes, confirms=bool(doubt.told))
            testimony = merge_testimonies(self._question_recorder(look, verdict.quiet), testimony)
            testimony = merge_testimonies(testimony, closer)
            testimony = merge_testimonies(testimony, self._question_nodes(job, nodes, seen))
        names = resolve_peer_nodes(
            self._files, sorted({t.peer for t in seen.troubles} - {""}), nodes
        )
        one = WatchedLog(
            sight=look,
            seen=seen,
            verdict=log_findings.apply_testimony(verdict, testimony),
            testimony=testimony if verdict.hung else Testimony(),
            asides=tuple(judge_topics(seen, learned, self._wishes, names)),
            peers=names,
            at_risk=self._describe_work_at_risk(look, verdict),
            slower="; ".join(filter(None, (self._describe_slowdown(seen, learned), doubt.behind))),
            asked_early=doubt.asked,
        )
        return replace(one, onward=self._find_resume_commands(one, doubt))

    def _find_resume_commands(self, one: WatchedLog, doubt: CloserLookState) -> tuple[str, ...]:
        """What continues without the culprit; how it was submitted is asked once a hang."""
        job, node = one.sight.job, find_culprit_node(one)
        if not (job and node and one.verdict.hung and one.verdict.status is Status.CRITICAL):
            return ()
        if doubt.how is None:
            with suppress(CannotTell):
                doubt = replace(doubt, how=self._ctx.slurm.submission(job.id))
            self._suspicions[_make_job_key(job)] = doubt
        waiting = self._list_waiting_jobs(job)
        return list_resume_commands(
            job, node, doubt.how, waiting, doubt.fault if node in doubt.nodes else ""
        )

    def _learn_from_earlier(self, look: LogObservation) -> TrainingBaseline:
        """What logs of earlier jobs show, before anything was learned; asked once."""
        learned, plan = TrainingBaseline(), self._plan
        whose = Whose(literal=True)  # of whichever user; only how long things took is taken over
        texts = read_earlier_logs(plan.source, plan.learn_from, look.looks, self._files, whose)
        reader = plan.source.reader
        for path, text, reads, whole in texts:
            with suppress(CannotTell):
                assert look.job
                learned = reader.learn_from_log(path, text, reads, look.job, learned, whole)
        return learned

    def _look_closer(
        self, look: LogObservation, seen: LogState, before: LogState, learned: TrainingBaseline
    ) -> CloserLookState:
        """A closer look, where the log is quiet for unusually long; nobody is woken by it. The next one
        does not wait for the next run in its time: a hang has to be told within two minutes."""
        ctx, job, key = self._ctx, look.job, _make_job_key(look.job)
        doubt = self._suspicions[key] = self._memory.suspicions.get(key, CloserLookState())
        if job is None or look.error or ctx.one_shot or not look.looks:
            return doubt
        doubt = record_log_look(doubt, look, seen, before.looked)
        remote, left = ctx.remote, self._deadline - time.monotonic()
        if (
            left >= LOOK_LIMIT_SHARE * ctx.limit
            and remote
            and may_look_at_nodes(self._plan.looks, job, remote)
        ):
            began, before_it = time.monotonic(), doubt
            doubt = take_closer_look(
                doubt,
                look,
                seen,
                learned,
                remote=remote,
                nodes=list_job_nodes(job),
                again=lambda: observe_log(ctx, job, seen, self._plan.source, self._files),
                limit=LOOK_LIMIT_SHARE * ctx.limit,
            )
            due = compute_due_in_s(doubt, seen, learned, look.at)
            if due > 0 or doubt is not before_it:  # who could not look now cannot in five seconds
                self._again = min(self._again, max(time.monotonic() + MIN_RERUN_S, began + due))
        self._suspicions[key] = doubt
        return doubt

    def _apply_early_verdict(
        self, verdict: LogVerdict, doubt: CloserLookState, seen: LogState
    ) -> LogVerdict:
        """While it is tried out it is only noted, and whether the limit said so too; what the limit
        tells has its words already."""
        now = self._ctx.now
        if doubt.told and self._early.is_silent(now):
            moved = max((mark.since for mark in seen.marks.values()), key=lambda at: at.wall)
            also = "the limit told it too" if verdict.hung else "the limit did not"
            self._early = self._early.note_would_tell(moved, f"{doubt.told} ({also})")
            if not verdict.hung:
                aside = self._early.mark_untold(doubt.told, now)
                return replace(verdict, summary=f"{verdict.summary}; {aside}")
        return apply_closer_look(verdict, doubt, measure_quiet_s(doubt, seen, now))

    def _describe_slowdown(self, seen: LogState, learned: TrainingBaseline) -> str:
        """While it is tried out it is only noted, then told once for all that it would have been."""
        pace, now = learned.pace, self._ctx.now
        told = slowdown.describe_slowdown(pace, now, seen.nodes) if pace.job == seen.run_key else ""
        if not self._trial.is_silent(now):
            tried = (
                self._trial.describe_trial(now),
                self._early.describe_trial(now, "the closer look at nodes"),
            )
            return "; ".join(filter(None, (told, *tried)))
        self._trial = self._trial.note_would_tell(pace.since, told)
        return ""

    def _select_rules(self, look: LogObservation) -> StaleRules:
        """A log whose number was found out is judged by it."""
        found = bool(look.reading and look.reading.number)
        return replace(self._plan.rules, by_number=self._plan.rules.by_number or found)

    def _describe_work_at_risk(self, look: LogObservation, verdict: LogVerdict) -> str:
        """Counted until it stood still: what a hung job does is no work."""
        where, left = self._plan.checkpoints, self._deadline - time.monotonic()
        if where is None or not verdict.hung:
            return ""
        from sentinel.checks.checkpoint.risk import describe_work_at_risk

        return describe_work_at_risk(
            where,
            self._ctx.now,
            max(0.0, look.job_age_s - verdict.quiet) if look.job_age_s < inf else None,
            user=look.job.user if look.job else "",
            limit=max(1.0, min(RISK_LIMIT_S, left)),
            ended=shift_instant(self._ctx.now, -verdict.quiet),
            stuck=self._files.hanging_by_path,
        )

    def _inherit_positions(self, job: Job | None) -> LogState | None:
        """For a job that is new here: how far its log was read when another one wrote it."""
        now, path = self._ctx.now, self._plan.source.path
        if job is None or not path or not self._memory.places:
            return None
        return LogState(
            path="", first=now, looked=now, grown=now, places=self._memory.places, started=-1
        )

    def _check_heartbeat(self, job: Job | None, seen: LogState, limit: float) -> Testimony:
        """The heartbeat is looked at each time: its age is only known from one look to the next."""
        if not self._plan.heartbeat:
            return Testimony()
        from sentinel.slurm.filename_patterns import fill_symbols, whose_path

        pattern, before = self._plan.heartbeat, self._memory.beats.get(_make_job_key(job))
        whose = whose_path(pattern, job)
        try:
            pattern = fill_symbols(pattern, job) if job else pattern
            beat = find_heartbeat(self._files, pattern, whose, before, self._ctx.now)
        except CannotTell as error:
            return Testimony(words=str(error))
        if beat:
            self._beats[_make_job_key(job)] = beat
        return judge_heartbeat(beat, before is not None, self._ctx.now, limit)

    def _question_recorder(self, look: LogObservation, quiet: float) -> Testimony:
        left = self._deadline - time.monotonic()
        if not (self._plan.ask_nodes and look.job) or left < LOOKUP_LIMIT_S:
            return Testimony()
        return ask_flight_recorder(
            look.shown_path, look.job, quiet, self._ctx.now, LOOKUP_LIMIT_S / 2
        )

    def _question_nodes(self, job: Job | None, nodes: Sequence[str], seen: LogState) -> Testimony:
        remote, left = self._ctx.remote, self._deadline - time.monotonic()
        if not (self._plan.ask_nodes and remote and job and nodes) or left < 1:
            return Testimony()
        try:
            sluids = self._ctx.slurm.sluids()
        except CannotTell:
            sluids = {}
        return ask_node_witnesses(
            remote, nodes, job, sluids, phase=seen.phase is not None, limit=left
        )

    def _request_actions(self, one: WatchedLog) -> ActionRequests:
        """Nothing for a one-shot: it changes nothing."""
        if (
            self._ctx.one_shot
            or not self._plan.means.names
            or not is_request_due(one, self._ctx.now)
        ):
            asked = one.seen.asked if one.verdict.hung else None
            return ActionRequests(job=_make_job_key(one.sight.job), asked=asked)
        tail, waiting = (
            log_findings.read_last_lines(one, self._files),
            self._list_waiting_jobs(one.sight.job),
        )
        about = HangContext(subject=self._plan.subject, tail=tail, waiting=waiting)
        return make_requests(one, self._plan.means, about, self._ctx.now)

    def _list_waiting_jobs(self, job: Job | None) -> tuple[Job, ...]:
        """What would start next: pending jobs of that name and user."""
        if job is None:
            return ()
        return tuple(
            other
            for other in self._ctx.slurm.jobs()
            if (other.name, other.user, other.state) == (job.name, job.user, "PENDING")
            and is_leader(other)
        )

    def _select_kept_baselines(self, jobs: Sequence[Job | None]) -> dict[str, TrainingBaseline]:
        """What is known of every size that runs, and of the newest other ones."""
        current = {_make_size_key(job) for job in jobs}
        others = [size for size in self._learned if size not in current][-MAX_KEPT_SIZES:]
        return {s: one for s, one in self._learned.items() if s in current or s in others}

    def _merge_positions(self, logs: dict[str, LogState]) -> dict[str, ReadPosition]:
        """How far each file was read, the newest last, of this pass and of those before."""
        earlier = {**self._memory.places}
        for seen in (*self._memory.logs.values(), *logs.values()):
            for path, place in seen.places.items():
                earlier.pop(path, None)
                earlier[path] = place
        return dict(list(earlier.items())[-MAX_KEPT_POSITIONS:])

    def _export_memory(self, memory: Memory) -> dict[str, Any] | None:
        return None if self._ctx.one_shot else to_builtins(memory)


def _compute_coverage(watched: Sequence[WatchedLog]) -> Coverage:
    """A log that could be looked at was seen, be it missing; of one file per node those that are
    there, since Slurm's own %N is the first node alone (sbatch(1))."""
    meant, seen, excused = list[str](), list[str](), ABSENT_EXCUSE
    for one in watched:
        log, now = _make_job_key(one.sight.job) or one.sight.path, one.sight
        files = now.meant if len(now.meant) > 1 and not now.error else (log,)
        meant += files
        seen += () if now.error else now.looks if len(files) > 1 and now.looks else files
        excused = "" if now.error else excused
    return covered("logs", meant, seen, excused)


def _make_size_key(job: Job | None) -> str:
    """Under which what was learned is kept: on more nodes it is another training."""
    return str(job.node_count if job else 0)


def _make_job_key(job: Job | None) -> str:
    return job.job_id if job else ""


# How a training that hangs goes on without the node that holds it up: commands for people. Pure.
#
# Only where one node is the culprit. Nothing here starts a second training beside the first: what
# is submitted waits for the end of the job that hangs, and where a next one is queued none is
# submitted.


MAX_SHOWN_JOBS = 3
"""Waiting jobs that are shown: an alert has room for few commands."""
MAX_REASON_CHARS = 160
"""Characters of a drain's reason."""

_ADMIN_COMMENT = "  # for an administrator; if you are none, send them this line"


def list_resume_commands(
    job: Job, node: str, how: Submission | None, waiting: Sequence[Job], fault: str = ""
) -> tuple[str, ...]:
    """Commands in their order. `waiting`: jobs that go on after it; `fault`: what is wrong with the
    node itself, without which nobody is asked to drain it."""
    owner = "" if job.user == own_user_name() else f"  # as {visible(job.user)}"
    if waiting:
        lines = [
            " ".join(map(quote, make_exclude_command(make_job_target(j), j.exclude, node)))
            for j in waiting[:MAX_SHOWN_JOBS]
        ]
    else:
        again = resubmit_shell(how, node, f"afterany:{job.id}") if how else ""
        lines = [again] if again.isprintable() and again else []
    if lines:
        lines = [f"{line}{owner}" for line in (*lines, f"scancel {make_job_target(job)}")]
    if fault:
        why = quote(shortened(visible(f"job {job.id} hung: {fault}"), MAX_REASON_CHARS))
        lines.append(f"scontrol update NodeName={node} State=DRAIN Reason={why}{_ADMIN_COMMENT}")
    return tuple(lines)
