"""One training looked at: its jobs arranged, the files asked, judged."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from sentinel.actions.job_requests import make_job_request
from sentinel.checks.job import rules
from sentinel.checks.job.done import (
    find_proof_of_finish,
    find_proof_of_success,
    get_proof_viewer,
    last_run,
)
from sentinel.checks.job.ends import get_end_instant, get_run_seconds
from sentinel.checks.job.files import JobFiles
from sentinel.checks.job.judge import find_culprit_node, judge_training
from sentinel.checks.job.memory import (
    MAX_GONE_JOBS,
    MAX_JOBS,
    GoneJob,
    JobRevival,
    Memory,
    with_submission,
)
from sentinel.checks.job.memory import SeenJob as Row
from sentinel.checks.job.output import (
    find_error_line,
    find_last_step,
    get_stdout_path,
    is_clean,
    make_excerpt,
)
from sentinel.checks.job.queue import JobQueue, TrainingView, arrange_jobs, make_queue_context
from sentinel.checks.job.recall import END_RECORD_LAG_S
from sentinel.checks.job.rules import find_restart_storm
from sentinel.checks.job.settings import DAY_S, JobSettings
from sentinel.checks.job.succession import find_maintenance, is_cancelled_by_owner
from sentinel.core.clock import get_elapsed_s
from sentinel.core.cluster import Job, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.ports import Context
from sentinel.core.text import shortened, visible_lines
from sentinel.proc import StuckProcess
from sentinel.slurm.job_states import state_meaning
from sentinel.slurm.node_states import flag_meaning
from sentinel.slurm.pending_reasons import explain_reason
from sentinel.slurm.submission import resubmit_argv
from sentinel.user_files.files import OlderThanAsked
from sentinel.user_files.whose import Whose

LOOKUP_TIMEOUT_S = 5.0  # seconds for one question to a file system or a directory service
LOOKUPS_LIMIT_SHARE = 0.5  # of the run's limit that all of these may take


class TrainingResult(Struct, frozen=True):
    """What a look at a training came to."""

    finding: Finding
    wishes: tuple[ActionRequest, ...]
    memory: Memory


def find_growing_partitions(jobs: Sequence[Job], ctx: Context) -> frozenset[str]:
    """Of the partitions of jobs that find too few nodes there those that are empty, or whose nodes
    come and go; all of them where Slurm does not say. It is asked only where a job waits for that."""
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
    """Tells from which host a job was submitted, for a few jobs a run: each is a question."""

    MAX_QUESTIONS = 5

    def __init__(self, ctx: Context) -> None:
        self._ctx, self._left = ctx, self.MAX_QUESTIONS

    def find_submit_host(self, job: Job) -> str:
        """The host; empty where it is not known, or too many were asked for."""
        if self._left <= 0 or self._ctx.one_shot:
            return ""
        self._left -= 1
        try:
            how = self._ctx.slurm.submission(job.id)
        except CannotTell:
            return ""
        return how.host if how else ""


class JobRound:
    """What all trainings of one run share; `mine` are their jobs among all the `jobs`."""

    def __init__(
        self, settings: JobSettings, ctx: Context, jobs: Sequence[Job], mine: Sequence[Job]
    ) -> None:
        self._settings, self._ctx, self._jobs = settings, ctx, jobs
        self._around = make_queue_context(mine, jobs, find_growing_partitions(mine, ctx))
        often = settings.parse_restarts()
        self.window = often.window if often else 0.0

    def open_files(self, stuck: Mapping[str, StuckProcess]) -> JobFiles:
        """The file system, with what hangs there since earlier runs."""
        return JobFiles(
            min(LOOKUP_TIMEOUT_S, self._ctx.limit / 4), self._ctx.limit * LOOKUPS_LIMIT_SHARE, stuck
        )

    def build_view(
        self, subject: str, mine: Sequence[Job], memory: Memory, *, many: bool = False
    ) -> TrainingView:
        """What is known of a training before its files are looked at."""
        return TrainingView(
            subject=subject,
            now=self._ctx.now,
            queue=arrange_jobs(mine, memory, self._ctx.now, self._around),
            memory=memory,
            others=self._jobs,
            many=many,
            slurm_clusters=os.environ.get("SLURM_CLUSTERS", ""),
        )

    def judge_view(self, view: TrainingView, files: JobFiles) -> TrainingResult:
        """The judgement. Raises CannotTell where the one thing that decides cannot be seen."""
        view = with_files(self._settings, view, files, one_shot=self._ctx.one_shot)
        view = self._with_alive_submission(view)
        dead = is_dead(view.queue) and not view.finished
        if dead:
            view = self._with_circumstances(view)
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
        """How it was submitted: asked while slurmctld remembers it, else as it was known before."""
        if (
            last.how is not None
            or not last.asked
            or get_elapsed_s(last.at, view.now) > END_RECORD_LAG_S
        ):
            return view
        how = self._read_submission(last.seen) if last.end else None
        how = how or last.seen.how
        if how is None:
            return view
        gone = tuple(structs.replace(g, how=how) if g is last else g for g in view.memory.gone)
        return structs.replace(view, memory=structs.replace(view.memory, gone=gone))

    def _with_alive_submission(self, view: TrainingView) -> TrainingView:
        """How what runs was submitted, one job a look: passes may be farther apart than Slurm's
        memory of a job is long."""
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

    def _with_circumstances(self, view: TrainingView) -> TrainingView:
        """What else was going on when it died: maintenance, or an action of sentinel's own."""
        last = last_run(view.memory)
        if last is None:
            return view
        view = self._with_submission(view, last)
        try:
            where = find_maintenance(last, self._ctx.slurm.reservations(), view.now)
        except CannotTell:
            where = ""
        book = self._ctx.logbook
        done = book.records(last.seen.id, limit=10) if book and is_cancelled_by_owner(last) else ()
        ours = any(one.action == "cancel" and one.outcome.has_effect for one in done)
        return structs.replace(view, maintenance=where, ours=ours)


