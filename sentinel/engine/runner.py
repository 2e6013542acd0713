"""One run of one check: under a limit, with every error turned into an answer.

Threads are those of `_thread`: importing `threading` and `logging` would cost a one-shot most
of the interpreter's own start-up again.
"""

import sys
import time
from _thread import LockType, allocate_lock, start_new_thread
from typing import TYPE_CHECKING

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from sentinel.alerting.observations import RunOutcome
from sentinel.core.clock import SECOND, Instant
from sentinel.core.due import get_follow_interval_s
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import CheckConfig
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.user_files.session import shared_reader

if TYPE_CHECKING:
    from datetime import tzinfo

_GRACE_S = 2.0


def is_scheduled_run(check: CheckConfig, now: Instant, zone: "tzinfo") -> bool:
    """Whether a run is one at its own time: always, unless it may be one in between. A run that
    is late by a few minutes is still that of its time."""
    if get_follow_interval_s(check) is None or check.common.cron is None:
        return True
    from sentinel.core import cron

    wall = now.wall / SECOND
    return (
        cron.find_latest_time(cron.parse_cron(check.common.cron), wall, MAX_LATE_S, zone)
        is not None
    )


MAX_LATE_S = 300.0
"""Seconds."""


class _RunAnswer(Struct):
    report: Report | None = None
    error: str = ""
    words: str = ""


class _StuckRun(Struct):
    """A thread that was abandoned, and the check as it was then: `at_work` is locked until it ends."""

    check: CheckConfig
    at_work: LockType
    since: float


class CheckRunner:
    """Runs checks in threads that can be abandoned; at most one thread a check is ever stuck."""

    def __init__(self) -> None:
        self._stuck: dict[str, _StuckRun] = {}

    def run(self, check: CheckConfig, ctx: Context) -> RunOutcome:
        """Never raises and never takes longer than the check's limit and a short grace."""
        started = time.monotonic()
        answer = self._find_stuck_run(check) or self._attempt_run(check, ctx)
        seconds = time.monotonic() - started
        return make_outcome(check, answer.report, answer.error, seconds, words=answer.words)

    def _attempt_run(self, check: CheckConfig, ctx: Context) -> _RunAnswer:
        late = f"did not end within {duration_text(ctx.limit)}"
        answer, at_work = _RunAnswer(error=late), allocate_lock()
        at_work.acquire()
        start_new_thread(_run_plugin, (check, ctx, answer, at_work))
        if at_work.acquire(timeout=max(0.0, ctx.limit + _GRACE_S)):
            return answer
        self._stuck[check.name] = _StuckRun(check, at_work, time.monotonic())
        return _RunAnswer(error=late)

    def _find_stuck_run(self, check: CheckConfig) -> _RunAnswer | None:
        """A check that was configured anew may have been mended by that: it is tried."""
        stuck = self._stuck.get(check.name)
        if stuck is None or not stuck.at_work.locked() or stuck.check != check:
            self._stuck.pop(check.name, None)
            return None
        age = duration_text(time.monotonic() - stuck.since)
        return _RunAnswer(error=f"an earlier run hangs since {age}; none is started beside it")


def make_outcome(
    check: CheckConfig, report: Report | None, error: str, seconds: float, *, words: str = ""
) -> RunOutcome:
    """The outcome of a run: severity capped, labels merged, and a word about the check itself.

    `words`: those of who was asked, to be shown below `error`.
    """
    if report is not None:
        report = replace(report, findings=tuple(_apply_common(f, check) for f in report.findings))
    return RunOutcome(
        check=check.name,
        kind=check.common.kind,
        itself=_summarize_check(report, error, words),
        report=report,
        seconds=seconds,
    )


def _run_plugin(check: CheckConfig, ctx: Context, answer: _RunAnswer, at_work: LockType) -> None:
    try:
        with shared_reader():
            answer.report = _to_plain_report(check.plugin.run(ctx))
        answer.error = ""
    except CannotTell as error:
        answer.error, answer.words = error.message, error.words
    except BaseException as error:  # a plugin may call sys.exit: that ends its run, no more
        _log_bug(check)
        answer.error = _describe_bug(check, error)
    finally:
        at_work.release()


def _describe_bug(check: CheckConfig, error: BaseException) -> str:
    """What is wrong with a kind, for its author: the file of its class, and the last line of it that
    ran. A Report of older days lacks its coverage."""
    from traceback import extract_tb

    kind, cls = check.common.kind, type(check.plugin)
    path = getattr(sys.modules.get(cls.__module__), "__file__", None) or "?"
    lines = [at.lineno for at in extract_tb(error.__traceback__) if at.filename == path]
    where = f"{path}, line {lines[-1]}" if lines else path
    if not isinstance(error, TypeError) or "Missing required argument 'coverage'" not in str(error):
        return f"internal error of kind {kind} ({where}): {error!r}"
    return (
        f"kind {kind} does not say how much it saw: give the Report in {where} a coverage, such as "
        'coverage=Coverage(of="nodes", meant=8, unseen=("node-3",)); see docs/plugins.md'
    )


def _log_bug(check: CheckConfig) -> None:
    import logging

    logging.getLogger("sentinel").exception("check %s failed inside", check.name)


def _to_plain_report(told: object) -> Report:
    """As told, but plain data of the declared types, or msgspec's ValidationError: one value that
    cannot be stored, or read again, would cost every check its alerts."""
    if not isinstance(told, Report):
        raise TypeError(f"`run` has to return a Report, and returned {shortened(repr(told), 80)}")
    return convert(to_builtins(told, str_keys=True, enc_hook=_to_plain_value), Report)


def _to_plain_value(value: object) -> str | int | float:
    """FilePath, Size, Duration and other subclasses of what JSON has."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


def _apply_common(finding: Finding, check: CheckConfig) -> Finding:
    capped = finding.status is Status.CRITICAL and check.common.severity == "warning"
    return replace(
        finding,
        subject=finding.subject or check.name,
        status=Status.WARNING if capped else finding.status,
        labels={**finding.labels, **check.common.labels},
    )


def _summarize_check(report: Report | None, error: str, words: str) -> Finding:
    """What a run says of the check: how much it saw, and what could not be told of that."""
    if report is None:
        unknown = Status.UNKNOWN
        return Finding(subject="", status=unknown, summary=visible(error), details=visible(words))
    coverage = report.coverage
    blind = [f for f in report.findings if f.status is Status.UNKNOWN]
    told = blind and len(coverage.unseen) <= len(blind) == 1
    parts = [] if told or (coverage.whole and blind) else [coverage.words]
    parts += [f"{visible(f.subject)}: {f.summary}" for f in blind]
    return Finding(
        subject="",
        status=Status.UNKNOWN if blind else coverage.status,
        summary=shortened("; ".join(parts), 500),
    )
