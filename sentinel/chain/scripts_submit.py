"""Submits scripts with sbatch, and finds out how their jobs ended."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from sentinel import proc
from sentinel.chain import script_logs
from sentinel.chain.cron_trust import CronTrust, make_cron_trust
from sentinel.chain.marks import CLOCKS_DIFFER_S, may_be_submission
from sentinel.chain.program_copies import keep_program
from sentinel.chain.queue import SQUEUE_COLUMNS, SubmissionRefused, submission_refusal
from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.chain.scripts import FoundScript
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import visible
from sentinel.slurm.client import SETTINGS, build_argv, neutral_environment
from sentinel.slurm.complaints import describe_stderr
from sentinel.slurm.ends import LIVE
from sentinel.slurm.job_states import Phase, state_phase
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.submission import submitted_job
from sentinel.slurm.words import decode_text, make_nonce, parse_epoch

LOST_STATE = "LOST"
"""The state of a job that neither slurmctld nor accounting knows any more."""


class _NamedJob(NamedTuple):
    """A job with the name of a script. `job` is the id of an array as a whole. `submitted` is epoch
    seconds."""

    job: str
    submitted: int | None
    state: str
    comment: str


class ScriptSubmitter:
    """Submits the scripts of one pass over one cron directory. `options` override the script's own."""

    def __init__(
        self,
        snapshot: SlurmSnapshot,
        base: str,
        options: Mapping[str, str],
        trust: CronTrust | None = None,
    ) -> None:
        self._snapshot, self._client, self._base = snapshot, snapshot.client, base
        self._trust = trust or make_cron_trust()
        self._options = [f"--{key}={value}" for key, value in options.items()]
        self._clusters = options.get("clusters")

    def submit_script(self, found: FoundScript, slot: int, now: float) -> SubmittedRun:
        """Submit a script. Raises SubmissionRefused with Slurm's words, or if nobody here would see how its
        job ends, and CannotTell if Slurm does not answer."""
        from sentinel.slurm.sbatch_words import read_script_options  # few passes submit

        named = self._clusters or read_script_options(found.text).clusters
        if named and named != self._snapshot.config().cluster:
            raise SubmissionRefused(
                f"--clusters={visible(named)}: its end is seen on that cluster only"
            )
        try:
            script_logs.make_log_folder(self._base, found.key, self._trust)
        except OSError as error:
            where = visible(script_logs.log_folder(self._base, found.key))
            raise SubmissionRefused(f"no place for its log: {where}: {error.strerror}") from error
        text = keep_program(self._base, found, self._trust) if found.is_program else found.text
        job = self._run_sbatch(self.submission_argv(found, slot), text)
        return SubmittedRun(slot=slot, job=job, at=now, log=self._log_path(found, slot, job))

    def _run_sbatch(self, argv: Sequence[str], text: bytes) -> str:
        """The id of the job. With `#SBATCH --wait`, sbatch tells it and stays until the job ends."""
        try:
            done = proc.run(
                build_argv(argv, self._client.prefix),
                limit=self._client.limit,
                env=_script_environment(),
                stdin=text,
                cwd=self._base,
            )
        except proc.TimedOut as late:
            if job := submitted_job(late.out):
                return job
            raise
        if done.code or not (job := submitted_job(done.out)):
            raise submission_refusal(describe_stderr(done.err), done.code)
        return job

    def submission_argv(self, found: FoundScript, slot: int) -> list[str]:
        """The sbatch command. The script is passed on standard input, so that the checked text is
        submitted."""
        queue = found.script is not None and found.script.overlap == "queue"
        return [
            "sbatch",
            "--parsable",
            *self._options,
            f"--job-name={_job_name(found.key)}",
            f"--output={script_logs.log_pattern(self._base, found.key, slot)}",
            *(["--dependency=singleton"] if queue else []),
        ]

    def find_begun_job(
        self, found: FoundScript, record: ScriptRecord, now: float
    ) -> SubmittedRun | None:
        """What became of the submission that had begun in this record; None if there was none.
        Raises CannotTell if Slurm does not answer.

        A submission that timed out may still succeed, because Slurm reads the request later. Its job
        is known by its name, its owner and its time of submission. The run is LOST if nothing can
        tell: slurmctld forgets a job, and there may be no accounting.
        """
        slot, began = record.begun_slot, record.begun_at
        known = {run.job for run in record.runs}
        rows = self._ask_jobs(found.key)
        job = _nearest_job([(row.job, row.submitted) for row in rows], began, known)
        if job is None:
            _refuse_unknown_job(rows, known)
        if job is None and now - began >= self._snapshot.config().min_job_age:
            since = now - began + CLOCKS_DIFFER_S  # sacct reads it by the clock of its host
            booked = self._snapshot.booked_runs(_job_name(found.key), since)
            if booked is not None and booked.unasked:
                raise CannotTell(booked.unasked)
            if booked is None and not record.begun_refused:
                return SubmittedRun(slot=slot, job="", at=began, state=LOST_STATE)
            runs = booked.runs if booked else ()
            past = [(run.array_id or run.job_id, run.submitted) for run in runs]
            job = _nearest_job(past, began, known)
        if job is None:
            return None
        return SubmittedRun(slot=slot, job=job, at=began, log=self._log_path(found, slot, job))

    def find_commented_job(self, found: FoundScript, record: ScriptRecord) -> SubmittedRun | None:
        """The same for a record from before 0.1.0, which did not keep the begin but wrote the slot into the
        job's comment. Raises CannotTell."""
        known = {run.job for run in record.runs}
        for job, at, _state, comment in self._ask_jobs(found.key):
            slot = comment.removeprefix("sentinel cron ")
            if (
                job not in known
                and slot != comment
                and slot.isdecimal()
                and record.handled < int(slot)
            ):
                log = self._log_path(found, int(slot), job)
                return SubmittedRun(slot=int(slot), job=job, at=at or record.handled, log=log)
        return None

    def _ask_jobs(self, key: str) -> list[_NamedJob]:
        """This user's jobs with the script's name that slurmctld remembers. Raises CannotTell."""
        mark = make_nonce()
        mine = ("-u", str(os.getuid()), "-n", _job_name(key), "-t", "all")
        columns = "".join(f"{letter}{mark}" for letter in ("%F", "%V", "%T", "%k"))
        out = self._client.ask_slurm(*SQUEUE_COLUMNS, *mine, "-o", columns)
        fields = [part.strip(b"\n") for part in out.split(mark.encode())]
        rows = zip(fields[0::4], fields[1::4], fields[2::4], fields[3::4], strict=False)
        try:
            return [
                _NamedJob(decode_text(job), parse_epoch(at), decode_text(state), decode_text(text))
                for job, at, state, text in rows
            ]
        except ValueError as error:
            raise CannotTell(f"the output of squeue cannot be read: {error}") from error

    def refresh_ends(self, runs: Sequence[SubmittedRun]) -> list[SubmittedRun]:
        """The runs, with the ends that are known by now."""
        if all(run.is_over for run in runs) or self._queued_jobs is None:
            return list(runs)
        return [run if self._needs_no_look(run) else self._refresh_end(run) for run in runs]

    def _needs_no_look(self, run: SubmittedRun) -> bool:
        """Whether nothing new can be known of a run. slurmctld forgets the elements of an array one
        by one, so without accounting an array is looked at while it is in the queue."""
        if run.is_over or self._queued_jobs is None:
            return True
        live, arrays = self._queued_jobs
        if run.job in arrays:
            return self._snapshot.config().accounting
        return run.job in live

    @cached_property
    def _queued_jobs(self) -> tuple[frozenset[str], frozenset[str]] | None:
        """This user's jobs that have not ended, and the arrays among them by their own ids. None if
        Slurm does not answer.

        Slurm is asked only once.
        """
        try:
            out = self._client.ask_slurm(*SQUEUE_COLUMNS, "-u", str(os.getuid()), "-o", "%A %F %K")
        except CannotTell:
            return None
        rows = [line.split() for line in decode_lines(out).splitlines()]
        arrays = frozenset(row[1] for row in rows if len(row) > 2 and row[2] != "N/A")
        return frozenset(row[0] for row in rows if row) | arrays, arrays

    def _refresh_end(self, run: SubmittedRun) -> SubmittedRun:
        try:
            found = self._snapshot.submission_end(run.job)
        except CannotTell:
            return run
        if found is None:
            return replace(run, state=LOST_STATE)
        end, bad = found.end, found.elements or run.elements
        # REVOKED: another cluster of the federation may run it, and slurmctld here does not say.
        elsewhere = end.source != "sacct" and state_phase(end.state) is Phase.UNCLEAR
        if end.state in LIVE or elsewhere:
            return replace(run, elements=bad)
        log = run.log
        if found.elements:  # that of the element that ended badly
            log = log.replace(f"-{run.job}.log", f"-{end.job_id}.log")
        done = replace(run, state=end.state, code=end.exit_code, ended=end.ended)
        return replace(done, elements=bad, log=log)

    def _log_path(self, found: FoundScript, slot: int, job: str) -> str:
        written = script_logs.log_pattern(self._base, found.key, slot)
        return written.replace("%j", job).replace("%%", "%")


def _script_environment() -> dict[str, str]:
    """The environment for the script, as sbatch by hand would give it. Variables that sentinel sets
    for squeue are removed."""
    kept = {k: v for k, v in neutral_environment(os.environ).items() if k not in SETTINGS}
    own = {k: os.environ[k] for k in SETTINGS if k in os.environ and not k.startswith("SLURM_")}
    return kept | own


def _job_name(key: str) -> str:
    return key.replace("/", ".")


def _refuse_unknown_job(rows: Sequence[_NamedJob], known: Collection[str]) -> None:
    """Raise CannotTell if a job of this name is alive that no pass knows: it may be the one that was
    submitted, where a clock is wrong."""
    for row in rows:
        if row.job not in known and row.state in LIVE:
            raise CannotTell(
                f"job {row.job} has this name and may be of the submission that failed; it has to end first"
            )


def _nearest_job(
    jobs: Sequence[tuple[str, int | None]], began: float, known: Collection[str]
) -> str | None:
    """The job that was submitted nearest to that time, out of those that are not known yet."""
    near = [
        (abs(at - began), job)
        for job, at in jobs
        if at is not None and job not in known and may_be_submission(began, at)
    ]
    return min(near)[1] if near else None
