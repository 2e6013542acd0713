"""`sentinel cron run`: a pass over the cron directories of the configuration or the command line.

One pass over a cron directory: ends are learnt, what is due is submitted, old logs go.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain import script_book, script_logs
from sentinel.chain.script import Script
from sentinel.chain.script_book import Book
from sentinel.chain.script_history import Due, Record, Submitted, after, due, failed, found
from sentinel.chain.scripts import Found, find
from sentinel.chain.submitter import Submitter
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible

if TYPE_CHECKING:
    from sentinel.slurm.snapshot import Snapshot


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
