"""One run of the check. It reads the log of every running job, remembers, judges and reports."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

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
from sentinel.checks.log.closer_look import (
    LOOK_LIMIT_SHARE,
    apply_closer_look,
    may_look_at_nodes,
    take_closer_look,
)
from sentinel.checks.log.closer_look_state import (
    CloserLookState,
    compute_due_in_s,
    measure_quiet_s,
    record_log_look,
)
from sentinel.checks.log.file_offset import ReadPosition
from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.gather import list_job_nodes, read_earlier_logs
from sentinel.checks.log.judge import LogVerdict, StaleRules, judge_log
from sentinel.checks.log.ledger_rows import track_runs
from sentinel.checks.log.log_cells import show_log
from sentinel.checks.log.log_coverage import compute_coverage, make_job_key, make_size_key
from sentinel.checks.log.log_findings import WatchedLog
from sentinel.checks.log.log_state import LogObservation, LogState
from sentinel.checks.log.memory import MAX_KEPT_POSITIONS, MAX_KEPT_SIZES, Memory
from sentinel.checks.log.metric_files import observe_sources
from sentinel.checks.log.plan import LogPlan
from sentinel.checks.log.progress import begin_state, update_state
from sentinel.checks.log.requests import (
    ActionRequests,
    HangContext,
    find_culprit_node,
    is_request_due,
    make_requests,
)
from sentinel.checks.log.resume_commands import list_resume_commands
from sentinel.checks.log.topics import judge_topics
from sentinel.checks.log.wish_watch import follow_wish
from sentinel.checks.log.witness import Testimony, merge_testimonies
from sentinel.checks.turns import take_turns
from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import ActingCommand
from sentinel.core.model import Coverage, Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.shown import SubjectCells
from sentinel.slurm.filename_patterns import fill_symbols, whose_path
from sentinel.slurm.job_states import is_leader
from sentinel.user_files.whose import Whose

LOOKUP_LIMIT_S = 5.0  # seconds for one question to a file system
RISK_LIMIT_S = 10.0  # seconds for all questions about checkpoints
FILES_LIMIT_SHARE = 0.7  # share of the run's time limit for reading files
MIN_RERUN_S = 5.0  # seconds at least until an extra run that looks closer


class LogPass:
    """One run of the check. `memory` is the former memory. The report contains the new one."""

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
        self._again = inf  # a value of time.monotonic

    def report_idle(self, finding: Finding) -> Report:
        """The report if no job runs. What was learned is kept, with read positions."""
        tracked = track_runs(self._ctx, self._plan.subject, self._memory, ())
        rest = replace(
            self._memory,
            logs={},
            beats={},
            told=(),
            places=self._merge_positions({}),
            trial=self._trial,
            suspicions={},
            early=self._early,
            tracked=tracked.memory,
        )
        none = Coverage(of="logs", meant=0, excused="no such job is running")
        memory = self._export_memory(rest)
        return Report(findings=(finding,), coverage=none, memory=memory, ledger=tracked.rows)

    def report_jobs(self, jobs: Sequence[Job | None]) -> Report:
        """The report about all jobs. The worst finding stands for the subject or a topic."""
        watched = {make_job_key(job): self._watch_job(job) for job in self._order_by_turns(jobs)}
        seen = [watched[make_job_key(job)] for job in jobs]
        tracked = track_runs(self._ctx, self._plan.subject, self._memory, seen)
        seen = tracked.add_topics(seen)
        findings, told = log_findings.make_findings(
            self._plan.subject, seen, self._memory.told, self._files
        )
        logs = {make_job_key(one.sight.job): one.seen for one in seen}
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
            tracked=tracked.memory,
        )
        return Report(
            findings=findings,
            ledger=tracked.rows,
            coverage=compute_coverage(seen),
            watched_jobs=tuple(job.job_id for job in jobs if job),
            requests=tuple(request for made in wishes for request in made.requests),
            samples=log_findings.make_samples(self._plan.subject, seen),
            shown=self._show_logs(seen),
            memory=self._export_memory(memory),
            letters=()
            if self._ctx.one_shot
            else log_findings.list_letters(self._plan.subject, seen),
            again=max(1.0, self._again - time.monotonic()) if self._again < inf else None,
        )

    def _show_logs(self, seen: Sequence[WatchedLog]) -> dict[str, SubjectCells]:
        """Show the cells of the logs, for a command that checks once."""
        if not self._ctx.one_shot or len(seen) != 1:
            return {}
        return {self._plan.subject: show_log(seen[0], self._plan.source.patterns, self._files)}

    def _order_by_turns(self, jobs: Sequence[Job | None]) -> Iterator[Job | None]:
        """Users take turns. For each user, the log that was read longest ago comes first."""

        def last_look(job: Job | None) -> int:
            before = self._memory.logs.get(make_job_key(job))
            return before.looked.wall if before else 0

        return take_turns(sorted(jobs, key=last_look), lambda job: job.user if job else "")

    def _watch_job(self, job: Job | None) -> WatchedLog:
        before = self._memory.logs.get(make_job_key(job)) or self._inherit_positions(job)
        look = observe_sources(self._ctx, job, before, self._plan.source, self._files)
        before = begin_state(look, before)
        rules, size = self._select_rules(look), make_size_key(job)
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
        own = not self._plan.source.path
        wish = follow_wish(self._plan.subject, look, seen, rules, learned, own_output=own)
        seen = replace(seen, wish=wish.state)
        one = WatchedLog(
            sight=look,
            seen=seen,
            wish=wish,
            verdict=log_findings.apply_testimony(verdict, testimony),
            testimony=testimony if verdict.hung else Testimony(),
            asides=tuple(judge_topics(seen, learned, self._wishes, names)),
            peers=names,
            at_risk=self._describe_work_at_risk(look, verdict),
            slower="; ".join(filter(None, (self._describe_slowdown(seen, learned), doubt.behind))),
            asked_early=doubt.asked,
        )
        return replace(one, onward=self._find_resume_commands(one, doubt))

    def _find_resume_commands(
        self, one: WatchedLog, doubt: CloserLookState
    ) -> tuple[ActingCommand, ...]:
        """Commands to end it and to continue, without the culprit. Slurm is asked once per hang."""
        job, node = one.sight.job, find_culprit_node(one)
        if not (job and one.verdict.hung and one.verdict.status is Status.CRITICAL):
            return ()
        if doubt.how is None:
            with suppress(CannotTell):
                doubt = replace(doubt, how=self._ctx.slurm.submission(job.id))
            self._suspicions[make_job_key(job)] = doubt
        waiting = self._list_waiting_jobs(job)
        return list_resume_commands(
            job, node, doubt.how, waiting, doubt.fault if node in doubt.nodes else ""
        )

    def _learn_from_earlier(self, look: LogObservation) -> TrainingBaseline:
        """Learn from the logs of earlier jobs, before anything was learned. This is done once."""
        learned, plan = TrainingBaseline(), self._plan
        whose = Whose(literal=True)  # of any user, because only durations are taken from it
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
        """Take a closer look if the log is quiet for unusually long. This notifies nobody. The next
        look comes before the next scheduled run: a hang is reported within two minutes."""
        ctx, job, key = self._ctx, look.job, make_job_key(look.job)
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
                again=lambda: observe_sources(ctx, job, seen, self._plan.source, self._files),
                limit=LOOK_LIMIT_SHARE * ctx.limit,
            )
            due = compute_due_in_s(doubt, seen, learned, look.at)
            # if the nodes did not answer now, they will not in five seconds either
            if due > 0 or doubt is not before_it:
                self._again = min(self._again, max(time.monotonic() + MIN_RERUN_S, began + due))
        self._suspicions[key] = doubt
        return doubt

    def _apply_early_verdict(
        self, verdict: LogVerdict, doubt: CloserLookState, seen: LogState
    ) -> LogVerdict:
        """Apply the result of a closer look. During the trial it is only recorded."""
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
        """Describe a slowdown. During the trial it is only recorded, and reported once after it."""
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
        """The rules for this log. A number that was found automatically is judged."""
        found = bool(look.reading and look.reading.number)
        return replace(self._plan.rules, by_number=self._plan.rules.by_number or found)

    def _describe_work_at_risk(self, look: LogObservation, verdict: LogVerdict) -> str:
        """The work at risk until the training stood still. A hanging job does no work."""
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
        """The read positions for a job that is new here, from another job with the same log."""
        now, path = self._ctx.now, self._plan.source.path
        if job is None or not path or not self._memory.places:
            return None
        return LogState(
            path="", first=now, looked=now, grown=now, places=self._memory.places, started=-1
        )

    def _check_heartbeat(self, job: Job | None, seen: LogState, limit: float) -> Testimony:
        """Read the heartbeat in every run, so that its age is known."""
        if not self._plan.heartbeat:
            return Testimony()
        pattern, before = self._plan.heartbeat, self._memory.beats.get(make_job_key(job))
        whose = whose_path(pattern, job)
        try:
            pattern = fill_symbols(pattern, job) if job else pattern
            beat = find_heartbeat(self._files, pattern, whose, before, self._ctx.now)
        except CannotTell as error:
            return Testimony(words=str(error))
        if beat:
            self._beats[make_job_key(job)] = beat
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
        """Request actions. A command that checks once requests none, because it changes nothing."""
        if (
            self._ctx.one_shot
            or not self._plan.means.names
            or not is_request_due(one, self._ctx.now)
        ):
            asked = one.seen.asked if one.verdict.hung else None
            return ActionRequests(job=make_job_key(one.sight.job), asked=asked)
        tail, waiting = (
            log_findings.read_last_lines(one, self._files),
            self._list_waiting_jobs(one.sight.job),
        )
        about = HangContext(subject=self._plan.subject, tail=tail, waiting=waiting)
        return make_requests(one, self._plan.means, about, self._ctx.now)

    def _list_waiting_jobs(self, job: Job | None) -> tuple[Job, ...]:
        """The pending jobs of the same name and user, which would start next."""
        if job is None:
            return ()
        return tuple(
            other
            for other in self._ctx.slurm.jobs()
            if (other.name, other.user, other.state) == (job.name, job.user, "PENDING")
            and is_leader(other)
        )

    def _select_kept_baselines(self, jobs: Sequence[Job | None]) -> dict[str, TrainingBaseline]:
        """The baselines of every running size, and of the newest other sizes."""
        current = {make_size_key(job) for job in jobs}
        others = [size for size in self._learned if size not in current][-MAX_KEPT_SIZES:]
        return {s: one for s, one in self._learned.items() if s in current or s in others}

    def _merge_positions(self, logs: dict[str, LogState]) -> dict[str, ReadPosition]:
        """How far each file was read, newest last, in this pass and the passes before."""
        earlier = {**self._memory.places}
        for seen in (*self._memory.logs.values(), *logs.values()):
            for path, place in seen.places.items():
                earlier.pop(path, None)
                earlier[path] = place
        return dict(list(earlier.items())[-MAX_KEPT_POSITIONS:])

    def _export_memory(self, memory: Memory) -> dict[str, Any] | None:
        return None if self._ctx.one_shot else to_builtins(memory)
