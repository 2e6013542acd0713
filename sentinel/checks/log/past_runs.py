"""Makes the ledger of past jobs from their logs, and from what accounting says of them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo

from msgspec import Struct
from msgspec.structs import replace

from sentinel.checks.log.past_benchmark_log import PastBenchmarkLog
from sentinel.checks.log.past_checkpoints import list_saved_rows
from sentinel.checks.log.past_files import open_past_file, read_pieces
from sentinel.checks.log.past_log import NO_TIMES_DOUBT, PastLog, PastRows
from sentinel.checks.log.past_progress_file import (
    END_DOUBT,
    PROGRESS_NAME,
    read_progress_text,
)
from sentinel.core.clock import SECOND
from sentinel.core.cluster import JobRun
from sentinel.core.errors import CannotTell
from sentinel.core.run_ledger import EndCause, LedgerRow
from sentinel.core.text import visible
from sentinel.core.work import track_work
from sentinel.slurm.job_states import END_CAUSES, Phase, state_phase

READ_LIMIT_S = 600.0
"""Seconds for all files together. What comes after is not read, and that is said."""

FRESH_S = 600
"""A log that was written to within so many seconds belongs to a job that runs."""

MAX_NODES_CHARS = 200
_DATE_PATTERN = re.compile(r"\d{4}-?\d\d-?\d\d(?:[T_-]?\d\d[-:]?\d\d[-:]?\d\d)?(?!\d)")
_ENDING_PATTERN = re.compile(r"(?:\.[A-Za-z]{1,16}){1,4}(?:\.\d{1,2})?$")
_JOB_PATTERN = re.compile(r"((?<![^\W_])\d{1,10}|(?<=[A-Za-z])\d{4,10})(?:_\d{1,7})?(?![^\W_])")
"""A number that stands alone, or a long one behind letters: `gpt3` and `llama2_70b` are no jobs."""

_PLAIN_NAMES = frozenset({"", "slurm", "job", "log", "out", "err", "stdout", "stderr", "output"})


class PastJob(Struct, frozen=True, kw_only=True):
    """A job by the name of its log: `slurm-4711.out`, `llm-4711_3.log`."""

    job: str  # The id of the job. The name of the file where that has no number.
    run: str  # The name of the training.
    has_id: bool = False


class PastOptions(Struct, frozen=True, kw_only=True):
    """What the reader is told.

    run: The name of the training. Empty: the names of files, or of jobs in accounting, say it.
    gpus: How many GPUs each job held. None: accounting or the log says it.
    accounting: What accounting knows of these jobs. None: it was not asked.
    """

    zone: tzinfo
    now: int  # µs UTC
    run: str = ""
    gpus: int | None = None
    accounting: tuple[JobRun, ...] | None = None


class PastLedger(Struct, frozen=True, kw_only=True):
    """The rows of all runs, what cannot be known of each, and what was not read at all."""

    rows: tuple[LedgerRow, ...] = ()
    doubts: Mapping[str, tuple[str, ...]] = {}
    unread: tuple[str, ...] = ()


def name_past_job(path: str) -> PastJob:
    """The job and the training by the name of the file, or of its folder."""
    base = os.path.basename(path)
    stem = _DATE_PATTERN.sub("", _ENDING_PATTERN.sub("", base))
    found = max(_JOB_PATTERN.finditer(stem), key=lambda match: len(match[1]), default=None)
    rest = stem[: found.start()] + stem[found.end() :] if found else stem
    name = re.sub(r"[-_%.]{2,}", "-", rest).strip("-_. ")
    if name.lower() in _PLAIN_NAMES:
        name = os.path.basename(os.path.dirname(os.path.abspath(path))) or base
    return PastJob(job=found[0] if found else base, run=name, has_id=found is not None)


def read_past_runs(paths: Sequence[str], options: PastOptions) -> PastLedger:
    """Read the logs. Files of one job are taken together: the one that shows most counts."""
    deadline = time.monotonic() + READ_LIMIT_S
    collected = _PastCollection(options)
    unread = list[str]()
    # Logs of one job first: they know the training.
    ordered = sorted(
        paths, key=lambda one: os.path.isdir(one) or os.path.basename(one) == PROGRESS_NAME
    )
    with track_work("reading", "files", len(paths)) as work:
        for path in ordered:
            work.advance(path)
            if time.monotonic() > deadline:
                unread.append(f"{visible(path)} and the files after it: that took too long")
                break
            try:
                if os.path.isdir(path):
                    collected.read_checkpoints(path)
                elif os.path.basename(path) == PROGRESS_NAME:
                    collected.read_progress(path)
                else:
                    collected.read_log(path)
            except CannotTell as error:
                unread.append(str(error))
    return replace(collected.make_ledger(), unread=tuple(unread))


class _PastCollection:
    """Collects what files say of each job."""

    def __init__(self, options: PastOptions) -> None:
        self._options = options
        self._starts: dict[str, list[JobRun]] = {}
        for run in options.accounting or ():
            for name in {run.job_id, run.id}:
                self._starts.setdefault(name, []).append(run)
        self._logs: dict[tuple[str, str], list[PastRows]] = {}
        self._saved: list[LedgerRow] = []  # checkpoints that are still there
        self._doubts: dict[str, dict[str, None]] = {}

    def read_log(self, path: str) -> None:
        """Read one log. Raises CannotTell."""
        named, options = name_past_job(path), self._options
        known = self._starts.get(named.job, []) if named.has_id else []
        starts = [row for row in map(self._make_held, known) if row]
        if starts:
            run = starts[-1].run or options.run or named.run
            starts = [replace(row, run=run) for row in starts]
            found = self._replay(path, run, starts[0].job, starts)
            if NO_TIMES_DOUBT in found.doubts:
                found = replace(found, rows=tuple(starts))
            if any(row.kind == "held" for row in found.rows):
                self._keep(run, starts[0].job, found)
                return
        run = options.run or named.run
        if options.accounting is not None:
            self._doubt(run, "accounting does not know a job; its times are those of its log")
        found = self._replay(path, run, named.job, ())
        if not found.rows:
            raise CannotTell(f"{visible(path)}: {'; '.join(found.doubts)}")
        self._keep(run, named.job, found)

    def read_progress(self, path: str) -> None:
        """Read Megatron's progress.txt, after all logs. Raises CannotTell."""
        file = open_past_file(path)
        try:
            text = "".join(text or "" for text in read_pieces(file))
        finally:
            os.close(file.descriptor)
        booked = filter(None, map(self._make_held, self._options.accounting or ()))
        found = read_progress_text(text, self._options.zone, [*booked])
        if not found:
            raise CannotTell(f"{visible(path)} has no lines of Megatron's --log-progress")
        by_job = {job: run for run, job in self._logs}
        other = self._name_training(path)
        for start in found:
            run = by_job.get(start.job) or start.rows[0].run or other
            rows = tuple(replace(row, run=run) for row in start.rows)
            self._keep(run, start.job, PastRows(rows=rows, gpus=start.gpus, doubts=(END_DOUBT,)))

    def read_checkpoints(self, path: str) -> None:
        """Look which checkpoints of the training are complete, after all logs. Raises CannotTell."""
        run = self._name_training(os.path.join(path, "file"))
        rows = tuple(replace(row, run=run) for row in list_saved_rows(path, self._options.now))
        self._saved += rows

    def _name_training(self, path: str) -> str:
        """The training of a file that names none: the only one there is, else that of the folder."""
        only = {run for run, _ in self._logs}
        folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
        return self._options.run or (only.pop() if len(only) == 1 else folder)

    def make_ledger(self) -> PastLedger:
        """The rows of everything that was read, and of jobs that only accounting knows."""
        rows = [*self._saved]
        for (run, _), several in self._logs.items():
            logs = [one for one in several if END_DOUBT not in one.doubts]
            best = max(
                logs or several,
                key=lambda one: (sum(row.kind == "steps" for row in one.rows), len(one.rows)),
            )
            chosen = [best] if logs else several  # progress.txt has several starts of one job
            others = [row for one in several if one not in chosen for row in one.rows]
            saved = [row for row in others if row.kind == "saved"]
            known = tuple(row for one in chosen for row in one.rows)
            gpus = next((one.gpus for one in (best, *several) if one.gpus), None)
            rows += self._add_gpus(run, (*known, *saved), gpus)
        rows += self._list_accounted(rows)
        doubts = {run: tuple(found) for run, found in self._doubts.items()}
        return PastLedger(rows=tuple(dict.fromkeys(rows)), doubts=doubts)

    def _replay(self, path: str, run: str, job: str, starts: Sequence[LedgerRow]) -> PastRows:
        file = open_past_file(path)
        cut = (file.cut,) if file.cut else ()
        try:
            marks = PastBenchmarkLog(run, job, starts)
            for text in read_pieces(file):
                marks.add_text(text or "")
            if rows := marks.finish():
                return PastRows(rows=rows, doubts=cut)
            log = PastLog(run, job, starts, self._options.zone)
            for text in read_pieces(file):
                if text is None:
                    log.add_hole()
                else:
                    log.add_text(text)
        finally:
            os.close(file.descriptor)
        age_s = self._options.now / SECOND - file.mtime
        found = log.finish(is_running=0 <= age_s < FRESH_S)
        return replace(found, doubts=(*found.doubts, *cut))

    def _keep(self, run: str, job: str, found: PastRows) -> None:
        for doubt in found.doubts:
            self._doubt(run, doubt)
        self._logs.setdefault((run, job), []).append(found)

    def _doubt(self, run: str, text: str) -> None:
        self._doubts.setdefault(run, {})[text] = None

    def _add_gpus(
        self, run: str, rows: Iterable[LedgerRow], world: int | None
    ) -> Iterator[LedgerRow]:
        """The rows with the number of GPUs: by accounting, by whoever asks, by the log."""
        for row in rows:
            gpus = row.gpus
            if row.kind == "held" and not gpus:
                gpus = self._options.gpus or world or 0
                if not gpus:
                    self._doubt(run, "how many GPUs a job held is not known; say it by --gpus N")
            yield replace(row, gpus=gpus) if gpus != row.gpus else row

    def _make_held(self, run: JobRun) -> LedgerRow | None:
        """The row of a start that accounting knows. None if it never started."""
        if not run.started:
            return None
        ended = run.ended or self._options.now // SECOND
        return LedgerRow(
            run=run.name,
            kind="held",
            began=run.started * SECOND,
            ended=max(run.started, ended) * SECOND,
            job=run.job_id,
            attempt=run.started,
            gpus=run.gpus or 0,
            nodes=(run.failed_node or run.nodes)[:MAX_NODES_CHARS],
            submitted=run.submitted,
            cause=_find_accounted_cause(run),
        )

    def _list_accounted(self, rows: Sequence[LedgerRow]) -> Iterator[LedgerRow]:
        """The time in the queue, and jobs of these trainings that left no log, between the first and
        the last one that did."""
        spans = dict[str, tuple[int, int]]()
        known = {(row.job, row.attempt) for row in rows if row.kind == "held"}
        for row in rows:
            if row.kind == "held":
                began, ended = spans.get(row.run, (row.began, row.ended))
                spans[row.run] = min(began, row.began), max(ended, row.ended)
        for run in self._options.accounting or ():
            held = self._make_held(run)
            began, ended = spans.get(run.name, (1, 0))
            if held is None or held.ended < began or held.began > ended:
                continue
            if run.submitted and run.submitted * SECOND < held.began:
                queued = run.submitted * SECOND
                yield LedgerRow(run=run.name, kind="queued", began=queued, ended=held.began)
            if (held.job, held.attempt) not in known:
                self._doubt(run.name, "accounting has jobs of this name whose log was not given")
                yield from self._add_gpus(run.name, (held,), None)


def _find_accounted_cause(run: JobRun) -> EndCause:
    """Why a start ended, by its state. Its log may know more of a failure."""
    state = run.state.partition(" ")[0]
    if state_phase(state) is not Phase.OVER:
        return ""
    failed = bool(run.exit_code or run.signal or run.step_failed)
    if state == "COMPLETED" and not failed:
        return "completed"
    return END_CAUSES.get(state) or ("software" if failed else "unknown")
