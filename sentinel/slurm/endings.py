"""How jobs ended: asked once per job, and remembered."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from sentinel.core.cluster import Job, JobEnd, Run
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Clock
from sentinel.core.values import duration_text
from sentinel.slurm import control, ends
from sentinel.slurm.answer import Answer, Pause
from sentinel.slurm.client import Client
from sentinel.slurm.words import nonce, text

MOST_REMEMBERED = 1000
SLOW = 0.25
"""Share of a question's limit from which on an answer is slow: no second one is asked then."""
AFTER_NOW = "now+1hour"
"""Where sacct's window ends: it leaves out jobs of its last second, and clocks differ."""
_UNKNOWN_JOB = b"Invalid job id specified"  # ESLURM_INVALID_JOB_ID, src/common/slurm_errno.c
WORTH_A_LOOK = ("CANCELLED", "NODE_FAIL")  # only accounting knows by whom, and which node


class Endings:
    """slurmctld is asked first; accounting for what it does not know or has forgotten."""

    def __init__(
        self, client: Client, clock: Clock, config: Answer[control.Config], *, settled: float
    ) -> None:
        self._client, self._clock, self._config = client, clock, config
        self._patience = 4 * client.limit
        self._columns = Answer(self._ask_columns, clock, max_age=settled, patience=self._patience)
        self._lock = allocate_lock()
        self._known: dict[str, JobEnd] = {}
        self._names: dict[str, str] = {}
        self._pause, self._books = Pause(), Pause()

    def get(self, job_id: str) -> JobEnd | None:
        """How the job ended, or that it lives; None when nothing remembers it; CannotTell."""
        if not self._lock.acquire(timeout=self._patience):
            raise CannotTell("Slurm is being asked about another job, and has not answered yet")
        try:
            return self._known.get(job_id) or self._learn(job_id)
        finally:
            self._lock.release()

    def forget(self, jobs: Iterable[Job]) -> None:
        """Their ids are in the queue again: requeued, or given anew by a slurmctld that had lost its
        memory."""
        if self._known:
            for job in jobs:
                self._known.pop(job.job_id, None)

    def _learn(self, job_id: str) -> JobEnd | None:
        self._pause.check(self._clock.now())
        try:
            end = self._ask(job_id)
        except CannotTell as error:
            self._pause.failed(self._clock.now(), error)
            raise
        self._pause.worked()
        if end and end.state not in ends.LIVE:
            self._remember(job_id, end)
        return end

    def _remember(self, job_id: str, end: JobEnd) -> None:
        if len(self._known) >= MOST_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[job_id] = end

    def _ask(self, job_id: str) -> JobEnd | None:
        end = self._from_slurmctld(job_id)
        if end is None:
            return self._named(self._from_accounting(job_id))
        if end.state not in WORTH_A_LOOK:
            return end
        try:
            booked = self._from_accounting(job_id)
        except CannotTell:  # what slurmctld said is worth telling without it
            return end
        return self._named(_joined(end, booked))

    def _from_slurmctld(self, job_id: str) -> JobEnd | None:
        mark = nonce()
        columns = ends.squeue_columns(mark)
        done = self._client.run("squeue", "-h", "-a", "-t", "all", "-j", job_id, "-O", columns)
        if _UNKNOWN_JOB in done.err:
            return None
        out = self._client.believe("squeue", done)
        return ends.chosen(ends.read_squeue(out, mark), job_id)

    def _from_accounting(self, job_id: str) -> JobEnd | None:
        return ends.chosen(self._sacct("-j", job_id), job_id)

    def booked(
        self, job_ids: Collection[str], names: Collection[str], since: float, whose: Sequence[str]
    ) -> tuple[Run, ...]:
        """What accounting has of these jobs, and of jobs with these names in the last `since`
        seconds: a question for each of the two at most. CannotTell also while slurmdbd is slow."""
        if not (job_ids or names) or not self._columns.get():
            return ()
        now = self._clock.now()
        self._books.check(now)
        started = time.monotonic()
        try:
            runs = self._sacct("-j", ",".join(sorted(job_ids))) if job_ids else ()
            named = sorted(name for name in names if name and "," not in name)
            if named:
                when = ("-S", f"now-{max(60, int(since))}seconds", "-E", AFTER_NOW)
                runs += self._sacct(f"--name={','.join(named)}", *when, *(whose or ("-a",)))
        except CannotTell as error:
            self._books.failed(now, error)
            raise
        took = time.monotonic() - started
        if took > SLOW * self._client.limit:
            why = f"slurmdbd took {duration_text(took)} to answer; it is left alone for a while"
            self._books.failed(now, CannotTell(why))
        else:
            self._books.worked()
        runs = self._with_steps(tuple(dict.fromkeys(runs)))
        return tuple(self._known_by_name(run) for run in runs)

    def _with_steps(self, runs: tuple[Run, ...]) -> tuple[Run, ...]:
        """With the worst exit code of their steps, of those that COMPLETED; without it where sacct
        does not say."""
        ids = sorted({run.job_id for run in runs if run.state == "COMPLETED"})
        if not ids:
            return runs
        mark = nonce()
        form = ("-n", "-p", "-X", "-D", f"--delimiter={mark}", "-o", "JobIDRaw,DerivedExitCode")
        try:
            out = self._client.ask("sacct", *form, "-j", ",".join(ids))
        except CannotTell:
            return runs
        fields = [field.strip() for field in out.split(mark.encode())]
        codes = dict(zip(map(text, fields[::2]), fields[1::2], strict=False))
        return tuple(
            replace(run, step_failed=ends.failed_step(codes.get(run.job_id, b"")))
            if run.state == "COMPLETED"
            else run
            for run in runs
        )

    def typed(self, job_id: str) -> str:
        """The command by which it was submitted, as accounting has it (SubmitLine, 21.08 on); empty
        where it has none."""
        mark = nonce()
        form = ("-n", "-p", "-X", f"--delimiter={mark}", "-o", "SubmitLine")
        try:
            found = self._client.ask("sacct", *form, "-j", job_id).split(mark.encode())
        except CannotTell:
            return ""
        return text(found[-2]).strip() if len(found) > 1 else ""

    def _known_by_name(self, run: Run) -> Run:
        return replace(run, cancelled_by=self._name(run.cancelled_by))

    def _sacct(self, *which: str) -> tuple[Run, ...]:
        columns = self._columns.get()
        if not columns:
            return ()
        mark = nonce()
        form = ("-n", "-p", "-X", "-D", f"--delimiter={mark}", "-o", ",".join(columns))
        return ends.read_sacct(self._client.ask("sacct", *form, *which), mark, len(columns))

    def _ask_columns(self) -> tuple[str, ...]:
        """Which fields to ask this sacct for; none where there is no accounting."""
        if not self._config.get().accounting:
            return ()
        return ends.sacct_columns(text(self._client.ask("sacct", "--helpformat")).split())

    def _named(self, end: JobEnd | None) -> JobEnd | None:
        """sacct has the uid of who cancelled a job; a name says more, where there is one."""
        return end and replace(end, cancelled_by=self._name(end.cancelled_by))

    def _name(self, uid: str) -> str:
        if not uid.isdigit():
            return uid
        if uid not in self._names:
            done = self._client.run("id", "-nu", uid)
            name = text(done.out).strip()
            self._names[uid] = name if name and done.code == 0 else uid
        return self._names[uid]


def joined(runs: Sequence[Run], booked: Sequence[Run]) -> tuple[Run, ...]:
    """All runs, the oldest first: slurmctld's own, with who cancelled it and which node failed from
    accounting, and those that only accounting has."""
    of = {(run.job_id, run.started): run for run in booked}
    there = {(run.job_id, run.started) for run in runs}
    known = [_with(run, of.get((run.job_id, run.started))) for run in runs]
    return (*(run for run in booked if (run.job_id, run.started) not in there), *known)


def _with(run: Run, booked: Run | None) -> Run:
    if booked is None or booked.state != run.state:
        return run
    return replace(run, cancelled_by=booked.cancelled_by, failed_node=booked.failed_node)


def _joined(end: JobEnd, booked: JobEnd | None) -> JobEnd:
    if booked is None or booked.state != end.state:
        return end
    return replace(end, cancelled_by=booked.cancelled_by, failed_node=booked.failed_node)
