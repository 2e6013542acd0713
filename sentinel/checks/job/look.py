"""Checks one training: sorts its jobs, reads its files, and judges."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from sentinel.checks.job.action_requests import request_holds, request_revival
from sentinel.checks.job.done import (
    last_run,
)
from sentinel.checks.job.files import JobFiles
from sentinel.checks.job.judge import find_culprit_node, judge_training
from sentinel.checks.job.memory import (
    MAX_GONE_JOBS,
    EndedRun,
    GoneJob,
    Memory,
    with_submission,
)
from sentinel.checks.job.memory import SeenJob as Row
from sentinel.checks.job.queue import arrange_jobs, make_queue_context
from sentinel.checks.job.recall import END_RECORD_LAG_S
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.succession import find_maintenance, is_cancelled_by_owner
from sentinel.checks.job.view import TrainingView
from sentinel.checks.job.view_files import is_dead, list_unread, with_files
from sentinel.checks.text_child import TextReader
from sentinel.checks.users import own_user_name
from sentinel.core.clock import get_elapsed_s
from sentinel.core.cluster import Job, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest, Finding
from sentinel.core.ports import Context
from sentinel.proc import StuckProcess
from sentinel.slurm.node_states import flag_meaning
from sentinel.slurm.pending_reasons import explain_reason

LOOKUP_TIMEOUT_S = 5.0  # seconds for one question to a file system or a directory service
LOOKUPS_LIMIT_SHARE = 0.5  # share of the run's time limit for all these questions


class TrainingResult(Struct, frozen=True):
    """The result of checking a training."""

    finding: Finding  # The finding about the training.
    wishes: tuple[ActionRequest, ...]  # Actions that it requests.
    memory: Memory  # What to remember for the next run.


def find_growing_partitions(jobs: Sequence[Job], ctx: Context) -> frozenset[str]:
    """Partitions that are empty, or whose nodes come and go. If Slurm does not say, all of them.

    Slurm is asked only if a job waits because the partition has too few nodes.
    """
    asked = [job for job in jobs if explain_reason(job.reason).code == "PartitionConfig"]
    names = frozenset(name for job in asked for name in job.partition.split(","))
    if not names:
        return names
    try:
        sizes = ctx.slurm.partitions()
        empty = {name for name in names if not sizes.get(name)}
        nodes = ctx.slurm.nodes() if names - empty else ()
    except CannotTell:
        return names
    moving = {
        name
        for node in nodes
        if any(flag_meaning(flag).comes_and_goes for flag in node.flags)
        for name in node.partitions
    }
    return frozenset(empty | (names & moving))


class SubmitHosts:
    """Finds from which host a job was submitted. Each job is a separate question to Slurm, so there
    is a limit per run."""

    MAX_QUESTIONS = 5

    def __init__(self, ctx: Context) -> None:
        self._ctx, self._left = ctx, self.MAX_QUESTIONS

    def find_submit_host(self, job: Job) -> str:
        """The host. Empty if it is not known, or if the limit is reached."""
        if self._left <= 0 or self._ctx.one_shot:
            return ""
        self._left -= 1
        try:
            how = self._ctx.slurm.submission(job.id)
        except CannotTell:
            return ""
        return how.host if how else ""


class JobRound:
    """Facts that all trainings of one run share.

    mine: The watched jobs among all `jobs`.
    reader: The reader of the jobs' output.
    """

    def __init__(
        self,
        settings: JobSettings,
        ctx: Context,
        jobs: Sequence[Job],
        mine: Sequence[Job],
        reader: TextReader,
    ) -> None:
        self._reader = reader
        self._settings, self._ctx, self._jobs = settings, ctx, jobs
        self._around = make_queue_context(mine, jobs, find_growing_partitions(mine, ctx))
        often = settings.parse_restarts()
        self.window = often.window if often else 0.0

    def open_files(self, stuck: Mapping[str, StuckProcess]) -> JobFiles:
        """Open the file system. It remembers what hung in earlier runs."""
        total = self._ctx.limit * LOOKUPS_LIMIT_SHARE
        limit = min(LOOKUP_TIMEOUT_S, self._ctx.limit / 4)
        files = JobFiles(limit, total, stuck, shared=self._settings.many)
        files.reader = self._reader
        return files

    def build_view(
        self,
        subject: str,
        mine: Sequence[Job],
        memory: Memory,
        *,
        many: bool = False,
        ended: Sequence[EndedRun] = (),
    ) -> TrainingView:
        """The facts about a training, without those from its files. Its message goes to its user, so
        only runs of that user count."""
        last = last_run(memory)
        owner = last.seen.user if last else ""
        return TrainingView(
            subject=subject,
            now=self._ctx.now,
            queue=arrange_jobs(mine, memory, self._ctx.now, self._around),
            memory=memory,
            others=self._jobs,
            many=many,
            slurm_clusters=os.environ.get("SLURM_CLUSTERS", ""),
            reader=own_user_name(),
            ended=tuple(run for run in ended if run.user == owner),
        )

    def judge_view(self, view: TrainingView, files: JobFiles) -> TrainingResult:
        """Judge a training. Raises CannotTell if the decisive fact is not known."""
        view = with_files(self._settings, view, files, one_shot=self._ctx.one_shot)
        view = self._with_alive_submission(view)
        dead = is_dead(view.queue) and not view.finished
        if dead:
            view = self._with_circumstances(view, files.seconds_left > 0)
        since = (view.memory.dead or view.now) if dead else None
        view = structs.replace(
            view,
            memory=structs.replace(view.memory, dead=since),
            for_=self._ctx.for_,
            zone=self._ctx.zone,
        )
        finding = judge_training(self._settings, view)
        held, memory = request_holds(self._settings, view, finding)
        view = structs.replace(view, memory=memory)
        anew, memory = request_revival(self._settings, view, finding, find_culprit_node(view))
        return TrainingResult(finding, (*held, *anew), memory)

    def _with_submission(self, view: TrainingView, last: GoneJob) -> TrainingView:
        """Add how the job was submitted.

        Slurm is asked while slurmctld remembers the job. Later the stored answer is used. Options are
        those that it had when it ran: a time limit that was changed since would end the next job.
        """
        if (
            last.how is not None
            or not last.asked
            or get_elapsed_s(last.at, view.now) > END_RECORD_LAG_S
        ):
            return view
        how = self._read_submission(last.seen) if last.end else None
        earlier = last.seen.how
        how = structs.replace(how, options=earlier.options) if how and earlier else how or earlier
        if how is None:
            return view
        gone = tuple(structs.replace(g, how=how) if g is last else g for g in view.memory.gone)
        return structs.replace(view, memory=structs.replace(view.memory, gone=gone))

    def _with_alive_submission(self, view: TrainingView) -> TrainingView:
        """Add how a running job was submitted, for one job per run.

        Slurm may forget a job between two runs, so this cannot wait for its end.
        """
        rows = [s for s in view.memory.seen if s.state == "RUNNING"]
        new = next((s for s in rows if s.how is None), None)
        if view.many or self._ctx.one_shot or new is None or len(rows) > MAX_GONE_JOBS:
            return view
        how = self._read_submission(new)
        if how is None:
            return view
        return structs.replace(view, memory=with_submission(view.memory, new, how))

    def _read_submission(self, job: Row) -> Submission | None:
        try:
            return self._ctx.slurm.submission(job.id)
        except CannotTell:
            return None

    def _with_circumstances(self, view: TrainingView, has_time: bool) -> TrainingView:
        """Add what happened when it died: maintenance, or an action of sentinel. If time is left,
        also how each job was submitted."""
        last = last_run(view.memory)
        if last is None:
            return view
        for gone in (last, *list_unread(view.memory, last)) if has_time else ():
            view = self._with_submission(view, gone)
        try:
            where = find_maintenance(last, self._ctx.slurm.reservations(), view.now)
        except CannotTell:
            where = ""
        book = self._ctx.logbook
        done = book.records(last.seen.id, limit=10) if book and is_cancelled_by_owner(last) else ()
        ours = any(one.action == "cancel" and one.outcome.has_effect for one in done)
        return structs.replace(view, maintenance=where, ours=ours)
