"""Runs a check once, within a time limit. Every error becomes an outcome.

Threads are started by `_thread`, because to import `threading` and `logging` takes nearly as long
as the start of the interpreter.
"""

import sys
import time
from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Iterator, Sequence

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.alerting.observations import RunOutcome
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import NO_GUIDANCE
from sentinel.core.model import Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import CheckConfig
from sentinel.core.struct_types import convert_value
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text
from sentinel.user_files.session import shared_reader

MAX_DETAILS_CHARS = 2**16
"""What a finding may say below its summary. It is stored and sent, and may come from a file of a user's."""

_GRACE_S = 2.0
MAX_COMMANDS = 4
"""How many commands about unseen things the finding about the check has."""
MAX_UNSEEN_NAMES = 1000
"""How many users and things that a run did not see are kept with the alert."""


class _RunAnswer(Struct):
    report: Report | None = None  # The report of the run. None: the run saw nothing.
    error: str = ""  # Why it could not see.
    words: str = ""  # Further words of the other side, shown below `error`.


class _StuckRun(Struct):
    """A thread that was abandoned, and the check as it was configured. `at_work` is locked until
    the thread ends."""

    check: CheckConfig  # The check as it was configured.
    at_work: LockType
    since: float  # When it was abandoned, by the monotonic clock.


class CheckRunner:
    """Runs checks in threads that can be abandoned. Each check has at most one stuck thread."""

    def __init__(self) -> None:
        self._stuck: dict[str, _StuckRun] = {}

    def run(self, check: CheckConfig, ctx: Context) -> RunOutcome:
        """Run the check. It never raises, and never takes longer than the check's time limit and a
        short grace."""
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
        """The answer if an earlier run of the check is stuck. None if none is, or if the
        configuration has changed since, because the change may have removed the reason."""
        stuck = self._stuck.get(check.name)
        if stuck is None or not stuck.at_work.locked() or stuck.check != check:
            self._stuck.pop(check.name, None)
            return None
        age = duration_text(time.monotonic() - stuck.since)
        return _RunAnswer(error=f"an earlier run hangs since {age}; none is started beside it")


def make_outcome(
    check: CheckConfig, report: Report | None, error: str, seconds: float, *, words: str = ""
) -> RunOutcome:
    """The outcome of a run, with the severity capped, labels merged, and a finding about the check
    itself.

    `words` come from the program that was asked. They are shown below `error`.
    """
    if report is not None:
        report = replace(
            report,
            findings=tuple(_apply_common(f, check) for f in report.findings),
            letters=tuple(
                replace(one, commands=tuple(c.for_cluster(check.before) for c in one.commands))
                for one in report.letters
            )
            if check.before
            else report.letters,
        )
    return RunOutcome(
        check=check.name,
        kind=check.common.kind,
        itself=_summarize_check(check.name, report, error, words),
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
    except BaseException as error:  # a plugin may call sys.exit; that ends only its own run
        _log_bug(check)
        answer.error = _describe_bug(check, error)
    finally:
        at_work.release()


def _walk_traceback(error: BaseException) -> Iterator[tuple[str, int]]:
    """File and line of each call, the outermost first."""
    at = error.__traceback__
    while at is not None:
        yield at.tb_frame.f_code.co_filename, at.tb_lineno
        at = at.tb_next


def _describe_bug(check: CheckConfig, error: BaseException) -> str:
    """Describe the error of a kind for its author: the file of its class, and the last line of it
    that ran. If a Report has no coverage, say how to add it."""
    kind, cls = check.common.kind, type(check.plugin)
    path = getattr(sys.modules.get(cls.__module__), "__file__", None) or "?"
    lines = [line for file, line in _walk_traceback(error) if file == path]
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
    """The same report as plain data of the declared types. Raises msgspec's ValidationError. One
    value that cannot be stored or read again would stop the alerts of every check."""
    if not isinstance(told, Report):
        raise TypeError(f"`run` has to return a Report, and returned {shortened(repr(told), 80)}")
    return convert_value(to_builtins(told, str_keys=True, enc_hook=_to_plain_value), Report)


def _to_plain_value(value: object) -> str | int | float:
    """Convert FilePath, Size, Duration and other subclasses to the types of JSON."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


def _apply_common(finding: Finding, check: CheckConfig) -> Finding:
    capped = finding.status is Status.CRITICAL and check.common.severity == "warning"
    finding = finding.for_cluster(check.before) if check.before else finding
    return replace(
        finding,
        subject=finding.subject or check.name,
        status=Status.WARNING if capped else finding.status,
        details=shortened(finding.details, MAX_DETAILS_CHARS),
        labels={**finding.labels, **check.common.labels},
    )


def _summarize_check(name: str, report: Report | None, error: str, words: str) -> Finding:
    """The finding about the check itself: how much its run saw, and what it could not see."""
    if report is None:
        unknown = Status.UNKNOWN
        return Finding(subject="", status=unknown, summary=visible(error), details=visible(words))
    coverage = report.coverage
    blind = [f for f in report.findings if f.status is Status.UNKNOWN]
    told = blind and len(coverage.unseen) <= len(blind) == 1
    parts = [] if told or (coverage.whole and blind) else [coverage.words]
    parts += [
        f.summary if f.subject == name else f"{visible(f.subject)}: {f.summary}" for f in blind
    ]
    return Finding(
        subject="",
        status=Status.UNKNOWN if blind else coverage.status,
        summary=shortened("; ".join(parts), 500),
        guidance=blind[0].guidance if len(blind) == 1 else NO_GUIDANCE,
        commands=tuple(dict.fromkeys(line for f in blind for line in f.commands))[:MAX_COMMANDS],
        unseen=_list_unseen(blind, coverage.unseen),
    )


def _list_unseen(blind: Sequence[Finding], names: Sequence[str]) -> tuple[str, ...]:
    """Who is not seen: a user counts once, whatever the number of their jobs."""
    found = sorted({f.labels.get("user") or f.subject for f in blind} or set(names))
    return tuple(found[:MAX_UNSEEN_NAMES])
