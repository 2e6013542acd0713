"""Reads the marks of MLPerf's logs (MLLOG) into rows of the ledger of runs. Pure.

They say exactly when a training began and ended what it did, so nothing has to be found out. The
forms: mlperf_logging/mllog/constants.py of mlcommons/logging.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel.core.run_ledger import LedgerKind, LedgerRow

_MARK_PATTERN = re.compile(
    r':::MLL[^\n]{0,80}?"time_ms": (\d{13})\b[^\n]{0,80}?"key": "([a-z_]{1,40})"([^\n]{0,400})'
)
_COUNT_PATTERN = re.compile(
    r'"(?:samples_count|epoch_num|step_num|step)": (\d{1,12}(?:\.\d{1,9})?)'
)
SUCCESS = '"status": "success"'
MAX_LAG_US = 60 * 10**6
"""Several ranks write the same mark, so their lines may go back a little."""


class PastBenchmarkLog:
    """Follows the marks of one log. `starts` are rows of the kind `held`, if accounting knows when
    the job began and ended. One file may hold several trainings, one after the other."""

    def __init__(self, run: str, job: str, starts: Sequence[LedgerRow] = ()) -> None:
        self._run, self._job, self._starts = run, job, starts
        self._init = self._start = self._stop = self._eval = self._last = 0  # µs UTC, 0: not seen
        self._is_success = False
        self._count = 0.0
        self._evaluations: list[tuple[int, int]] = []
        self._rows: list[LedgerRow] = []

    def add_text(self, text: str) -> None:
        """Follow further lines."""
        if ":::MLL" in text:
            for match in _MARK_PATTERN.finditer(text):
                self._follow_mark(int(match[1]) * 1000, match[2], match[3])

    def finish(self) -> tuple[LedgerRow, ...]:
        """The rows. Empty if no training was seen to begin."""
        self._end_training()
        return tuple(self._rows)

    def _follow_mark(self, at: int, key: str, rest: str) -> None:
        if key == "init_start" and self._stop and at > self._stop:
            self._end_training()
        if self._last and at < self._last - MAX_LAG_US:
            return  # a clock that jumped
        self._last = max(self._last, at)
        if key == "init_start":
            self._init = min(self._init or at, at)
        elif key == "run_start":
            self._start = min(self._start or at, at)
        elif key == "run_stop" and self._start and not self._stop:
            self._stop, self._is_success = at, SUCCESS in rest
        elif key == "eval_start" and self._start and not self._stop:
            self._eval = self._eval or at
        elif key == "eval_stop" and self._eval:
            self._end_evaluation(at)
        if self._start and not self._stop and (found := _COUNT_PATTERN.search(rest)):
            self._count = max(self._count, float(found[1]))

    def _end_evaluation(self, at: int) -> None:
        if at > self._eval:
            self._evaluations.append((self._eval, at))
        self._eval = 0

    def _end_training(self) -> None:
        if self._start:
            if self._eval:
                self._end_evaluation(self._stop or self._last)
            self._add_rows()
        self._init = self._start = self._stop = self._eval = self._last = 0
        self._is_success, self._count, self._evaluations = False, 0.0, []

    def _add_rows(self) -> None:
        ended = self._stop or self._last
        began = min(self._init or self._start, self._start)
        cause = "unknown" if not self._stop else "completed"
        held = self._find_start(began) or LedgerRow(
            run=self._run, kind="held", began=began, ended=self._last, job=self._job,
            attempt=began // 10**6, cause=cause,  # type: ignore[arg-type]
        )  # fmt: skip
        self._rows.append(held)
        self._add_row(held, "startup", held.began, self._start)
        for first, last in self._evaluations:
            self._add_row(held, "evaluation", first, last)
        steps = max(1.0, self._count)
        self._add_row(held, "steps", self._start, ended, steps)
        if self._stop:
            self._add_row(held, "idle", self._stop, held.ended)
        if self._is_success:  # the model is the result, and nobody goes on from it
            self._rows.append(
                LedgerRow(
                    run=self._run, kind="saved", began=self._stop, ended=self._stop, last_step=steps
                )
            )

    def _find_start(self, wall: int) -> LedgerRow | None:
        near = (row for row in self._starts if row.began - MAX_LAG_US <= wall <= row.ended)
        return max(near, key=lambda row: row.began, default=None)

    def _add_row(
        self, held: LedgerRow, kind: LedgerKind, began: int, ended: int, steps: float | None = None
    ) -> None:
        if ended > began:
            self._rows.append(
                LedgerRow(
                    run=self._run, kind=kind, began=began, ended=ended, job=held.job,
                    attempt=held.attempt, first_step=None if steps is None else 0.0, last_step=steps,
                )
            )  # fmt: skip
