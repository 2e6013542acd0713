"""The `cron` kind: did the scripts of a cron directory run when they should, and end well."""

import os
from collections.abc import Iterator
from contextlib import suppress
from glob import escape, glob
from typing import ClassVar

from msgspec import Struct

from sentinel.chain import script_book
from sentinel.chain.cron_trust import make_cron_trust
from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.chain.scripts import BadCronDirectory, find_scripts, read_base
from sentinel.checks.cron_remedies import (
    find_chmod,
    format_slot,
    guide_refused,
    guide_script,
    suggest_repair,
    suggest_repair_commands,
    suggest_script_commands,
)
from sentinel.core.clock import SECOND
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.guidance import Guidance, look
from sentinel.core.model import Finding, Report, Status, covered
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.core.values import Duration, duration_text, since_text
from sentinel.homes import get_user_name
from sentinel.plugin import Check
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose

TAIL_BYTES = 2000
"""Bytes of a log that are shown."""
LOG_LIMIT_S = 5.0
"""Seconds for one access to a log, because its file system may hang."""
MAX_QUOTED_LINES = 11
"""How many lines of a log are shown. Messages show twelve lines, and the first one names the
log."""


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
    trust_groups: Groups that may write scripts and their directories.
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
    trust_groups: list[str] = []
    sbatch: dict[str, str] = {}
    logs: LogRetention = LogRetention()
    stale_after: Duration = Duration(3600)

    def trusted_paths(self) -> list[str]:
        """The directories of scripts, and where the book and the logs are."""
        base = os.path.abspath(self.base)
        return [base, *sorted(glob(f"{escape(base)}/cron.*/")), f"{base}/.sentinel", f"{base}/log"]

    def doubts(self) -> Iterator[str]:
        """Scripts that may be copies of others."""
        with suppress(SentinelError):  # the check itself tells that
            trust = make_cron_trust(self.trust, self.trust_groups)
            for one in find_scripts(os.path.abspath(self.base), trust.uids, trust.gids):
                if one.twin:
                    yield (
                        f"{visible(one.key)} may be a copy of {visible(one.twin)}: rename it, or take it away;"
                        " it still runs in this release"
                    )

    def run(self, ctx: Context) -> Report:
        """One finding per script, and one about the passes of `sentinel cron run`."""
        base = os.path.abspath(self.base)
        try:
            known, keeper = script_book.read_kept_book(base)
            self._require_known_keeper(base, keeper)
            refused = self._find_refusal(base, keeper)
        except SentinelError as error:
            raise CannotTell(str(error)) from error
        now = ctx.now.wall / SECOND
        found = (
            refused or self._judge_passes(known, now),
            *(
                _judge_script(base, k, r, keeper, now)
                for k, r in known.records.items()
                if not _is_refused(k, known)
            ),
            *(
                _refused_finding(base, key, why, known.records.get(key), now)
                for key, why in known.refused.items()
            ),
        )
        seen = (f.subject for f in found if f.status is not Status.UNKNOWN)
        return Report(
            findings=found,
            coverage=covered("passes and scripts", (f.subject for f in found), seen),
        )

    def _require_known_keeper(self, base: str, keeper: int) -> None:
        """Raise CannotTell if the book belongs to a user who is not trusted. If a group may write
        to the directory, each of its members could put one there."""
        try:
            known = {*make_cron_trust(self.trust).uids, os.stat(base).st_uid}
        except OSError as error:
            raise CannotTell(f"{visible(base)}: {error.strerror}") from error
        if keeper not in known:
            raise CannotTell(
                f"the book in {visible(base)} belongs to {visible(get_user_name(keeper))}, whom "
                "`trust` does not name, and who is not the owner of the directory"
            )

    def _find_refusal(self, base: str, keeper: int) -> Finding | None:
        """Why `sentinel cron run` of this user, who keeps the book, starts nothing there at all.
        Raises NoTrustedUser."""
        trust = make_cron_trust(self.trust, self.trust_groups)
        try:
            if keeper == os.geteuid():
                read_base(base, trust.uids, trust.gids)
        except BadCronDirectory as error:
            return Finding(
                subject="schedule",
                status=Status.CRITICAL,
                summary=f"no script is started: {error}",
                guidance=Guidance(
                    impact="No script there runs until that is mended.",
                    todo="Take the right to write away, as the line in brackets does, or name the user in"
                    " `trust` or the group in `trust_groups` of the check.",
                ),
            )
        return None

    def _judge_passes(self, known: script_book.CronBook, now: float) -> Finding:
        at, age = known.at, now - known.at
        none = "" if known.records or known.refused else "; no script is there"
        if -age > self.stale_after:
            return Finding(
                subject="schedule",
                status=Status.UNKNOWN,
                summary=f"the last pass is dated {duration_text(-age)} ahead: a clock is wrong",
            )
        if at and age <= self.stale_after:
            return Finding(
                subject="schedule",
                status=Status.OK,
                summary=f"last {duration_text(max(age, 0))} ago{none}",
            )
        said = f"for {duration_text(age)} ({since_text(at, now)})" if at else "so far"
        return Finding(
            subject="schedule",
            status=Status.CRITICAL,
            summary=f"nothing has started `sentinel cron run` {said}, so no script in "
            f"{visible(self.base)} is started",
            commands=(look("sentinel cron status"),),
            guidance=Guidance(
                impact="No script there runs until something starts it again.",
                todo="`sentinel cron status` below shows what should have started it: a timer, a line of a"
                " crontab or jobs of Slurm. Switch that on again, as its user. `sentinel cron run`"
                " by hand only bridges the gap.",
            ),
        )


