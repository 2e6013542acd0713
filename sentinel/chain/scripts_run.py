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
from sentinel.chain.queue import SQUEUE, Refused, refusal
from sentinel.chain.script import Script
from sentinel.chain.script_book import Book
from sentinel.chain.script_history import Due, Record, Submitted, after, due, failed, found
from sentinel.chain.scripts import Found, find
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.text import visible
from sentinel.slurm.client import SETTINGS, command, neutral
from sentinel.slurm.complaints import complaint
from sentinel.slurm.ends import LIVE
from sentinel.slurm.snapshot import Snapshot
from sentinel.slurm.submission import submitted_job
from sentinel.slurm.words import nonce, text

UNDER_WAY = "the pass that was about to submit it was ended"
"""In the book while sbatch is called, and after it where the pass did not come to its end."""


class Directory(Struct, frozen=True, kw_only=True):
    """What is to be run: `trusted` are uids, `log_age` is in seconds."""

    base: str
    trusted: frozenset[int]
    log_age: float
    log_count: int


class Pass(Struct, frozen=True):
    """What a pass did: lines for people, and how many submissions failed."""

    lines: tuple[str, ...] = ()
    failures: int = 0


def run(
    directory: Directory,
    submitter: Submitter,
    zone: tzinfo,
    now: float,
    *,
    dry_run: bool = False,
) -> Pass:
    """Raises BadBase or BadBook for the directory as a whole; one script never stops another."""
    scripts = find(directory.base, directory.trusted)
    if dry_run:
        return _rehearsed(scripts, script_book.read(directory.base), zone, now)
    with script_book.writing(directory.base) as alone:
        if not alone:
            return Pass((f"{visible(directory.base)}: another pass is at work",))
        worker = _Worker(directory.base, submitter, zone, now, scripts)
        for one in scripts:
            if one.script:
                worker.script(one, one.script)
        worker.write()
    script_logs.clean(directory.base, now, directory.log_age, directory.log_count)
    return Pass((*worker.lines, *_refusals(worker.refused)), worker.failures)


class _Worker:
    """Goes through the scripts of one pass. What it is about to submit it writes down first: a
    pass that is ended in the middle, or a disk that is full, must not submit it twice."""

    def __init__(
        self, base: str, submitter: Submitter, zone: tzinfo, now: float, scripts: Sequence[Found]
    ) -> None:
        self._base, self._submitter, self._zone, self._now = base, submitter, zone, now
        self.refused = {one.key: one.refused for one in scripts if one.refused}
        there = {one.key for one in scripts}
        known = script_book.read(base).records
        self._records = {k: r for k, r in known.items() if {k, k.partition("/")[0]} & there}
        self.lines: list[str] = []
        self.failures = 0

    def script(self, one: Found, script: Script) -> None:
        """Submit what is due of one script; raises BadBook."""
        before = self._records.get(one.key)
        runs = self._submitter.ended(before.runs) if before else ()
        record = found(before, runs, self._now)
        wanted = due(script, record, self._now, self._zone)
        submitted: list[Submitted] = []
        if wanted.run:
            self._records[one.key] = failed(record, (), UNDER_WAY)
            self.write()
        try:
            for slot in wanted.run:
                submitted.append(self._submit(one, record, slot))
        except SentinelError as error:
            self._records[one.key] = self._failed(one, record, submitted, str(error))
        else:
            self._records[one.key] = _settled(record, wanted, submitted, self._now)
        if submitted:
            self.write()

    def write(self) -> None:
        """Raises BadBook."""
        script_book.write(
            self._base, Book(at=self._now, records=self._records, refused=self.refused)
        )

    def _submit(self, one: Found, record: Record, slot: int) -> Submitted:
        there = self._submitter.already(one, slot, self._now) if record.trouble else None
        done = there or self._submitter.submit(one, slot, self._now)
        self.lines.append(f"{visible(one.key)}: submitted as job {done.job}")
        return done

    def _failed(self, one: Found, record: Record, done: Sequence[Submitted], why: str) -> Record:
        self.failures += 1
        self.lines.append(f"{visible(one.key)}: not submitted: {why}")
        return failed(record, done, why)


def _settled(record: Record, wanted: Due, submitted: Sequence[Submitted], now: float) -> Record:
    if not (wanted.run or wanted.missed or wanted.skipped):
        return replace(record, trouble="")
    return after(record, wanted, submitted, now)


def _rehearsed(scripts: Sequence[Found], known: Book, zone: tzinfo, now: float) -> Pass:
    lines = []
    for one in scripts:
        if one.script:
            before = known.records.get(one.key)
            record = found(before, before.runs if before else (), now)
            run = due(one.script, record, now, zone).run
            lines.append(
                f"{visible(one.key)}: {'would be submitted' if run else 'is not due'} "
                f"({one.script.schedule.text})"
            )
    return Pass((*lines, *_refusals({one.key: one.refused for one in scripts if one.refused})))


def _refusals(refused: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{visible(key)}: refused: {visible(why)}" for key, why in refused.items())


class NoDirectory(SentinelError):
    """Nothing names a cron directory."""

    exit_code = 64


class NoUser(SentinelError):
    """`trust` names somebody whom this host does not know."""

    exit_code = 78


def one(kind: Any, snapshot: Snapshot, zone: tzinfo, *, dry_run: bool) -> Pass:
    """A pass over the directory of a configured check of kind `cron`."""
    base = os.path.abspath(kind.base)
    directory = Directory(
        base=base,
        trusted=uids(kind.trust),
        log_age=float(kind.logs.age),
        log_count=kind.logs.count,
    )
    submitter = Submitter(snapshot, base, kind.sbatch)
    return run(directory, submitter, zone, time.time(), dry_run=dry_run)


def uids(names: Sequence[str]) -> frozenset[int]:
    """Of those named, of oneself, and of root, who may do all anyway; raises NoUser."""
    import pwd

    found = {0, os.geteuid()}
    for name in names:
        try:
            found.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise NoUser(f"trust: there is no user {name!r} on this host") from None
    return frozenset(found)


# Scripts handed to sbatch, and how their jobs ended.


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
        said, job = complaint(done.err), submitted_job(done.out)
        if done.code or not job:
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
