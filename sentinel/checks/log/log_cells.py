"""Shows a log on a terminal beside its finding: the curve of the loss, the speed, the last line."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from sentinel.checks.log.files import LogFiles
from sentinel.checks.log.log_findings import WatchedLog, read_last_lines
from sentinel.checks.log.losses import list_loss_values
from sentinel.checks.log.scan import LogPatterns
from sentinel.core.errors import CannotTell
from sentinel.core.shown import Cell, SubjectCells
from sentinel.core.text import visible_lines

LOSS_TAIL_BYTES = 256 * 1024
"""The loss is drawn from this many bytes at the end of a log."""

MAX_LOSSES = 320


def show_log(one: WatchedLog, patterns: LogPatterns, files: LogFiles) -> SubjectCells:
    """The cells of one log."""
    cells: dict[str, Cell] = {"last_line": read_last_lines(one, files).rpartition("\n")[2].strip()}
    steps = [event.value for event in one.sight.events if event.what == "pace" and event.value > 0]
    if steps:
        cells["progress_rate"] = 60 / median(steps)
    if losses := _read_losses(one, patterns, files):
        cells["loss_curve"] = losses
    return SubjectCells(cells=cells)


def _read_losses(one: WatchedLog, patterns: LogPatterns, files: LogFiles) -> tuple[float, ...]:
    looks: Mapping[str, object] = one.sight.texts
    if len(looks) != 1:
        return ()
    try:
        text = files.read_tail(next(iter(looks)), LOSS_TAIL_BYTES, one.sight.whose) or ""
    except CannotTell:
        return ()
    values = list_loss_values(visible_lines(text), patterns.loss)
    return tuple(value for _, value in values[-MAX_LOSSES:])
