"""One training looked at: its jobs arranged, the files asked, judged."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from sentinel.actions.job_requests import about
from sentinel.checks.job import rules
from sentinel.checks.job.done import ended_well, finished, last_run, whose_proof
from sentinel.checks.job.ends import last_moment, lasted
from sentinel.checks.job.files import Files
from sentinel.checks.job.judge import culprit, judge
from sentinel.checks.job.memory import GONE, JOBS, Gone, Memory, Revival, submitted
from sentinel.checks.job.memory import Seen as Row
from sentinel.checks.job.output import cause, excerpt, is_clean, last_step, stdout
from sentinel.checks.job.queue import Queue, View, around, arranged
from sentinel.checks.job.recall import LATE
from sentinel.checks.job.rules import storm
from sentinel.checks.job.settings import DAY, JobSettings
from sentinel.checks.job.succession import by_owner, maintenance
from sentinel.core.clock import elapsed
from sentinel.core.cluster import Job, Submission
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest, Finding, Status
from sentinel.core.ports import Context
from sentinel.core.text import shortened, visible_lines
from sentinel.proc import Stuck
from sentinel.slurm.job_states import meaning
from sentinel.slurm.node_states import flag_meaning
from sentinel.slurm.pending_reasons import explain
from sentinel.slurm.submission import again
from sentinel.user_files.files import NotSince
from sentinel.user_files.whose import Whose

LOOKUP = 5.0  # seconds for one question to a file system or a directory service
SHARE = 0.5  # of the run's limit that all of these may take


class Seen(Struct, frozen=True):
    """What a look at a training came to."""

    finding: Finding
    wishes: tuple[ActionRequest, ...]
    memory: Memory


def growing(jobs: Sequence[Job], ctx: Context) -> frozenset[str]:
    """Of the partitions of jobs that find too few nodes there those that are empty, or whose nodes
    come and go; all of them where Slurm does not say. It is asked only where a job waits for that."""
    asked = [job for job in jobs if explain(job.reason).code == "PartitionConfig"]
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

    def host_of(self, job: Job) -> str:
        """The host; empty where it is not known, or too many were asked for."""
        if self._left <= 0 or self._ctx.one_shot:
            return ""
        self._left -= 1
        try:
            how = self._ctx.slurm.submission(job.id)
        except CannotTell:
            return ""
        return how.host if how else ""


class Round:
    """What all trainings of one run share; `mine` are their jobs among all the `jobs`."""

    def __init__(
        self, settings: JobSettings, ctx: Context, jobs: Sequence[Job], mine: Sequence[Job]
    ) -> None:
        self._settings, self._ctx, self._jobs = settings, ctx, jobs
        self._around = around(mine, jobs, growing(mine, ctx))
        often = settings.often()
        self.window = often.window if often else 0.0

    def files(self, stuck: Mapping[str, Stuck]) -> Files:
        """The file system, with what hangs there since earlier runs."""
        return Files(min(LOOKUP, self._ctx.limit / 4), self._ctx.limit * SHARE, stuck)

    def view(
        self, subject: str, mine: Sequence[Job], memory: Memory, *, many: bool = False
    ) -> View:
        """What is known of a training before its files are looked at."""
        return View(
            subject=subject,
            now=self._ctx.now,
            queue=arranged(mine, memory, self._ctx.now, self._around),
            memory=memory,
            others=self._jobs,
            many=many,
            slurm_clusters=os.environ.get("SLURM_CLUSTERS", ""),
        )

    def look(self, view: View, files: Files) -> Seen:
        """The judgement. Raises CannotTell where the one thing that decides cannot be seen."""
        view = with_files(self._settings, view, files, one_shot=self._ctx.one_shot)
        view = self._asked_alive(view)
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
        finding = judge(self._settings, view)
        held, memory = requests(self._settings, view, finding)
        view = structs.replace(view, memory=memory)
        anew, memory = revival(self._settings, view, finding, culprit(view))
        return Seen(finding, (*held, *anew), memory)

    def _with_submission(self, view: View, last: Gone) -> View:
        """How it was submitted: asked while slurmctld remembers it, else as it was known before."""
        if last.how is not None or not last.asked or elapsed(last.at, view.now) > LATE:
            return view
        how = self._submission(last.seen) if last.end else None
        how = how or last.seen.how
        if how is None:
            return view
        gone = tuple(structs.replace(g, how=how) if g is last else g for g in view.memory.gone)
        return structs.replace(view, memory=structs.replace(view.memory, gone=gone))

    def _asked_alive(self, view: View) -> View:
        """How what runs was submitted, one job a look: passes may be farther apart than Slurm's
        memory of a job is long."""
        rows = [s for s in view.memory.seen if s.state == "RUNNING"]
        new = next((s for s in rows if s.how is None), None)
        if view.many or self._ctx.one_shot or new is None or len(rows) > GONE:
            return view
        how = self._submission(new)
        if how is None:
            return view
        return structs.replace(view, memory=submitted(view.memory, new, how))

    def _submission(self, job: Row) -> Submission | None:
        try:
            return self._ctx.slurm.submission(job.id)
        except CannotTell:
            return None

    def _with_circumstances(self, view: View) -> View:
        """What else was going on when it died: maintenance, or an action of sentinel's own."""
        last = last_run(view.memory)
        if last is None:
            return view
        view = self._with_submission(view, last)
        try:
            where = maintenance(last, self._ctx.slurm.reservations(), view.now)
        except CannotTell:
            where = ""
        book = self._ctx.logbook
        done = book.records(last.seen.id, limit=10) if book and by_owner(last) else ()
        ours = any(one.action == "cancel" and one.outcome.effective for one in done)
        return structs.replace(view, maintenance=where, ours=ours)