def _judge_script(base: str, key: str, record: ScriptRecord, keeper: int, now: float) -> Finding:
    newest = next((run for run in record.runs if run.is_over), None)
    text, status = _script_status(record, newest)
    bad = status is not Status.OK
    path = os.path.join(base, key)
    return Finding(
        subject=visible(key),
        status=status,
        summary=visible(text),
        details=_quote_log(newest.log, keeper) if bad and newest else "",
        commands=suggest_script_commands(path, record, newest) if bad else (),
        guidance=guide_script(path, record, newest, now) if bad else Guidance(),
    )


def _script_status(record: ScriptRecord, newest: SubmittedRun | None) -> tuple[str, Status]:
    if record.trouble:
        return f"not submitted: {record.trouble}", Status.WARNING
    if newest and newest.state == "LOST" and not newest.job:
        return (
            f"whether the run of {format_slot(newest.slot)} was submitted is not known: its pass was "
            "ended, and nothing remembers a job of it (no accounting)",
            Status.UNKNOWN,
        )
    if newest and newest.elements:
        return (
            f"the run of {format_slot(newest.slot)} ended badly in {newest.elements} "
            f"(Slurm job array {newest.job})",
            Status.WARNING,
        )
    if newest and newest.state == "LOST":
        return (
            f"job {newest.job}: nothing remembers how it ended (no accounting, and more than "
            "MinJobAge between two passes)",
            Status.UNKNOWN,
        )
    if newest and (newest.state != "COMPLETED" or newest.code):
        state = "" if newest.state in ("FAILED", "COMPLETED") else f" in state {newest.state}"
        code = f" with exit code {newest.code}" if newest.code else ""
        verb = "ended" if state else "failed"
        return (
            f"the run of {format_slot(newest.slot)} {verb}{state}{code} (Slurm job {newest.job})",
            Status.WARNING,
        )
    if record.skipped > 1:
        return (
            f"{record.skipped} runs skipped: job {_open_jobs(record)} is not over",
            Status.WARNING,
        )
    if record.missed:
        runs = "1 run" if record.missed == 1 else f"{record.missed} runs"
        return f"{runs} missed: nothing called `sentinel cron run` then", Status.WARNING
    if newest:
        return f"the run of {format_slot(newest.slot)} completed: job {newest.job}", Status.OK
    return "submitted" if record.runs else "not due yet", Status.OK


def _refused_finding(
    base: str, key: str, why: str, record: ScriptRecord | None, now: float
) -> Finding:
    path, unsafe = os.path.join(base, key), find_chmod(why)
    return Finding(
        subject=visible(key),
        status=Status.WARNING,
        summary=visible(f"is skipped as unsafe: {why}" if unsafe else f"is skipped: {why}"),
        commands=suggest_repair_commands(path, why),
        acts=suggest_repair(path, why),
        guidance=guide_refused(path, why, record, now),
    )


def _is_refused(key: str, known: script_book.CronBook) -> bool:
    """Whether the script or its directory is refused. Its past says nothing then."""
    return key in known.refused or key.partition("/")[0] in known.refused


def _open_jobs(record: ScriptRecord) -> str:
    return ", ".join(run.job for run in record.open_runs)


def _quote_log(path: str, keeper: int) -> str:
    """The last lines of a log, below a line that names it."""
    lines = _log_tail(path, keeper).strip().split("\n")[-MAX_QUOTED_LINES:]
    return (
        "\n".join((f"last lines of {visible(os.path.basename(path))}:", *lines)) if lines[0] else ""
    )


def _log_tail(path: str, keeper: int) -> str:
    """The end of a log. Empty if something else is in its place, such as a link.

    The path was written by the `keeper` of the book. So it is read with that user's rights, and
    must belong to that user.
    """
    files, whose = UserFiles(LOG_LIMIT_S, LOG_LIMIT_S, {}), Whose(user=str(keeper), owned=True)
    try:
        linked, _ = files.read_link(path, whose)
        tail = "" if linked else files.read_tail(path, TAIL_BYTES, whose)
    except CannotTell:
        return ""
    return shortened(visible_lines(tail or ""), TAIL_BYTES)