# What a run asks the file system for: the end of a training, the last lines of a job.


LINES, WIDTH, BYTES = 20, 300, 2**17  # of a dead job's output


def with_files(
    settings: JobSettings, view: TrainingView, files: JobFiles, *, one_shot: bool
) -> TrainingView:
    """The view with what the files say. Raises CannotTell where that alone would decide."""
    view = _with_kill_switch(settings, view, files)
    view = _with_finished(settings, view, files, one_shot)
    if is_dead(view.queue) and not view.finished:
        view = _with_risk(settings, _with_tail(view, files), files)
    return structs.replace(view, memory=structs.replace(view.memory, stuck=files.hanging_by_path))


def is_dead(queue: JobQueue) -> bool:
    """Nothing runs and nothing will start without a person."""
    return not (queue.alive or queue.coming or queue.paused or queue.ending)


def _with_kill_switch(settings: JobSettings, view: TrainingView, files: JobFiles) -> TrainingView:
    if not settings.kill_switch:
        return structs.replace(view, kill_switch=False)
    if not (view.queue.pending or (settings.on_death and is_dead(view.queue))):
        return view
    try:
        there = files.path_exists(settings.kill_switch, get_proof_viewer(view.memory))
    except CannotTell as error:
        return _with_note(view, f"kill switch: {error}")
    return structs.replace(view, kill_switch=there)


def _with_finished(
    settings: JobSettings, view: TrainingView, files: JobFiles, one_shot: bool
) -> TrainingView:
    when, dead = settings.done_when, is_dead(view.queue)
    if when is None and view.many and dead and not settings.queued:
        return structs.replace(view, finished=find_proof_of_success(view.memory))
    asked = dead or rules.find_future_troubles(settings, view)
    if when is None or not asked or (when.state and not dead):
        return view
    try:
        proof = find_proof_of_finish(when, view.memory, files, one_shot=one_shot)
    except CannotTell as error:
        if dead:
            raise
        return _with_note(view, f"done_when: {error}")
    return structs.replace(view, finished=proof)


def _with_risk(settings: JobSettings, view: TrainingView, files: JobFiles) -> TrainingView:
    """What the death costs, counted until then; nothing where nobody saw it run."""
    last = last_run(view.memory)
    if settings.checkpoints is None or last is None:
        return view
    from sentinel.checks.checkpoint.risk import describe_work_at_risk

    text = describe_work_at_risk(
        settings.checkpoints,
        view.now,
        get_run_seconds(last, view.now),
        user=last.seen.user,
        limit=files.limit,
        ended=get_end_instant(last, view.now),
        stuck=files.hanging_by_path,
    )
    return structs.replace(view, at_risk=text)


def _with_tail(view: TrainingView, files: JobFiles) -> TrainingView:
    last = last_run(view.memory)
    if last is None or last.tail is not None or not last.asked:
        return view
    try:
        text, clean = _read_output_tail(last, files)
    except CannotTell as error:
        return _with_note(view, f"its last lines: {error}")
    kept = tuple(
        structs.replace(g, tail=text, clean_output=clean) if g is last else g
        for g in view.memory.gone
    )
    return structs.replace(view, memory=structs.replace(view.memory, gone=kept))


