"""How jobs ended: asked once per job, and remembered."""

from __future__ import annotations

from _thread import allocate_lock

from msgspec.structs import replace

from sentinel.core.errors import CannotTell
from sentinel.core.ports import Clock
from sentinel.core.slurm import JobEnd
from sentinel.slurm import control, ends
from sentinel.slurm.answer import Answer, Pause
from sentinel.slurm.client import Client
from sentinel.slurm.words import nonce, text

MOST_REMEMBERED = 1000
_UNKNOWN_JOB = b"Invalid job id specified"  # ESLURM_INVALID_JOB_ID, src/common/slurm_errno.c
_WORTH_A_LOOK = ("CANCELLED", "NODE_FAIL")  # only accounting knows by whom, and which node


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
        self._pause = Pause()

    def get(self, job_id: str) -> JobEnd | None:
        """How the job ended, or that it lives; None when nothing remembers it; CannotTell."""
        if not self._lock.acquire(timeout=self._patience):
            raise CannotTell("Slurm is being asked about another job, and has not answered yet")
        try:
            return self._known.get(job_id) or self._learn(job_id)
        finally:
            self._lock.release()

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
        if end.state not in _WORTH_A_LOOK:
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
        columns = self._columns.get()
        if not columns:
            return None
        mark = nonce()
        form = ("-n", "-P", "-X", "-D", f"--delimiter={mark}", "-o", ",".join(columns))
        return ends.chosen(
            ends.read_sacct(self._client.ask("sacct", *form, "-j", job_id), mark), job_id
        )

    def _ask_columns(self) -> tuple[str, ...]:
        """Which fields to ask this sacct for; none where there is no accounting."""
        if not self._config.get().accounting:
            return ()
        return ends.sacct_columns(text(self._client.ask("sacct", "--helpformat")).split())

    def _named(self, end: JobEnd | None) -> JobEnd | None:
        """sacct has the uid of who cancelled a job; a name says more, where there is one."""
        if end is None or not end.cancelled_by.isdigit():
            return end
        done = self._client.run("id", "-nu", end.cancelled_by)
        name = text(done.out).strip()
        return replace(end, cancelled_by=name) if name and done.code == 0 else end


def _joined(end: JobEnd, booked: JobEnd | None) -> JobEnd:
    if booked is None or booked.state != end.state:
        return end
    return replace(end, cancelled_by=booked.cancelled_by, failed_node=booked.failed_node)
