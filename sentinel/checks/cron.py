"""The `cron` kind: did the scripts of a cron directory run when they should, and end well."""

import os
import time
from shlex import quote
from typing import ClassVar

from msgspec import Struct

from sentinel.chain import script_book
from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.core.clock import SECOND
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.model import Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.core.values import Duration, duration_text
from sentinel.plugin import Check

TAIL_BYTES = 2000
"""Bytes of a log that are shown."""


class LogRetention(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long and how many logs of a script are kept.

    age: A log older than this is removed.
    count: So many logs of a script are kept.
    """

    age: Duration = Duration(30 * 86400)
    count: int = 30


class CronCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scripts in cron.hourly, cron.daily, …: submitted on time, and what became of them.

    base: The directory that holds cron.hourly, cron.daily and so on.
    trust: Whose scripts run besides yours and root's.
    sbatch: Options of sbatch(1) that win over a script's own #SBATCH lines.
    logs: Which logs of the scripts are kept.
    stale_after: Critical when no pass of `sentinel cron run` came by for so long.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 30
    SOURCES = ("The book that `sentinel cron run` keeps below `base`.",)
    RUNBOOK = "docs/cron.md"

    base: FilePath
    trust: list[str] = []
    sbatch: dict[str, str] = {}
    logs: LogRetention = LogRetention()
    stale_after: Duration = Duration(3600)

    def run(self, ctx: Context) -> Report:
        """One finding per script, and one about the passes of `sentinel cron run` themselves."""
        base = os.path.abspath(self.base)
        try:
            known = script_book.read_book(base)
        except SentinelError as error:
            raise CannotTell(str(error)) from error
        now = ctx.now.wall / SECOND
        found = (
            self._judge_passes(known, now),
            *(_judge_script(k, r) for k, r in known.records.items() if not _is_refused(k, known)),
            *(_refused_finding(key, why) for key, why in known.refused.items()),
        )
        seen = (f.subject for f in found if f.status is not Status.UNKNOWN)
        return Report(
            findings=found,
            coverage=covered("passes and scripts", (f.subject for f in found), seen),
        )

    def _judge_passes(self, known: script_book.CronBook, now: float) -> Finding:
        at, age = known.at, now - known.at
        none = "" if known.records or known.refused else "; no script is there"
        if -age > self.stale_after:
            return Finding(
                subject="passes",
                status=Status.UNKNOWN,
                summary=f"the last pass is dated {duration_text(-age)} ahead: a clock is wrong",
            )
        if at and age <= self.stale_after:
            return Finding(
                subject="passes",
                status=Status.OK,
                summary=f"last {duration_text(max(age, 0))} ago{none}",
            )
        said = f"for {duration_text(age)}" if at else "yet"
        return Finding(
            subject="passes",
            status=Status.CRITICAL,
            summary=f"no pass over {visible(self.base)} {said}: nothing of it is submitted",
            commands=("sentinel cron status", "sentinel cron run"),
        )


def _judge_script(key: str, record: ScriptRecord) -> Finding:
    newest = next((run for run in record.runs if run.is_over), None)
    text, status = _script_status(record, newest)
    bad = newest is not None and status is not Status.OK
    return Finding(
        subject=visible(key),
        status=status,
        summary=visible(text),
        details=_log_tail(newest.log) if bad and newest else "",
        commands=(f"less {quote(newest.log)}",) if bad and newest and newest.log else (),
    )


def _script_status(record: ScriptRecord, newest: SubmittedRun | None) -> tuple[str, Status]:
    if record.trouble:
        return f"not submitted: {record.trouble}", Status.WARNING
    if newest and newest.state == "LOST":
        return (
            f"job {newest.job}: nothing remembers how it ended (no accounting, and more than "
            "MinJobAge between two passes)",
            Status.UNKNOWN,
        )
    if newest and (newest.state != "COMPLETED" or newest.code):
        code = f" with exit code {newest.code}" if newest.code else ""
        return f"job {newest.job} {newest.state}{code}, slot {_run_time(newest)}", Status.WARNING
    if record.skipped > 1:
        return (
            f"{record.skipped} slots skipped: job {_open_jobs(record)} is not over",
            Status.WARNING,
        )
    if record.missed:
        slots = "1 slot" if record.missed == 1 else f"{record.missed} slots"
        return f"{slots} missed while nothing ran", Status.WARNING
    if newest:
        return f"job {newest.job} COMPLETED, slot {_run_time(newest)}", Status.OK
    return "submitted" if record.runs else "waits for its first slot", Status.OK


def _refused_finding(key: str, why: str) -> Finding:
    return Finding(
        subject=visible(key), status=Status.WARNING, summary=visible(f"is not run: {why}")
    )


def _is_refused(key: str, known: script_book.CronBook) -> bool:
    """Itself, or its directory: its past says nothing then."""
    return key in known.refused or key.partition("/")[0] in known.refused


def _open_jobs(record: ScriptRecord) -> str:
    return ", ".join(run.job for run in record.open_runs)


def _run_time(run: SubmittedRun) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(run.slot))


def _log_tail(path: str) -> str:
    """The end of a log; nothing where something else lies in its place, as a link might."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        size = os.fstat(fd).st_size
        data = os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
    except OSError:
        return ""
    finally:
        os.close(fd)
    return shortened(visible_lines(data.decode("utf-8", "backslashreplace")), TAIL_BYTES)