def _read_output_tail(last: GoneJob, files: JobFiles) -> tuple[str, bool]:
    """The last lines of its output, if that is a regular file of the job's own user; and whether all
    that was read of it is clean."""
    path = get_stdout_path(last)
    if not path.startswith("/"):
        return "", False
    try:
        whose = Whose(user=last.seen.user, owned=True)
        text = files.read_tail(path, BYTES, whose, last.started_at_s) or ""
    except OlderThanAsked as error:
        return str(error), False
    lines = [shortened(line, WIDTH) for line in visible_lines(text).splitlines()]
    return make_excerpt(lines, LINES), is_clean("\n".join(lines))


def _with_note(view: TrainingView, note: str) -> TrainingView:
    return structs.replace(view, notes=(*view.notes, note))


# What is asked for while a training is started again and again. Pure.


def request_holds(
    settings: JobSettings, view: TrainingView, finding: Finding
) -> tuple[tuple[ActionRequest, ...], Memory]:
    """A hold of whatever would start next, once for each restart, and the memory of that.

    What a person lets go again is left alone until the training has died once more.
    """
    text, memory = find_restart_storm(settings, view), view.memory
    if not text or not memory.restarts or view.finished or "hold" not in settings.on_storm:
        return (), structs.replace(memory, asked={})
    wishes = {
        wish.target: wish
        for wish in (
            make_job_request(
                "hold",
                job,
                f"restart storm: {text}",
                subject=view.subject,
                evidence={"finding": finding.summary, "restarts": text},
            )
            for job in view.queue.coming[:MAX_JOBS]
        )
    }
    newest = memory.restarts[-1]
    fresh = tuple(w for target, w in wishes.items() if memory.asked.get(target) != newest)
    asked = {**memory.asked, **dict.fromkeys(wishes, newest)}
    return fresh, structs.replace(memory, asked=dict(list(asked.items())[-MAX_JOBS:]))


# Whether a training that has died is to be submitted again (`on_death: [resubmit]`). Pure.


MAX_REVIVALS_PER_DAY = 3
"""Times in a day; what dies more often needs a person."""

MAX_REVIVALS_KEPT = 20
_PROGRAM_ERROR_PATTERN = re.compile(
    r"(?i)\bImportError|ModuleNotFoundError|AssertionError|\bAssertion\b(?:(?!\bAssertion\b).)*failed|MemoryError|"
    r"out ?of ?memory|oom[-_ ]?kill"
)
_SIGKILL_NUMBER = 9


def request_revival(
    settings: JobSettings, view: TrainingView, finding: Finding, node: str
) -> tuple[tuple[ActionRequest, ...], Memory]:
    """The wish, and the memory of it; none where anything speaks against it. `node`: the culprit."""
    memory, last = view.memory, last_run(view.memory)
    if "resubmit" not in settings.on_death or finding.status is not Status.CRITICAL or last is None:
        return (), memory
    step = find_last_step(last.tail or "")
    words = resubmit_argv(last.how, node, "singleton") if last.how else ()
    waits = get_elapsed_s(last.at, view.now) < finding.patience or view.kill_switch is not False
    if (
        waits
        or view.queue.held
        or not words
        or not _may_succeed_again(last)
        or _was_revived_in_vain(view, step)
    ):
        return (), memory
    told = JobRevival(job=last.seen.id, at=view.now, step=step)
    wish = ActionRequest(
        action="resubmit",
        target=last.seen.id,
        reason=f"it died at {step or 'a step that is not known'}",
        subject=view.subject,
        params={"user": last.seen.user, "workdir": last.how.workdir if last.how else "",
                "words": json.dumps(words)},
        evidence={"finding": finding.summary},
    )  # fmt: skip
    return (wish,), structs.replace(memory, revived=(*memory.revived, told)[-MAX_REVIVALS_KEPT:])


def _may_succeed_again(last: GoneJob) -> bool:
    """Whether the same again may go well: no mistake in the program, and not its memory."""
    end = last.end
    if end is None or not state_meaning(end.state).may_resubmit or end.signal == _SIGKILL_NUMBER:
        return False
    if end.exit_code == 128 + _SIGKILL_NUMBER or _PROGRAM_ERROR_PATTERN.search(last.tail or ""):
        return False
    told = find_last_step(last.tail or "") or find_error_line(last.tail or "")
    return end.state != "FAILED" or bool(told)  # of a failure its own words have to be seen


def _was_revived_in_vain(view: TrainingView, step: str) -> bool:
    """It was submitted again for this death, at this step, or three times today."""
    before, last = view.memory.revived, last_run(view.memory)
    today = [one for one in before if get_elapsed_s(one.at, view.now) < DAY_S]
    again_here = any(one.step == step or (last and one.job == last.seen.id) for one in before)
    return again_here or len(today) >= MAX_REVIVALS_PER_DAY
