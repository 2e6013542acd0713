"""`sentinel cron run`: a pass over the cron directories of the configuration or the command line.

One pass over a cron directory: ends are learnt, what is due is submitted, old logs go.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel import proc
from sentinel.chain import script_book, script_logs
from sentinel.chain.queue import SQUEUE_COLUMNS, SubmissionRefused, submission_refusal
from sentinel.chain.script import CronScript
from sentinel.chain.script_book import CronBook
from sentinel.chain.script_history import (
    DueSlots,
    ScriptRecord,
    SubmittedRun,
    due_slots,
    record_failed,
    record_submitted,
    update_record,
)
from sentinel.chain.scripts import FoundScript, find_scripts
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.text import visible
from sentinel.slurm.client import SETTINGS, build_argv, neutral_environment
from sentinel.slurm.complaints import describe_stderr
from sentinel.slurm.ends import LIVE
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.slurm.submission import submitted_job
from sentinel.slurm.words import decode_text, make_nonce

UNDER_WAY_STATE = "the pass that was about to submit it was ended"
"""In the book while sbatch is called, and after it where the pass did not come to its end."""


class CronDirectory(Struct, frozen=True, kw_only=True):
    """What is to be run: `trusted` are uids, `log_age` is in seconds."""

    base: str
    trusted: frozenset[int]
    log_age: float
    log_count: int


class CronPass(Struct, frozen=True):
    """What a pass did: lines for people, and how many submissions failed."""

    lines: tuple[str, ...] = ()
    failures: int = 0


def run_pass(
    directory: CronDirectory,
    submitter: ScriptSubmitter,
    zone: tzinfo,
    now: float,
    *,
    dry_run: bool = False,
) -> CronPass:
    """Raises BadCronDirectory or BadCronBook for the directory as a whole; one script never stops another."""
    scripts = find_scripts(directory.base, directory.trusted)
    if dry_run:
        return _rehearse_pass(scripts, script_book.read_book(directory.base), zone, now)
    with script_book.lock_book(directory.base) as alone:
        if not alone:
            return CronPass((f"{visible(directory.base)}: another pass is at work",))
        worker = _PassWorker(directory.base, submitter, zone, now, scripts)
        for one in scripts:
            if one.script:
                worker.run_script(one, one.script)
        worker.save_book()
    script_logs.clean_logs(directory.base, now, directory.log_age, directory.log_count)
    return CronPass((*worker.lines, *_refusal_lines(worker.refused)), worker.failures)


class _PassWorker:
    """Goes through the scripts of one pass. What it is about to submit it writes down first: a
    pass that is ended in the middle, or a disk that is full, must not submit it twice."""

    def __init__(
        self,
        base: str,
        submitter: ScriptSubmitter,
        zone: tzinfo,
        now: float,
        scripts: Sequence[FoundScript],
    ) -> None:
        self._base, self._submitter, self._zone, self._now = base, submitter, zone, now
        self.refused = {one.key: one.refused for one in scripts if one.refused}
        there = {one.key for one in scripts}
        known = script_book.read_book(base).records
        self._records = {k: r for k, r in known.items() if {k, k.partition("/")[0]} & there}
        self.lines: list[str] = []
        self.failures = 0

    def run_script(self, one: FoundScript, script: CronScript) -> None:
        """Submit what is due of one script; raises BadCronBook."""
        before = self._records.get(one.key)
        runs = self._submitter.refresh_ends(before.runs) if before else ()
        record = update_record(before, runs, self._now)
        wanted = due_slots(script, record, self._now, self._zone)
        submitted: list[SubmittedRun] = []
        if wanted.run:
            self._records[one.key] = record_failed(record, (), UNDER_WAY_STATE)
            self.save_book()
        try:
            for slot in wanted.run:
                submitted.append(self._submit_slot(one, record, slot))
        except SentinelError as error:
            self._records[one.key] = self._record_failure(one, record, submitted, str(error))
        else:
            self._records[one.key] = _settle_record(record, wanted, submitted, self._now)
        if submitted:
            self.save_book()

    def save_book(self) -> None:
        """Raises BadCronBook."""
        script_book.write_book(
            self._base, CronBook(at=self._now, records=self._records, refused=self.refused)
        )

    def _submit_slot(self, one: FoundScript, record: ScriptRecord, slot: int) -> SubmittedRun:
        there = self._submitter.find_earlier_job(one, slot, self._now) if record.trouble else None
        done = there or self._submitter.submit_script(one, slot, self._now)
        self.lines.append(f"{visible(one.key)}: submitted as job {done.job}")
        return done

    def _record_failure(
        self, one: FoundScript, record: ScriptRecord, done: Sequence[SubmittedRun], why: str
    ) -> ScriptRecord:
        self.failures += 1
        self.lines.append(f"{visible(one.key)}: not submitted: {why}")
        return record_failed(record, done, why)


def _settle_record(
    record: ScriptRecord, wanted: DueSlots, submitted: Sequence[SubmittedRun], now: float
) -> ScriptRecord:
    if not (wanted.run or wanted.missed or wanted.skipped):
        return replace(record, trouble="")
    return record_submitted(record, wanted, submitted, now)


def _rehearse_pass(
    scripts: Sequence[FoundScript], known: CronBook, zone: tzinfo, now: float
) -> CronPass:
    lines = []
    for one in scripts:
        if one.script:
            before = known.records.get(one.key)
            record = update_record(before, before.runs if before else (), now)
            run = due_slots(one.script, record, now, zone).run
            lines.append(
                f"{visible(one.key)}: {'would be submitted' if run else 'is not due'} "
                f"({one.script.schedule.text})"
            )
    return CronPass(
        (*lines, *_refusal_lines({one.key: one.refused for one in scripts if one.refused}))
    )


def _refusal_lines(refused: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{visible(key)}: refused: {visible(why)}" for key, why in refused.items())


class NoCronDirectory(SentinelError):
    """Nothing names a cron directory."""

    exit_code = 64


class NoTrustedUser(SentinelError):
    """`trust` names somebody whom this host does not know."""

    exit_code = 78


def run_cron_check(kind: Any, snapshot: SlurmSnapshot, zone: tzinfo, *, dry_run: bool) -> CronPass:
    """A pass over the directory of a configured check of kind `cron`."""
    base = os.path.abspath(kind.base)
    directory = CronDirectory(
        base=base,
        trusted=trusted_uids(kind.trust),
        log_age=float(kind.logs.age),
        log_count=kind.logs.count,
    )
    submitter = ScriptSubmitter(snapshot, base, kind.sbatch)
    return run_pass(directory, submitter, zone, time.time(), dry_run=dry_run)


def trusted_uids(names: Sequence[str]) -> frozenset[int]:
    """Of those named, of oneself, and of root, who may do all anyway; raises NoTrustedUser."""
    import pwd

    found = {0, os.geteuid()}
    for name in names:
        try:
            found.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise NoTrustedUser(f"trust: there is no user {name!r} on this host") from None
    return frozenset(found)


# Scripts handed to sbatch, and how their jobs ended.


LOST_STATE = "LOST"
"""In place of Slurm's word where neither slurmctld nor accounting remembers the job."""


