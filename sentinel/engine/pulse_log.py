"""Writes a line about each run of a check into a file of the user (`pulse_log`)."""

import logging

from sentinel.alerting.observations import RunOutcome
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import Coverage, Report
from sentinel.core.settings import CheckConfig
from sentinel.core.text import visible
from sentinel.proc import threads
from sentinel.proc.appending import append_line

WRITE_TIMEOUT_S = 5.0
"""Seconds for writing it."""

_LOG = logging.getLogger("sentinel")


def write_pulse_line(config: CheckConfig, outcome: RunOutcome, now: Instant) -> None:
    """Append the line of the kind's `pulse`, in a thread of its own. It never raises, because a
    line in a file is not worth an alert."""
    nothing = Coverage(of="runs", meant=1, unseen=(config.name,))
    try:
        path, text = config.plugin.pulse(
            outcome.report or Report(findings=outcome.findings, coverage=nothing), now
        ) or ("", "")
    except Exception:
        _LOG.exception("check %s failed inside", config.name)
        return
    if path:
        threads.run_in_thread("pulse", lambda: _append_pulse_line(path, text))


def _append_pulse_line(path: str, line: str) -> None:
    text = line.rstrip("\n").encode("utf-8", "backslashreplace")
    try:
        done = append_line(path, text, limit=WRITE_TIMEOUT_S)
    except CannotTell as error:
        _LOG.warning("pulse_log %s: %s", visible(path), error)
        return
    if done.code:
        said = decode_lines(done.err).strip()
        _LOG.warning("pulse_log %s: %s", visible(path), visible(said))
