"""One training looked at: its jobs arranged, the files asked, judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from sentinel.checks.job.done import last_run
from sentinel.checks.job.files import Files
from sentinel.checks.job.gather import is_dead, with_files
from sentinel.checks.job.judge import culprit, judge
from sentinel.checks.job.memory import GONE, Gone, Memory, submitted
from sentinel.checks.job.memory import Seen as Row
from sentinel.checks.job.queue import arranged, held_up
from sentinel.checks.job.recall import LATE
from sentinel.checks.job.revival import revival
from sentinel.checks.job.settings import JobSettings
from sentinel.checks.job.storm import requests
from sentinel.checks.job.succession import by_owner, maintenance
from sentinel.checks.job.view import View
from sentinel.core.clock import elapsed
from sentinel.core.errors import CannotTell
from sentinel.core.model import ActionRequest, Finding
from sentinel.core.ports import Context
from sentinel.proc import Stuck
from sentinel.slurm.model import Job
from sentinel.slurm.submission import Submission

LOOKUP = 5.0  # seconds for one question to a file system or a directory service
SHARE = 0.5  # of the run's limit that all of these may take


class Seen(Struct, frozen=True):
    """What a look at a training came to."""

    finding: Finding
    wishes: tuple[ActionRequest, ...]
    memory: Memory


class Round:
    """What all trainings of one run share; `mine` are their jobs among all the `jobs`."""

    def __init__(
        self, settings: JobSettings, ctx: Context, jobs: Sequence[Job], mine: Sequence[Job]
    ) -> None:
        self._settings, self._ctx, self._jobs = settings, ctx, jobs
        self._stuck = held_up(mine, jobs)
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
            queue=arranged(mine, memory, self._ctx.now, self._stuck),
            memory=memory,
            others=self._jobs,
            many=many,
        )

    def look(self, view: View, files: Files) -> Seen:
        """The judgement. Raises CannotTell where the one thing that decides cannot be seen."""
        view = with_files(self._settings, view, files, one_shot=self._ctx.one_shot)
        view = self._asked_alive(view)
        if is_dead(view.queue) and not view.finished:
            view = self._with_circumstances(view)
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
            where = None
        book = self._ctx.logbook
        done = book.records(last.seen.id, limit=10) if book and by_owner(last) else ()
        ours = any(one.action == "cancel" and one.outcome.effective for one in done)
        return structs.replace(view, maintenance=where, ours=ours)