class ScriptSubmitter:
    """sbatch for one pass over one cron directory; `options` win over what a script says."""

    def __init__(self, snapshot: SlurmSnapshot, base: str, options: Mapping[str, str]) -> None:
        self._snapshot, self._client, self._base = snapshot, snapshot.client, base
        self._options = [f"--{key}={value}" for key, value in options.items()]

    def submit_script(self, found: FoundScript, slot: int, now: float) -> SubmittedRun:
        """Raises SubmissionRefused with Slurm's words, CannotTell when it does not answer."""
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
        """The command; the script itself goes in by standard input, as it was looked at."""
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
        """The job of an attempt that seemed to fail: a submission that times out may still happen
        (Slurm reads the message later). Raises CannotTell."""
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
        """The runs with what is known of their ends by now."""
        if all(run.is_over for run in runs) or self._queued_jobs is None:
            return list(runs)
        return [
            run if run.is_over or run.job in self._queued_jobs else self._refresh_end(run)
            for run in runs
        ]

    @cached_property
    def _queued_jobs(self) -> frozenset[str] | None:
        """All jobs of one's own that are not over, arrays by their own number too; asked once.
        None where Slurm does not answer."""
        try:
            out = self._client.ask_slurm(*SQUEUE_COLUMNS, "-u", str(os.getuid()), "-o", "%A %F")
        except CannotTell:
            return None
        return frozenset(decode_text(out).split())

    def _refresh_end(self, run: SubmittedRun) -> SubmittedRun:
        from msgspec.structs import replace

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
    """What a script finds, as after sbatch by hand: not how sentinel likes squeue to print times."""
    kept = {k: v for k, v in neutral_environment(os.environ).items() if k not in SETTINGS}
    own = {k: os.environ[k] for k in SETTINGS if k in os.environ and not k.startswith("SLURM_")}
    return kept | own


def _job_name(key: str) -> str:
    return key.replace("/", ".")


def _comment_mark(slot: int) -> str:
    return f"sentinel cron {slot}"
