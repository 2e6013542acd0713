"""Submits scripts with sbatch, and finds out how their jobs ended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from sentinel import proc
from sentinel.chain import script_logs
from sentinel.chain.queue import SQUEUE_COLUMNS, SubmissionRefused, submission_refusal
from sentinel.chain.script_history import (
    SubmittedRun,
)
from sentinel.chain.scripts import FoundScript
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import visible
from sentinel.slurm.client import SETTINGS, build_argv, neutral_environment
from sentinel.slurm.complaints import describe_stderr
from sentinel.slurm.ends import LIVE
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.submission import submitted_job
from sentinel.slurm.words import decode_text, make_nonce

LOST_STATE = "LOST"
"""The state of a job that neither slurmctld nor accounting knows any more."""


class ScriptSubmitter:
    """Submits the scripts of one pass over one cron directory. `options` override the script's own."""

    def __init__(self, snapshot: SlurmSnapshot, base: str, options: Mapping[str, str]) -> None:
        self._snapshot, self._client, self._base = snapshot, snapshot.client, base
        self._options = [f"--{key}={value}" for key, value in options.items()]

    def submit_script(self, found: FoundScript, slot: int, now: float) -> SubmittedRun:
        """Submit a script. Raises SubmissionRefused with Slurm's words, or CannotTell if Slurm does
        not answer."""
        try:
            argv = self.submission_argv(found, slot)
        except OSError as error:
            where = visible(script_logs.log_folder(self._base, found.key))
            raise SubmissionRefused(f"no place for its log: {where}: {error.strerror}") from error
        done = proc.run(
            build_argv(argv, self._client.prefix),
            limit=self._client.limit,
            env=_script_environment(),
            stdin=found.text,
            cwd=self._base,
        )
        said, job = describe_stderr(done.err), submitted_job(done.out)
        if done.code or not job:
            raise submission_refusal(said, done.code)
        return SubmittedRun(slot=slot, job=job, at=now, log=self._log_path(found, slot, job))

    def submission_argv(self, found: FoundScript, slot: int) -> list[str]:
        """The sbatch command. The script is passed on standard input, so that the checked text is
        submitted."""
        queue = found.script is not None and found.script.overlap == "queue"
        return [
            "sbatch",
            "--parsable",
            *self._options,
            f"--job-name={_job_name(found.key)}",
            f"--comment={_comment_mark(slot)}",
            f"--output={script_logs.log_pattern(self._base, found.key, slot)}",
            *(["--dependency=singleton"] if queue else []),
        ]

    def find_earlier_job(self, found: FoundScript, slot: int, now: float) -> SubmittedRun | None:
        """The job of an earlier attempt that seemed to fail. Raises CannotTell.

        A submission that timed out may still succeed, because Slurm reads the request later.
        """
        mark = make_nonce()
        mine = ("-u", str(os.getuid()), "-n", _job_name(found.key), "-t", "all")
        out = self._client.ask_slurm(*SQUEUE_COLUMNS, *mine, "-o", f"%A{mark}%k{mark}")
        fields = [decode_text(part).strip("\n") for part in out.split(mark.encode())]
        jobs = dict(zip(fields[1::2], fields[0::2], strict=False))
        job = jobs.get(_comment_mark(slot))
        if job is None:
            return None
        return SubmittedRun(slot=slot, job=job, at=now, log=self._log_path(found, slot, job))

    def refresh_ends(self, runs: Sequence[SubmittedRun]) -> list[SubmittedRun]:
        """The runs, with the ends that are known by now."""
        if all(run.is_over for run in runs) or self._queued_jobs is None:
            return list(runs)
        return [
            run if run.is_over or run.job in self._queued_jobs else self._refresh_end(run)
            for run in runs
        ]

    @cached_property
    def _queued_jobs(self) -> frozenset[str] | None:
        """This user's jobs that have not ended. Arrays are also listed under their own id. None if
        Slurm does not answer.

        Slurm is asked only once.
        """
        try:
            out = self._client.ask_slurm(*SQUEUE_COLUMNS, "-u", str(os.getuid()), "-o", "%A %F")
        except CannotTell:
            return None
        return frozenset(decode_lines(out).split())

    def _refresh_end(self, run: SubmittedRun) -> SubmittedRun:
        try:
            end = self._snapshot.job_end(run.job)
        except CannotTell:
            return run
        if end is None:
            return replace(run, state=LOST_STATE)
        if end.state in LIVE:
            return run
        return replace(run, state=end.state, code=end.exit_code, ended=end.ended)

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


def _comment_mark(slot: int) -> str:
    return f"sentinel cron {slot}"
