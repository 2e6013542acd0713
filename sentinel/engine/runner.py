"""One run of one check: under a limit, with every error turned into an answer."""

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.digest import Outcome
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import CheckConfig
from sentinel.core.text import shortened, visible
from sentinel.core.values import duration_text

DEFAULT_EVERY = 60.0
DEFAULT_TIMEOUT = 30.0
_GRACE = 2.0
_LOG = logging.getLogger("sentinel")


def every(check: CheckConfig) -> float:
    """Seconds between runs, as configured or else the kind's own default."""
    return float(_first(check.common.every, getattr(check.plugin, "EVERY", None), DEFAULT_EVERY))


def limit(check: CheckConfig) -> float:
    """Seconds one run may take, as configured or else the kind's own default."""
    own = getattr(check.plugin, "TIMEOUT", None)
    return float(_first(check.common.timeout, own, DEFAULT_TIMEOUT))


def _first(*choices: float | None) -> float:
    return next(c for c in choices if c is not None)


class _Answer(Struct):
    report: Report | None = None
    error: str = ""


class Runner:
    """Runs checks in threads that can be abandoned; at most one thread a check is ever stuck."""

    def __init__(self) -> None:
        self._stuck: dict[str, tuple[threading.Thread, float]] = {}

    def run(self, check: CheckConfig, ctx: Context) -> Outcome:
        """Never raises and never takes longer than the check's limit and a short grace."""
        started = time.monotonic()
        answer = self._still_stuck(check.name) or self._attempt(check, ctx)
        return conclude(check, answer.report, answer.error, time.monotonic() - started)

    def _attempt(self, check: CheckConfig, ctx: Context) -> _Answer:
        answer = _Answer(error=f"did not end within {duration_text(ctx.limit)}")
        thread = threading.Thread(
            target=_look, args=(check, ctx, answer), name=f"check {check.name}", daemon=True
        )
        thread.start()
        thread.join(ctx.limit + _GRACE)
        if thread.is_alive():
            self._stuck[check.name] = (thread, time.monotonic())
            return _Answer(error=answer.error)
        return answer

    def _still_stuck(self, name: str) -> _Answer | None:
        thread, since = self._stuck.get(name, (None, 0.0))
        if thread is None or not thread.is_alive():
            self._stuck.pop(name, None)
            return None
        age = duration_text(time.monotonic() - since)
        return _Answer(error=f"an earlier run hangs since {age}; none is started beside it")


def conclude(check: CheckConfig, report: Report | None, error: str, seconds: float) -> Outcome:
    """The outcome of a run: severity capped, labels merged, and a word about the check itself."""
    if report is not None:
        report = replace(
            report,
            findings=tuple(_settled(f, check) for f in report.findings),
            samples=tuple(replace(s, subject=str(s.subject)) for s in report.samples),
            memory=_plain(report.memory),
        )
    return Outcome(
        check=check.name,
        kind=check.common.kind,
        itself=_itself(report, error),
        report=report,
        seconds=seconds,
    )


def _look(check: CheckConfig, ctx: Context, answer: _Answer) -> None:
    try:
        answer.report = check.plugin.run(ctx)
        answer.error = ""
    except CannotTell as error:
        answer.error = str(error)
    except Exception as error:
        _LOG.exception("check %s failed inside", check.name)
        answer.error = f"internal error of kind {check.common.kind}: {error!r}"


def _settled(finding: Finding, check: CheckConfig) -> Finding:
    capped = finding.status is Status.CRITICAL and check.common.severity == "warning"
    return replace(
        finding,
        subject=str(finding.subject or check.name),
        values=_plain(finding.values),
        status=Status.WARNING if capped else finding.status,
        labels={**finding.labels, **check.common.labels},
    )


def _plain(value: Any) -> Any:
    """Without FilePath and other subclasses of text: what is stored and sent is plain data."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _itself(report: Report | None, error: str) -> Finding:
    if report is None:
        return Finding(subject="", status=Status.UNKNOWN, summary=visible(error))
    blind = [f for f in report.findings if f.status is Status.UNKNOWN]
    if not blind:
        return Finding(subject="", status=Status.OK, summary="sees again")
    seen = "; ".join(f"{visible(f.subject)}: {f.summary}" for f in blind)
    return Finding(subject="", status=Status.UNKNOWN, summary=shortened(seen, 500))
