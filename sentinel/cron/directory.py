"""One pass over a cron directory: ends are learnt, what is due is submitted, old logs go."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.crontab.record import Due, Record, Submitted, after, due, failed
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.cron import book, logs
from sentinel.cron.book import Book
from sentinel.cron.scripts import Found, find
from sentinel.cron.submitter import Submitter


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
    found = find(directory.base, directory.trusted)
    if dry_run:
        return _rehearsed(found, book.read(directory.base), zone, now)
    with book.writing(directory.base) as alone:
        if not alone:
            return Pass((f"{visible(directory.base)}: another pass is at work",))
        known = book.read(directory.base)
        worker = _Worker(submitter, zone, now, known.records)
        records = {f.key: worker.script(f) for f in found if f.script}
        refused = {f.key: f.refused for f in found if f.refused}
        book.write(directory.base, Book(at=now, records=records, refused=refused))
    logs.clean(directory.base, now, directory.log_age, directory.log_count)
    return Pass((*worker.lines, *_refusals(refused)), worker.failures)


class _Worker:
    """Goes through the scripts of one pass."""

    def __init__(
        self, submitter: Submitter, zone: tzinfo, now: float, records: Mapping[str, Record]
    ) -> None:
        self._submitter, self._zone, self._now, self._records = submitter, zone, now, records
        self.lines: list[str] = []
        self.failures = 0

    def script(self, found: Found) -> Record:
        """The script's record after this pass; a script seen first waits for its next slot."""
        assert found.script is not None
        record = self._records.get(found.key) or Record(handled=self._now)
        record = replace(record, runs=tuple(self._submitter.ended(record.runs)))
        wanted = due(found.script, record, self._now, self._zone)
        submitted: list[Submitted] = []
        try:
            for slot in wanted.run:
                submitted.append(self._submit(found, record, slot))
        except SentinelError as error:
            return self._failed(found, record, wanted, submitted, str(error))
        if not (wanted.run or wanted.missed or wanted.skipped):
            return replace(record, trouble="")
        return after(record, wanted, submitted, self._now)

    def _submit(self, found: Found, record: Record, slot: int) -> Submitted:
        there = self._submitter.already(found, slot, self._now) if record.trouble else None
        done = there or self._submitter.submit(found, slot, self._now)
        self.lines.append(f"{visible(found.key)}: submitted as job {done.job}")
        return done

    def _failed(
        self, found: Found, record: Record, wanted: Due, done: list[Submitted], why: str
    ) -> Record:
        self.failures += 1
        self.lines.append(f"{visible(found.key)}: not submitted: {why}")
        if done:  # those of catchup=all that were taken are not submitted again
            record = replace(
                after(record, Due(run=wanted.run), done, self._now), handled=done[-1].slot
            )
        return failed(record, wanted, why)


def _rehearsed(found: list[Found], known: Book, zone: tzinfo, now: float) -> Pass:
    lines = []
    for f in found:
        if f.script:
            record = known.records.get(f.key) or Record(handled=now)
            run = due(f.script, record, now, zone).run
            lines.append(
                f"{visible(f.key)}: {'would be submitted' if run else 'is not due'} "
                f"({f.script.schedule.text})"
            )
    return Pass((*lines, *_refusals({f.key: f.refused for f in found if f.refused})))


def _refusals(refused: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{visible(key)}: refused: {visible(why)}" for key, why in refused.items())
