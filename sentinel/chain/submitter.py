"""Scripts handed to sbatch, and how their jobs ended."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property

from sentinel import proc
from sentinel.chain import script_logs
from sentinel.chain.queue import SQUEUE, Refused, refusal
from sentinel.chain.script_history import Submitted
from sentinel.chain.scripts import Found
from sentinel.core.errors import CannotTell
from sentinel.core.text import visible
from sentinel.slurm.client import SETTINGS, command, neutral
from sentinel.slurm.complaints import complaint
from sentinel.slurm.ends import LIVE
from sentinel.slurm.snapshot import Snapshot
from sentinel.slurm.words import nonce, text

LOST = "LOST"
"""In place of Slurm's word where neither slurmctld nor accounting remembers the job."""


class Submitter:
    """sbatch for one pass over one cron directory; `options` win over what a script says."""

    def __init__(self, snapshot: Snapshot, base: str, options: Mapping[str, str]) -> None:
        self._snapshot, self._client, self._base = snapshot, snapshot.client, base
        self._options = [f"--{key}={value}" for key, value in options.items()]

    def submit(self, found: Found, slot: int, now: float) -> Submitted:
        """Raises Refused with Slurm's words, CannotTell when it does not answer."""
        try:
            argv = self.command(found, slot)
        except OSError as error:
            where = visible(script_logs.folder(self._base, found.key))
            raise Refused(f"no place for its log: {where}: {error.strerror}") from error
        done = proc.run(
            command(argv, self._client.prefix),
            limit=self._client.limit,
            env=_environ(),
            stdin=found.text,
            cwd=self._base,
        )
        said, job = complaint(done.err), text(done.out).strip().partition(";")[0]
        if done.code or not job.isdigit():
            raise refusal(said, done.code)
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
            f"--output={script_logs.pattern(self._base, found.key, slot)}",
            *(["--dependency=singleton"] if queue else []),
        ]

    def already(self, found: Found, slot: int, now: float) -> Submitted | None:
        """The job of an attempt that seemed to fail: a submission that times out may still happen
        (Slurm reads the message later). Raises CannotTell."""
        mark = nonce()
        mine = ("-u", str(os.getuid()), "-n", _name(found.key), "-t", "all")
        out = self._client.ask(*SQUEUE, *mine, "-o", f"%A{mark}%k{mark}")
        fields = [text(part).strip("\n") for part in out.split(mark.encode())]
        jobs = dict(zip(fields[1::2], fields[0::2], strict=False))
        job = jobs.get(_mark(slot))
        if job is None:
            return None
        return Submitted(slot=slot, job=job, at=now, log=self._log(found, slot, job))

    def ended(self, runs: Sequence[Submitted]) -> list[Submitted]:
        """The runs with what is known of their ends by now."""
        if all(run.over for run in runs) or self._queued is None:
            return list(runs)
        return [run if run.over or run.job in self._queued else self._ended(run) for run in runs]

    @cached_property
    def _queued(self) -> frozenset[str] | None:
        """All jobs of one's own that are not over, arrays by their own number too; asked once.
        None where Slurm does not answer."""
        try:
            out = self._client.ask(*SQUEUE, "-u", str(os.getuid()), "-o", "%A %F")
        except CannotTell:
            return None
        return frozenset(text(out).split())

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

    def _log(self, found: Found, slot: int, job: str) -> str:
        written = script_logs.pattern(self._base, found.key, slot)
        return written.replace("%j", job).replace("%%", "%")


def _environ() -> dict[str, str]:
    """What a script finds, as after sbatch by hand: not how sentinel likes squeue to print times."""
    kept = {k: v for k, v in neutral(os.environ).items() if k not in SETTINGS}
    own = {k: os.environ[k] for k in SETTINGS if k in os.environ and not k.startswith("SLURM_")}
    return kept | own


def _name(key: str) -> str:
    return key.replace("/", ".")


def _mark(slot: int) -> str:
    return f"sentinel cron {slot}"