# What a run asks the file system for: the end of a training, the last lines of a job.


LINES, WIDTH, BYTES = 20, 300, 2**17  # of a dead job's output


def with_files(settings: JobSettings, view: View, files: Files, *, one_shot: bool) -> View:
    """The view with what the files say. Raises CannotTell where that alone would decide."""
    view = _with_kill_switch(settings, view, files)
    view = _with_finished(settings, view, files, one_shot)
    if is_dead(view.queue) and not view.finished:
        view = _with_risk(settings, _with_tail(view, files), files)
    return structs.replace(view, memory=structs.replace(view.memory, stuck=files.stuck))


def is_dead(queue: Queue) -> bool:
    """Nothing runs and nothing will start without a person."""
    return not (queue.alive or queue.coming or queue.paused or queue.ending)


def _with_kill_switch(settings: JobSettings, view: View, files: Files) -> View:
    if not settings.kill_switch:
        return structs.replace(view, kill_switch=False)
    if not (view.queue.pending or (settings.on_death and is_dead(view.queue))):
        return view
    try:
        there = files.there(settings.kill_switch, whose_proof(view.memory))
    except CannotTell as error:
        return _noted(view, f"kill switch: {error}")
    return structs.replace(view, kill_switch=there)


def _with_finished(settings: JobSettings, view: View, files: Files, one_shot: bool) -> View:
    when, dead = settings.done_when, is_dead(view.queue)
    if when is None and view.many and dead and not settings.queued:
        return structs.replace(view, finished=ended_well(view.memory))
    asked = dead or rules.about_the_end(settings, view)
    if when is None or not asked or (when.state and not dead):
        return view
    try:
        proof = finished(when, view.memory, files, one_shot=one_shot)
    except CannotTell as error:
        if dead:
            raise
        return _noted(view, f"done_when: {error}")
    return structs.replace(view, finished=proof)


def _with_risk(settings: JobSettings, view: View, files: Files) -> View:
    """What the death costs, counted until then; nothing where nobody saw it run."""
    last = last_run(view.memory)
    if settings.checkpoints is None or last is None:
        return view
    from sentinel.checks.checkpoint.risk import work_at_risk

    text = work_at_risk(
        settings.checkpoints,
        view.now,
        lasted(last, view.now),
        user=last.seen.user,
        limit=files.limit,
        ended=last_moment(last, view.now),
        stuck=files.stuck,
    )
    return structs.replace(view, at_risk=text)


def _with_tail(view: View, files: Files) -> View:
    last = last_run(view.memory)
    if last is None or last.tail is not None or not last.asked:
        return view
    try:
        text, clean = _tail(last, files)
    except CannotTell as error:
        return _noted(view, f"its last lines: {error}")
    kept = tuple(
        structs.replace(g, tail=text, clean_output=clean) if g is last else g
        for g in view.memory.gone
    )
    return structs.replace(view, memory=structs.replace(view.memory, gone=kept))


