"""`sentinel cron run`: one pass over the cron directories of the configuration or the command line.

A pass over a directory records which runs have ended, submits what is due, and removes old logs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain import script_book, script_logs
from sentinel.chain.cron_trust import CronTrust, make_cron_trust
from sentinel.chain.queue import SubmissionRefused
from sentinel.chain.script import CronScript
from sentinel.chain.script_book import BadCronBook, CronBook
from sentinel.chain.script_history import (
    DueSlots,
    ScriptRecord,
    SubmittedRun,
    due_slots,
    record_begun,
    record_failed,
    record_settled,
    record_submitted,
    update_next_slot,
    update_record,
)
from sentinel.chain.scripts import FoundScript, find_scripts
from sentinel.chain.scripts_submit import ScriptSubmitter
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible
from sentinel.slurm.snapshot import SlurmSnapshot

UNDER_WAY_STATE = "the pass that was about to submit it was ended"
"""The note in the records while sbatch runs. It stays if the pass is interrupted."""


class CronDirectory(Struct, frozen=True, kw_only=True):
    """A directory whose scripts are to be run. `log_age` is in seconds."""

    base: str
    trust: CronTrust
    log_age: float
    log_count: int


class CronPass(Struct, frozen=True):
    """The result of a pass: lines for people, and how many submissions failed."""

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
    """Run one pass. A bad script never stops the others.

    Raises BadCronDirectory or BadCronBook if the directory as a whole cannot be run.
    """
    trust = directory.trust
    scripts = find_scripts(directory.base, trust.uids, trust.gids)
    if dry_run:
        return _rehearse_pass(scripts, script_book.read_book(directory.base), zone, now)
    with script_book.lock_book(directory.base, trust) as alone:
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
    """Handles the scripts of one pass.

    It records each submission before it makes it. So an interrupted pass or a full disk does not
    lead to a second submission.
    """

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
        """Submit the due runs of one script. Raises BadCronBook."""
        before = self._records.get(one.key)
        try:
            settled = before and self._settle_begun(one, before)
        except SentinelError as error:
            self._record_failure(one, self._records[one.key], error)
            return
        runs = self._submitter.refresh_ends(settled.runs) if settled else ()
        record = update_record(settled, runs, self._now)
        wanted = due_slots(script, record, self._now, self._zone)
        submitted: list[SubmittedRun] = []
        begun = record
        try:
            for slot in wanted.run:
                begun = record_begun(record, submitted, slot, self._now, UNDER_WAY_STATE)
                self._records[one.key] = begun
                self.save_book()
                submitted.append(self._submit_slot(one, slot))
        except BadCronBook:
            raise
        except SentinelError as error:
            self._record_failure(one, begun, error)
        else:
            self._records[one.key] = _settle_record(record, wanted, submitted, self._now)
        self._records[one.key] = update_next_slot(
            self._records[one.key], script, self._now, self._zone
        )
        if submitted:
            self.save_book()

    def save_book(self) -> None:
        """Write the records. Raises BadCronBook."""
        script_book.write_book(
            self._base, CronBook(at=self._now, records=self._records, refused=self.refused)
        )

    def _settle_begun(self, one: FoundScript, record: ScriptRecord) -> ScriptRecord:
        """Find out what became of a submission whose job id never came back. Raises CannotTell."""
        if record.begun_slot:
            there = self._submitter.find_begun_job(one, record, self._now)
        elif record.trouble:
            there = self._submitter.find_commented_job(one, record)
        else:
            return record
        if there and there.job:
            self.lines.append(f"{visible(one.key)}: submitted as job {there.job}")
        return record_settled(record, there)

    def _submit_slot(self, one: FoundScript, slot: int) -> SubmittedRun:
        done = self._submitter.submit_script(one, slot, self._now)
        self.lines.append(f"{visible(one.key)}: submitted as job {done.job}")
        return done

    def _record_failure(self, one: FoundScript, record: ScriptRecord, error: SentinelError) -> None:
        self.failures += 1
        self.lines.append(f"{visible(one.key)}: not submitted: {error}")
        refused = record.begun_refused or isinstance(error, SubmissionRefused)
        self._records[one.key] = replace(
            record_failed(record, (), str(error)), begun_refused=refused
        )


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
    """Neither the configuration nor the command line names a cron directory."""

    exit_code = 64


def run_cron_check(kind: Any, snapshot: SlurmSnapshot, zone: tzinfo, *, dry_run: bool) -> CronPass:
    """Run one pass over the directory of a configured check of kind `cron`."""
    base = os.path.abspath(kind.base)
    directory = CronDirectory(
        base=base,
        trust=make_cron_trust(kind.trust, kind.trust_groups),
        log_age=float(kind.logs.age),
        log_count=kind.logs.count,
    )
    submitter = ScriptSubmitter(snapshot, base, kind.sbatch, directory.trust)
    return run_pass(directory, submitter, zone, time.time(), dry_run=dry_run)
