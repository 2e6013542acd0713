"""Scripts handed to sbatch, and how their jobs ended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from sentinel import proc
from sentinel.core.crontab.record import Submitted
from sentinel.core.errors import CannotTell
from sentinel.cron import logs
from sentinel.cron.queue import Refused
from sentinel.cron.scripts import Found
from sentinel.slurm.client import command, complaint, neutral
from sentinel.slurm.ends import LIVE
from sentinel.slurm.snapshot import Snapshot
from sentinel.slurm.words import nonce, text

LOST = "LOST"
"""In place of Slurm's word where neither slurmctld nor accounting remembers the job."""


class Submitter:
    """sbatch for one cron directory; `options` stand before what the script says itself."""

    def __init__(self, snapshot: Snapshot, base: str, options: Mapping[str, str]) -> None:
        self._snapshot, self._client, self._base = snapshot, snapshot.client, base
        self._options = [f"--{key}={value}" for key, value in options.items()]

    def submit(self, found: Found, slot: int, now: float) -> Submitted:
        """Raises Refused with Slurm's words, CannotTell when it does not answer."""
        argv = self.command(found, slot)
        done = proc.run(
            command(argv, self._prefix),
            limit=self._client.limit,
            env=neutral(os.environ),
            stdin=found.text,
            cwd=self._base,
        )
        said, job = complaint(done.err), text(done.out).strip().partition(";")[0]
        if done.code or not job.isdigit():
            raise Refused(f"sbatch: {said or f'exit code {done.code} without a word'}")
        return Submitted(slot=slot, job=job, at=now, log=self._log(found, slot, job))

    def command(self, found: Found, slot: int) -> list[str]:
        """The command; the script itself goes in by standard input, as it was looked at."""
        queue = found.script is not None and found.script.overlap == "queue"
        return [
            "sbatch",
            "--parsable",
            *self._options,
            f"--job-name={_name(found.key)}",
            f"--comment={_mark(slot)}",
            f"--output={logs.pattern(self._base, found.key, slot)}",
            *(["--dependency=singleton"] if queue else []),
        ]

    def already(self, found: Found, slot: int, now: float) -> Submitted | None:
        """The job of an attempt that seemed to fail: a submission that times out may still happen
        (Slurm reads the message later). Raises CannotTell."""
        mark = nonce()
        out = self._client.ask(
            "squeue", "-h", "-u", str(os.getuid()), "-n", _name(found.key), "-t", "all", "-o",
            f"%A{mark}%k{mark}",
        )  # fmt: skip
        fields = [text(part).strip("\n") for part in out.split(mark.encode())]
        jobs = dict(zip(fields[1::2], fields[0::2], strict=False))
        job = jobs.get(_mark(slot))
        if job is None:
            return None
        return Submitted(slot=slot, job=job, at=now, log=self._log(found, slot, job))

    def ended(self, runs: Sequence[Submitted]) -> list[Submitted]:
        """The runs with what is known of their ends by now."""
        return [run if run.over else self._ended(run) for run in runs]

    def _ended(self, run: Submitted) -> Submitted:
        from msgspec.structs import replace

        try:
            end = self._snapshot.job_end(run.job)
        except CannotTell:
            return run
        if end is None:
            return replace(run, state=LOST)
        if end.state in LIVE:
            return run
        return replace(run, state=end.state, code=end.exit_code, ended=end.ended)

    @property
    def _prefix(self) -> Sequence[str]:
        return self._client.prefix

    def _log(self, found: Found, slot: int, job: str) -> str:
        written = logs.pattern(self._base, found.key, slot)
        return written.replace("%j", job).replace("%%", "%")


def _name(key: str) -> str:
    return key.replace("/", ".")


def _mark(slot: int) -> str:
    return f"sentinel cron {slot}"