def _tail(last: Gone, files: Files) -> tuple[str, bool]:
    """The last lines of its output, if that is a regular file of the job's own user; and whether all
    that was read of it is clean."""
    path = stdout(last)
    if not path.startswith("/"):
        return "", False
    try:
        whose = Whose(user=last.seen.user, owned=True)
        text = files.tail(path, BYTES, whose, last.started) or ""
    except NotSince as error:
        return str(error), False
    lines = [shortened(line, WIDTH) for line in visible_lines(text).splitlines()]
    return excerpt(lines, LINES), is_clean("\n".join(lines))


def _noted(view: View, note: str) -> View:
    return structs.replace(view, notes=(*view.notes, note))


# What is asked for while a training is started again and again. Pure.


def requests(
    settings: JobSettings, view: View, finding: Finding
) -> tuple[tuple[ActionRequest, ...], Memory]:
    """A hold of whatever would start next, once for each restart, and the memory of that.

    What a person lets go again is left alone until the training has died once more.
    """
    text, memory = storm(settings, view), view.memory
    if not text or not memory.restarts or view.finished or "hold" not in settings.on_storm:
        return (), structs.replace(memory, asked={})
    wishes = {
        wish.target: wish
        for wish in (
            about(
                "hold",
                job,
                f"restart storm: {text}",
                subject=view.subject,
                evidence={"finding": finding.summary, "restarts": text},
            )
            for job in view.queue.coming[:JOBS]
        )
    }
    newest = memory.restarts[-1]
    fresh = tuple(w for target, w in wishes.items() if memory.asked.get(target) != newest)
    asked = {**memory.asked, **dict.fromkeys(wishes, newest)}
    return fresh, structs.replace(memory, asked=dict(list(asked.items())[-JOBS:]))


# Whether a training that has died is to be submitted again (`on_death: [resubmit]`). Pure.


MOST = 3
"""Times in a day; what dies more often needs a person."""

KEPT = 20
_MISTAKE = re.compile(
    r"(?i)\bImportError|ModuleNotFoundError|AssertionError|\bAssertion\b(?:(?!\bAssertion\b).)*failed|MemoryError|"
    r"out ?of ?memory|oom[-_ ]?kill"
)
_KILLED = 9


def revival(
    settings: JobSettings, view: View, finding: Finding, node: str
) -> tuple[tuple[ActionRequest, ...], Memory]:
    """The wish, and the memory of it; none where anything speaks against it. `node`: the culprit."""
    memory, last = view.memory, last_run(view.memory)
    if "resubmit" not in settings.on_death or finding.status is not Status.CRITICAL or last is None:
        return (), memory
    step = last_step(last.tail or "")
    words = again(last.how, node, "singleton") if last.how else ()
    waits = elapsed(last.at, view.now) < finding.patience or view.kill_switch is not False
    if waits or view.queue.held or not words or not _curable(last) or _hopeless(view, step):
        return (), memory
    told = Revival(job=last.seen.id, at=view.now, step=step)
    wish = ActionRequest(
        action="resubmit",
        target=last.seen.id,
        reason=f"it died at {step or 'a step that is not known'}",
        subject=view.subject,
        params={"user": last.seen.user, "workdir": last.how.workdir if last.how else "",
                "words": json.dumps(words)},
        evidence={"finding": finding.summary},
    )  # fmt: skip
    return (wish,), structs.replace(memory, revived=(*memory.revived, told)[-KEPT:])


def _curable(last: Gone) -> bool:
    """Whether the same again may go well: no mistake in the program, and not its memory."""
    end = last.end
    if end is None or not meaning(end.state).may_resubmit or end.signal == _KILLED:
        return False
    if end.exit_code == 128 + _KILLED or _MISTAKE.search(last.tail or ""):
        return False
    told = last_step(last.tail or "") or cause(last.tail or "")
    return end.state != "FAILED" or bool(told)  # of a failure its own words have to be seen


def _hopeless(view: View, step: str) -> bool:
    """It was submitted again for this death, at this step, or three times today."""
    before, last = view.memory.revived, last_run(view.memory)
    today = [one for one in before if elapsed(one.at, view.now) < DAY]
    again_here = any(one.step == step or (last and one.job == last.seen.id) for one in before)
    return again_here or len(today) >= MOST
