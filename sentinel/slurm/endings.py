"""How jobs ended: asked once per job, and remembered."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from sentinel.core.cluster import Job, JobEnd, JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.ports import Clock
from sentinel.core.values import duration_text
from sentinel.slurm import control, ends
from sentinel.slurm.answer import CachedAnswer, FailurePause
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.words import decode_text, make_nonce

MOST_REMEMBERED = 1000
SLOW_ANSWER_S = 0.25
"""Share of a question's limit from which on an answer is slow: no second one is asked then."""
AFTER_NOW = "now+1hour"
"""Where sacct's window ends: it leaves out jobs of its last second, and clocks differ."""
_UNKNOWN_JOB = b"Invalid job id specified"  # ESLURM_INVALID_JOB_ID, src/common/slurm_errno.c
WORTH_A_LOOK = ("CANCELLED", "NODE_FAIL")  # only accounting knows by whom, and which node


class JobEndings:
    """slurmctld is asked first; accounting for what it does not know or has forgotten."""

    def __init__(
        self,
        client: SlurmClient,
        clock: Clock,
        config: CachedAnswer[control.SlurmConfig],
        *,
        settled: float,
    ) -> None:
        self._client, self._clock, self._config = client, clock, config
        self._patience = 4 * client.limit
        self._columns = CachedAnswer(
            self._ask_columns, clock, max_age=settled, patience=self._patience
        )
        self._lock = allocate_lock()
        self._known: dict[str, JobEnd] = {}
        self._names: dict[str, str] = {}
        self._pause, self._books = FailurePause(), FailurePause()

    def find_end(self, job_id: str) -> JobEnd | None:
        """How the job ended, or that it lives; None when nothing remembers it; CannotTell."""
        if not self._lock.acquire(timeout=self._patience):
            raise CannotTell("Slurm is being asked about another job, and has not answered yet")
        try:
            return self._known.get(job_id) or self._learn_end(job_id)
        finally:
            self._lock.release()

    def forget_ends(self, jobs: Iterable[Job]) -> None:
        """Their ids are in the queue again: requeued, or given anew by a slurmctld that had lost its
        memory."""
        if self._known:
            for job in jobs:
                self._known.pop(job.job_id, None)

    def _learn_end(self, job_id: str) -> JobEnd | None:
        self._pause.raise_while_paused(self._clock.now())
        try:
            end = self._ask_end(job_id)
        except CannotTell as error:
            self._pause.record_failure(self._clock.now(), error)
            raise
        self._pause.record_success()
        if end and end.state not in ends.LIVE:
            self._remember_end(job_id, end)
        return end

    def _remember_end(self, job_id: str, end: JobEnd) -> None:
        if len(self._known) >= MOST_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[job_id] = end

    def _ask_end(self, job_id: str) -> JobEnd | None:
        end = self._from_slurmctld(job_id)
        if end is None:
            return self._name_end(self._from_accounting(job_id))
        if end.state not in WORTH_A_LOOK:
            return end
        try:
            booked = self._from_accounting(job_id)
        except CannotTell:  # what slurmctld said is worth telling without it
            return end
        return self._name_end(_merge_end(end, booked))

    def _from_slurmctld(self, job_id: str) -> JobEnd | None:
        mark = make_nonce()
        columns = ends.squeue_columns(mark)
        done = self._client.run_command(
            "squeue", "-h", "-a", "-t", "all", "-j", job_id, "-O", columns
        )
        if _UNKNOWN_JOB in done.err:
            return None
        out = self._client.believe_output("squeue", done)
        return ends.choose_end(ends.read_squeue(out, mark), job_id)

    def _from_accounting(self, job_id: str) -> JobEnd | None:
        return ends.choose_end(self._ask_sacct("-j", job_id), job_id)

    def accounted_runs(
        self, job_ids: Collection[str], names: Collection[str], since: float, whose: Sequence[str]
    ) -> tuple[JobRun, ...]:
        """What accounting has of these jobs, and of jobs with these names in the last `since`
        seconds: a question for each of the two at most. CannotTell also while slurmdbd is slow."""
        if not (job_ids or names) or not self._columns.get_answer():
            return ()
        now = self._clock.now()
        self._books.raise_while_paused(now)
        started = time.monotonic()
        try:
            runs = self._ask_sacct("-j", ",".join(sorted(job_ids))) if job_ids else ()
            named = sorted(name for name in names if name and "," not in name)
            if named:
                when = ("-S", f"now-{max(60, int(since))}seconds", "-E", AFTER_NOW)
                runs += self._ask_sacct(f"--name={','.join(named)}", *when, *(whose or ("-a",)))
        except CannotTell as error:
            self._books.record_failure(now, error)
            raise
        took = time.monotonic() - started
        if took > SLOW_ANSWER_S * self._client.limit:
            why = f"slurmdbd took {duration_text(took)} to answer; it is left alone for a while"
            self._books.record_failure(now, CannotTell(why))
        else:
            self._books.record_success()
        runs = self._add_step_codes(tuple(dict.fromkeys(runs)))
        return tuple(self._name_canceller(run) for run in runs)

    def _add_step_codes(self, runs: tuple[JobRun, ...]) -> tuple[JobRun, ...]:
        """With the worst exit code of their steps, of those that COMPLETED; without it where sacct
        does not say."""
        ids = sorted({run.job_id for run in runs if run.state == "COMPLETED"})
        if not ids:
            return runs
        mark = make_nonce()
        form = ("-n", "-p", "-X", "-D", f"--delimiter={mark}", "-o", "JobIDRaw,DerivedExitCode")
        try:
            out = self._client.ask_slurm("sacct", *form, "-j", ",".join(ids))
        except CannotTell:
            return runs
        fields = [field.strip() for field in out.split(mark.encode())]
        codes = dict(zip(map(decode_text, fields[::2]), fields[1::2], strict=False))
        return tuple(
            replace(run, step_failed=ends.failed_step(codes.get(run.job_id, b"")))
            if run.state == "COMPLETED"
            else run
            for run in runs
        )

    def submit_line(self, job_id: str) -> str:
        """The command by which it was submitted, as accounting has it (SubmitLine, 21.08 on); empty
        where it has none."""
        mark = make_nonce()
        form = ("-n", "-p", "-X", f"--delimiter={mark}", "-o", "SubmitLine")
        try:
            found = self._client.ask_slurm("sacct", *form, "-j", job_id).split(mark.encode())
        except CannotTell:
            return ""
        return decode_text(found[-2]).strip() if len(found) > 1 else ""

    def _name_canceller(self, run: JobRun) -> JobRun:
        return replace(run, cancelled_by=self._user_name(run.cancelled_by))

    def _ask_sacct(self, *which: str) -> tuple[JobRun, ...]:
        columns = self._columns.get_answer()
        if not columns:
            return ()
        mark = make_nonce()
        form = ("-n", "-p", "-X", "-D", f"--delimiter={mark}", "-o", ",".join(columns))
        return ends.read_sacct(self._client.ask_slurm("sacct", *form, *which), mark, len(columns))

    def _ask_columns(self) -> tuple[str, ...]:
        """Which fields to ask this sacct for; none where there is no accounting."""
        if not self._config.get_answer().accounting:
            return ()
        return ends.sacct_columns(
            decode_text(self._client.ask_slurm("sacct", "--helpformat")).split()
        )

    def _name_end(self, end: JobEnd | None) -> JobEnd | None:
        """sacct has the uid of who cancelled a job; a name says more, where there is one."""
        return end and replace(end, cancelled_by=self._user_name(end.cancelled_by))

    def _user_name(self, uid: str) -> str:
        if not uid.isdigit():
            return uid
        if uid not in self._names:
            done = self._client.run_command("id", "-nu", uid)
            name = decode_text(done.out).strip()
            self._names[uid] = name if name and done.code == 0 else uid
        return self._names[uid]


def merge_runs(runs: Sequence[JobRun], booked: Sequence[JobRun]) -> tuple[JobRun, ...]:
    """All runs, the oldest first: slurmctld's own, with who cancelled it and which node failed from
    accounting, and those that only accounting has."""
    of = {(run.job_id, run.started): run for run in booked}
    there = {(run.job_id, run.started) for run in runs}
    known = [_add_accounting(run, of.get((run.job_id, run.started))) for run in runs]
    return (*(run for run in booked if (run.job_id, run.started) not in there), *known)


def _add_accounting(run: JobRun, booked: JobRun | None) -> JobRun:
    if booked is None or booked.state != run.state:
        return run
    return replace(run, cancelled_by=booked.cancelled_by, failed_node=booked.failed_node)


def _merge_end(end: JobEnd, booked: JobEnd | None) -> JobEnd:
    if booked is None or booked.state != end.state:
        return end
    return replace(end, cancelled_by=booked.cancelled_by, failed_node=booked.failed_node)
